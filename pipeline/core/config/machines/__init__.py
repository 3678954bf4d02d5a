"""Rows about many machines in continuous time."""
