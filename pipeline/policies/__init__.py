"""Functions from an observation to an action: heuristics and networks."""
