"""The tables of a measurement."""

import pandera.pandas as pa

from pipeline.core.schemas.columns import integers, numbers, table

# Outcome of every job on a real Slurm cluster: a row for each job of each play. Times: seconds since the play's start.
PLAYS = table(
    "Plays",
    {
        "order": pa.Column(str),
        "repeat": integers(0),
        "job": integers(0),
        "arrival_s": numbers(0.0),  # planned submission
        "run_s": integers(1),  # duration of its sleep
        "limit_min": integers(1),
        "cpus": integers(1),  # of each node
        "nodes": integers(1),
        "user": integers(0),
        "submit_s": numbers(-1.0),  # as reported by Slurm, in whole seconds
        "start_s": numbers(-1.0),
        "end_s": numbers(-1.0),
    },
    unique=["order", "repeat", "job"],
)
