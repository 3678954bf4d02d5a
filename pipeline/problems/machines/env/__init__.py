"""Code of the problem `machines` that all its stages run: jobs, simulator, metrics, tables."""
