"""The tables of a measurement."""

import pandera.pandas as pa

from pipeline.core.schemas.columns import integers, numbers, table

# What a real Slurm made of the jobs: a row for each job of each play. Moments are seconds from the play's begin.
PLAYS = table(
    "Plays",
    {
        "order": pa.Column(str),
        "repeat": integers(0),
        "job": integers(0),
        "arrival_s": numbers(0.0),  # when it was to be submitted
        "run_s": integers(1),  # that it sleeps
        "limit_min": integers(1),
        "cpus": integers(1),  # of each node
        "nodes": integers(1),
        "submit_s": numbers(-1.0),  # as Slurm tells, in whole seconds
        "start_s": numbers(-1.0),
        "end_s": numbers(-1.0),
    },
    unique=["order", "repeat", "job"],
)
