"""A site's own queue: replays of its log as Slurm would run it, advice on the order, and the settings for it."""
