"""Heuristics of one pooled cluster: what they score, the same compiled, and how they are tuned."""
