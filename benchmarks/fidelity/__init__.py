"""Is the simulator of many machines right for a real Slurm? The same short jobs, played by both.

`jobs` draws them, `played` has Slurm play them, `simulated` the simulator, `comparison` sets what became of them beside
each other, as distributions: Slurm does not play the same jobs twice alike.
"""
