"""Heuristics of one pooled cluster: their scores, in Python and compiled, and their tuning."""
