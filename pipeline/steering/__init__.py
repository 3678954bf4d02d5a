"""A controller next to slurmctld: applies a policy's order of the queue as SiteFactors of jobs, and can undo it.

`rows` parses the output of Slurm's commands, `slurm` runs them, `pools` finds the jobs that compete with each other,
`states` describes them to a policy, `factors` turns its order into as few changes as possible, `ledger` records what
was set, `controller` runs the loop, and `watchdog` undoes everything when the controller dies or hangs.
"""
