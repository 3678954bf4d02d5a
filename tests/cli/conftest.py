"""Fixtures for tests of the command line."""

from commands import command, place

__all__ = ["command", "place"]
