"""Policies that look ahead: they simulate each candidate action, for every problem."""
