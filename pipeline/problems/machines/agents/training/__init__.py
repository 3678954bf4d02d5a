"""Learning algorithms of many machines, one a file: each is a generator of updates."""
