"""Advice for a site: a replay of its log, the order that serves it best, and the Slurm settings for that order."""
