"""Heuristics of user groups: what they score, the same compiled, and how they are tuned."""
