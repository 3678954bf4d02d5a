"""Evaluation of controllers."""
