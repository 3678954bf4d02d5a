"""Code of the problem `pool` that all its stages run: jobs, simulator, metrics, tables."""
