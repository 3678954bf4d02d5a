"""Policies that try each action in the simulator before they take one."""
