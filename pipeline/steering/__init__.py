"""A controller beside slurmctld: a policy's order of the queue becomes SiteFactor of jobs, and can be taken back.

`rows` and `hostlists` read what Slurm's commands print, `asking` calls them, `competing` says which jobs stand against
each other, `states` tells a policy of them, `factors` turns its order into as few changes as do, `book` remembers what
was set, `controller` goes round, and `watchdog` takes all of it back when the controller does not.
"""
