"""Allocation of the cluster to user groups: a multi-dimensional knapsack."""
