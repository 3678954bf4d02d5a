"""Compiled simulator of user groups: many episodes at once."""
