"""Value functions for user groups."""
