"""Rows about user groups that share a cluster."""
