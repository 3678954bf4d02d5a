"""What policies made of a site's log, and what of it is advised."""

import pandera.pandas as pa

from pipeline.schemas.columns import above_zero, integers, numbers, table

BLOCK_DAYS = 3  # what is independent of each other: congestion lasts days

# Every job of a period of a site's log under every policy. Times are seconds.
TRIAL = table(
    "Trial",
    {
        "period": pa.Column(str, pa.Check.isin(["validation", "test"])),
        "load": above_zero(),  # times the log's own; gaps between arrivals are 1 / load as long
        "policy": pa.Column(str),
        "job": integers(0),  # of the period, in order of arrival
        "week": integers(0),  # of the period, by arrival
        "block": integers(0),  # of three days, the same
        "user": integers(-1),  # -1: the log does not say
        "run_s": above_zero(),
        "share": numbers(0.0),  # of all machines that it holds, mean over resources
        "wait": numbers(0.0),
        "bounded_slowdown": numbers(1.0),
    },
    unique=["period", "load", "policy", "job"],
)
