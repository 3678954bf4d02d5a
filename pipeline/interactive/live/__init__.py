"""Decisions for live clusters, of any problem."""
