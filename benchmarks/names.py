"""Names of the measurements, in order."""

FIRST = ("iteration", "memory", "simulator", "cnn", "decision", "heuristics")
SETS = ("gradient", "rollout", "mixture", "search", "lookahead", "lookahead_machines")
NAMES = (*FIRST, "machines", "knapsack", "sharing", "environments", *SETS, "executor", "growth")
