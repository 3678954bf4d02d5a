"""What tests of stages share."""

from commands import command, place

__all__ = ["command", "place"]
