"""Logs of real clusters: one registry of formats, read in chunks, for every problem."""
