"""Comparison of all policies on the same jobsets: paired statistics, tables, words and figures."""
