"""What tests of the command line share."""

from commands import command, place

__all__ = ["command", "place"]
