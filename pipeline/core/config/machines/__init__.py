"""Rows about many machines in real time."""
