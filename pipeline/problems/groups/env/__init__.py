"""Code of the problem `groups` that all its stages run: jobs, simulator, metrics, tables."""
