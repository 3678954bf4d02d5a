"""Heuristics of many machines, and which of them training may imitate."""
