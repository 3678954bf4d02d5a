"""Who is given how much of the cluster: a multi-dimensional knapsack over user groups."""
