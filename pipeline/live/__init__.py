"""Decisions of policies for a live cluster, of any problem."""
