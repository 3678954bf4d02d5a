"""`pool`: what all its stages run: jobs, simulator, metrics, tables."""
