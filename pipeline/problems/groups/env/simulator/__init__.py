"""Simulator of a shared cluster, its rewards and its knapsack; `tests/oracles/groups.py` is the reference."""
