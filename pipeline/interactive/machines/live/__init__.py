"""Decisions for a live cluster."""
