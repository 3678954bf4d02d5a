"""What there is to measure, by name, in the order in which it is measured."""

FIRST = ("iteration", "memory", "simulator", "cnn", "decision", "heuristics")
NAMES = (*FIRST, "events", "programme", "sharing", "growth")
