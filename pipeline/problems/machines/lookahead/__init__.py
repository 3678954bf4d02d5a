"""Policies that try each candidate in the simulator before they start one."""
