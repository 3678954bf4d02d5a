"""Names of the measurements, in order."""

FIRST = ("iteration", "memory", "simulator", "cnn", "decision", "heuristics")
SEARCHES = ("search", "lookahead", "lookahead_machines")
NAMES = (*FIRST, "machines", "knapsack", "sharing", "environments", *SEARCHES, "executor", "growth")
