"""What `make bench` measures: speed of the engine against baselines measured in the same run."""
