"""Rows about one pooled cluster in steps."""
