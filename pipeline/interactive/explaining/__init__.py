"""Differences between a policy and a well-known rule, for every problem."""
