"""Heuristics of many machines: what they score, the same compiled, and how they are tuned."""
