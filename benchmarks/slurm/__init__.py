"""A real Slurm cluster, used through its own commands, which are lists of words and run without a shell."""
