"""Differences of a policy from a well-known rule, for every problem."""
