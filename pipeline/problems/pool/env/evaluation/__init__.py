"""Evaluation of schedules on one pooled cluster."""
