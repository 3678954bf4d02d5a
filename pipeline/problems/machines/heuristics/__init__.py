"""Heuristics of many machines, and the scoring of policies."""
