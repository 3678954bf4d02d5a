"""Learning algorithms of one pooled cluster, one per file; each is a generator of updates."""
