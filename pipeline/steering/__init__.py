"""A controller next to slurmctld, which sets SiteFactors of jobs by a policy's order of the queue, and can undo this.

`rows` parses the output of Slurm's commands, `slurm` runs them, `states` finds the jobs that compete with each other
and describes them to a policy, `factors` turns the order into as few changes as possible, `ledger` records what
was set, `controller` runs the loop, and `watchdog` undoes everything when the controller dies or hangs.
"""
