"""Agents of problem `groups`: networks and their training."""
