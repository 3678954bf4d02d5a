"""Learning algorithms of one pooled cluster, one a file: each is a generator of updates."""
