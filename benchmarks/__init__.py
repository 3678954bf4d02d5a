"""Measurements of `make bench`: speed of the engine, compared with baselines measured in the same run."""
