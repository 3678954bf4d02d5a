"""Policies that try each candidate in the simulator before they take one, for every problem."""
