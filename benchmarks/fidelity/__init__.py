"""Validation of the simulator of many machines against a real Slurm cluster, on the same short jobs.

A play is one run of the jobs. `jobs` draws them, `played` runs them on Slurm, and `simulated` in the simulator.
`comparison` compares the outcomes as distributions, because Slurm never schedules the same jobs twice in the same way.
"""
