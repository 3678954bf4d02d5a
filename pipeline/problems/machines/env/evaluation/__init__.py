"""Evaluation of schedules on many machines."""
