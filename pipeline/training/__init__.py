"""Learning algorithms, one a file: each `train` is a generator of updates."""
