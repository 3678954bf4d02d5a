"""Learning algorithms of user groups, one a file: each is a generator of updates."""
