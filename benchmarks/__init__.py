"""What `make bench` runs: how fast the engine is, beside baselines that are measured in the same run."""
