"""Learning algorithms of user groups; each is a generator of updates."""
