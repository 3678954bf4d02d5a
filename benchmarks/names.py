"""What there is to measure, by name, in the order in which it is measured."""

FIRST = ("iteration", "memory", "simulator", "cnn", "decision", "heuristics")
SEARCHES = ("search", "lookahead", "lookahead_machines")
NAMES = (*FIRST, "machines", "knapsack", "sharing", "environments", *SEARCHES, "executor", "growth")
