"""What there is to measure, by name, in the order in which it is measured."""

NAMES = ("iteration", "memory", "simulator", "cnn", "decision", "heuristics", "events", "programme", "growth")
