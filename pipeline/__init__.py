"""Learn cluster schedulers and prove whether they beat the heuristics people already use."""
