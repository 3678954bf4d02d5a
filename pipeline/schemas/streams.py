"""Tables of streams: endless jobsets of a pooled cluster, of which the arrivals of some steps are measured."""

import pandera.pandas as pa

from pipeline.schemas.columns import KEYS, finite, integers, numbers, table

LENGTHS = 4  # classes of job length at most


# How many jobs were there in some steps of each jobset, measured or not. Growth and what finished are those of the
# whole jobset: the least-squares slope of jobs waiting over all measured steps, and jobs that finished in these.
STREAM_BACKLOG = table(
    "StreamBacklog",
    {
        "policy": pa.Column(str),
        "load": integers(1),
        "jobset": integers(0),
        "step": integers(0),
        "waiting": integers(0),
        "in_system": integers(0),  # waiting or running
        "growth": finite(),  # jobs waiting per 100 steps
        "finished": numbers(0.0),  # jobs per 100 steps
    },
    [*KEYS, "step"],
)

# How each policy treats jobs by their length, over all measured jobs of a load; class 1 has the shortest jobs.
STREAM_FAIRNESS = table(
    "StreamFairness",
    {
        "policy": pa.Column(str),
        "load": integers(1),
        "length": integers(1, LENGTHS),
        "shortest": integers(1),  # duration in the class
        "longest": integers(1),
        "jobs": integers(1),
        "mean_slowdown": numbers(1.0),
        "share": numbers(0.0),  # of the sum of all slowdowns at the load
        "longest_wait": integers(0),  # steps from arrival to start; of a job that never started a lower bound
        "unfinished": integers(0),
    },
    ["policy", "load", "length"],
)

# Each policy at each load, for people. A class of job length that a load does not have has no slowdown.
STREAM_SUMMARY = table(
    "StreamSummary",
    {
        "scenario": pa.Column(str),
        "load": integers(1),
        "policy": pa.Column(str),
        "n": integers(1),  # jobsets: independent replications
        "jobs": integers(1),  # measured
        "slowdown": numbers(1.0),
        "slowdown_low": numbers(0.0),
        "slowdown_high": numbers(0.0),
        "p99_slowdown": numbers(1.0),  # mean over jobsets, as the next
        **{f"p99_slowdown_{end}": numbers(0.0) for end in ("low", "high")},
        "mean_longest_wait": numbers(0.0),  # steps
        **{f"mean_longest_wait_{end}": numbers(0.0) for end in ("low", "high")},
        "worst_slowdown": numbers(1.0),  # of all
        "longest_wait": integers(0),  # of all
        "never_started": integers(0),  # measured jobs that had not when their stream was cut; waits until then count
        "utilisation": numbers(0.0),
        **{f"slowdown_length_{length}": numbers(1.0, nullable=True) for length in range(1, LENGTHS + 1)},
        # per 100 measured steps: more jobs that wait, and jobs that finish
        **{f"{name}{end}": finite() for name in ("growth", "finished") for end in ("", "_low", "_high")},
        "overload": pa.Column(bool),  # arrivals end with the measured steps
    },
    ["scenario", "load", "policy"],
)
