"""A real Slurm, asked by its own commands; each is a list of words, and no shell reads it."""
