"""Tables that scenarios of every problem have: curves, comparisons, summaries, claims, sites' logs under policies."""

from collections.abc import Collection

import pandera.pandas as pa

from pipeline.schemas.columns import above_zero, finite, integers, numbers, table

# A learning curve: one row per (update, metric).
CURVE = table(
    "Curve", {"update": integers(0), "metric": pa.Column(str), "value": finite()}, unique=["update", "metric"]
)
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


# Paired comparison of a policy with another one; load "all" is the mean over loads. Differences are relative.
def _paired(name: str, least: float, about: Collection[str] = ()) -> pa.DataFrameSchema:
    pair = ("scenario", "load", "policy", "against")
    return table(
        name,
        {
            **{column: pa.Column(str) for column in (*about, *pair)},
            "n": integers(1),
            "mean": numbers(least),
            "low": numbers(0.0),
            "high": numbers(0.0),
            "mean_against": numbers(least),
            **{column: pa.Column("float64") for column in ("difference", "difference_low", "difference_high")},
            "unfinished": integers(0),
        },
        pair,
    )


COMPARISON = _paired("Comparison", 1.0)  # of slowdown; in real time, of bounded slowdown
DELAY = _paired("Delay", 0.0)  # of waiting time
OBJECTIVES = _paired("Objectives", 0.0, ["objective"])  # agents alone, each by what it was trained for

# The test jobsets of each scenario and load: how many there are, and what they ask of a resource.
LOADS = table(
    "Loads",
    {
        "scenario": pa.Column(str),
        "load": integers(1),
        "jobsets": integers(1),
        "wanted": integers(1),
        "resource": pa.Column(str),
        "percent": numbers(0.0, nullable=True),  # of all there is; unknown where all jobs arrive at once
    },
    unique=["scenario", "load", "resource"],
)

# Metrics of each policy at each load. Slowdown, its percentiles and the worst are bounded ones in real time.
SUMMARY = table(
    "Summary",
    {
        "scenario": pa.Column(str),
        "load": integers(1),
        "policy": pa.Column(str),
        "n": integers(1),
        "jobs": integers(1),
        "slowdown": numbers(1.0),
        "slowdown_low": numbers(0.0),
        "slowdown_high": numbers(0.0),
        "unbounded_slowdown": numbers(1.0),  # as slowdown itself in steps, where no job is shorter than one
        "p50_slowdown": numbers(1.0),
        "p99_slowdown": numbers(1.0),
        "worst_slowdown": numbers(1.0),
        "completion_time": numbers(0.0),
        "makespan": numbers(0.0),
        "utilisation": numbers(0.0),
        "not_work_conserving": numbers(0.0, nullable=True),  # known of pooled clusters only
        "unfinished": integers(0),
    },
    unique=["scenario", "load", "policy"],
)

# What the papers claim, part by part, beside what our results say, and what would have refuted it ("no_if").
# A figure that could not be drawn has rows all the same.
VERDICTS = ("yes", "no", "partly", "undecided")
PAPERS = table(
    "Papers",
    {
        "figure": pa.Column(str, pa.Check.str_matches(r"^[a-z0-9_]+$", error="a file's stem")),
        **{column: pa.Column(str) for column in ("title", "paper", "claim", "part")},
        "verdict": pa.Column(str, pa.Check.isin(VERDICTS, error=f"one of {', '.join(VERDICTS)}")),
        "found": pa.Column(str),
        "no_if": pa.Column(str),
    },
    unique=["figure", "paper", "claim", "part"],
)
