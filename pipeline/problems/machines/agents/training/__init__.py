"""Learning algorithms of many machines, one per file; each is a generator of updates."""
