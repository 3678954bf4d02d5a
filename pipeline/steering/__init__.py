"""A controller next to slurmctld: turns a policy's order of the queue into SiteFactors of jobs, and can take it back.

`rows` reads what Slurm's commands print, `asking` calls them, `competing` finds the jobs that compete with each other,
`states` describes them to a policy, `planning` turns its order into as few changes as possible, `book` remembers what
was set, `controller` runs the loop, and `watchdog` takes everything back when the controller does not.
"""
