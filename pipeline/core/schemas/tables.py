"""Tables of every problem: curves, comparisons, summaries, streams, hindsight, claims, sites' logs under policies."""

from collections.abc import Callable, Collection

import pandera.pandas as pa

from pipeline.core.schemas.columns import KEYS, finite, integers, numbers, table

BLOCK_DAYS = 3  # days after which load is independent: congestion lasts days
LENGTHS = 4  # maximum number of classes of job length
NEARLY = 1e-9
STATUSES = ("OPTIMAL", "FEASIBLE", "WARM")  # proved best; better than the warm start; the warm start itself
VERDICTS = ("yes", "no", "partly", "undecided")


def _each(names: str, column: Callable[[], pa.Column]) -> dict[str, pa.Column]:
    """Return a column of its own for every name; pandera writes the name into it."""
    return {name: column() for name in names.split()}


def _words(names: str) -> dict[str, pa.Column]:
    return _each(names, lambda: pa.Column(str))


def _at_least(low: float, names: str) -> dict[str, pa.Column]:
    return _each(names, lambda: numbers(low))


def _counts(low: int, names: str) -> dict[str, pa.Column]:
    return _each(names, lambda: integers(low))


# A learning curve: one row per (update, metric).
CURVE = table(
    "Curve", {"update": integers(0), "metric": pa.Column(str), "value": finite()}, unique=["update", "metric"]
)

# A site's log under every order of its queue. Waits are seconds, means over replays; changes are against today's order.
ORDERS = table(
    "Orders",
    {
        "period": pa.Column(str, pa.Check.isin(["validation", "test"])),
        "order": pa.Column(str),
        "for_slurm": pa.Column(bool),  # can `advise --slurm` write settings for it?
        **_at_least(0.0, "wait p99_wait longest_wait slowdown"),
        **_at_least(-1.0, "wait_change p99_wait_change longest_wait_change slowdown_change gain_change"),
        "large_change": pa.Column("float64", nullable=True),  # of the mean wait of large jobs; missing: too few
        "vetoes": pa.Column(str),
    },
    unique=["period", "order"],
)

# Requested limits of a site's users against what their jobs needed.
LIMITS = table(
    "Limits",
    {"user": integers(0), "jobs": integers(1), **_at_least(0.0, "limit_s run_s used suggested_s in_vain_h")},
    unique=["user"],
)


# Paired comparison of a policy with another one; load "all" is the mean over loads. Differences are relative.
def _paired(name: str, least: float, about: Collection[str] = ()) -> pa.DataFrameSchema:
    pair = ("scenario", "load", "policy", "against")
    columns = {column: pa.Column(str) for column in (*about, *pair)} | {"n": integers(1)}
    columns |= _at_least(least, "mean") | _at_least(0.0, "low high") | _at_least(least, "mean_against")
    columns |= _each("difference difference_low difference_high", lambda: pa.Column("float64"))
    return table(name, columns | {"unfinished": integers(0)}, pair)


COMPARISON = _paired("Comparison", 1.0)  # of slowdown; in continuous time, of bounded slowdown
DELAY = _paired("Delay", 0.0)  # of waiting time
OBJECTIVES = _paired("Objectives", 0.0, ["objective"])  # agents only, each by its training objective

# The test jobsets of each scenario and load: their number, and the demand for each resource.
LOADS = table(
    "Loads",
    {
        "scenario": pa.Column(str),
        **_counts(1, "load jobsets wanted"),
        "resource": pa.Column(str),
        "percent": numbers(0.0, nullable=True),  # of the capacity; unknown where all jobs arrive at once
    },
    unique=["scenario", "load", "resource"],
)

# Metrics of each policy at each load. In real time, slowdown, its percentiles and the worst are bounded.
SUMMARY = table(
    "Summary",
    {
        "scenario": pa.Column(str),
        "load": integers(1),
        "policy": pa.Column(str),
        **_counts(1, "n jobs"),
        **_at_least(1.0, "slowdown"),
        **_at_least(0.0, "slowdown_low slowdown_high"),
        # In steps, where no job is shorter than one, unbounded slowdown is slowdown itself.
        **_at_least(1.0, "unbounded_slowdown p50_slowdown p99_slowdown worst_slowdown"),
        **_at_least(0.0, "completion_time makespan utilisation"),
        "not_work_conserving": numbers(0.0, nullable=True),  # of pooled clusters only
        "unfinished": integers(0),
    },
    unique=["scenario", "load", "policy"],
)

# The papers' claims, part by part, with our results, and the result that would have refuted the claim ("no_if").
# A figure that could not be drawn has rows as well.
PAPERS = table(
    "Papers",
    {
        "figure": pa.Column(str, pa.Check.str_matches(r"^[a-z0-9_]+$", error="a file's stem")),
        **_words("title paper claim part"),
        "verdict": pa.Column(str, pa.Check.isin(VERDICTS, error=f"one of {', '.join(VERDICTS)}")),
        **_words("found no_if"),
    },
    unique=["figure", "paper", "claim", "part"],
)

# Schedules with full knowledge of the jobs. One row per jobset; objective, bound and warm_slowdown are mean slowdowns.
HINDSIGHT = table(
    "Hindsight",
    {
        "load": integers(1),
        "jobset": integers(0),
        "jobs": integers(1),
        **_at_least(1.0, "objective bound"),
        "status": pa.Column(str, pa.Check.isin(STATUSES, error=f"one of {', '.join(STATUSES)}")),
        "warm": pa.Column(str),
        "warm_slowdown": numbers(1.0),
    },
    ["load", "jobset"],
    [
        pa.Check(lambda frame: frame["objective"] >= frame["bound"] - NEARLY, error="objective at least bound"),
        pa.Check(
            lambda frame: frame["objective"] <= frame["warm_slowdown"] + NEARLY,
            error="objective at most warm_slowdown",
        ),
    ],
)

# How much of the distance from the best heuristic to hindsight each policy closes; null where the two do not
# differ clearly: the paired interval of their distance is not above 0.
HINDSIGHT_SUMMARY = table(
    "HindsightSummary",
    {
        **_words("scenario load policy"),
        "n": integers(1),
        **_at_least(1.0, "slowdown best_heuristic hindsight bound"),
        **_each("closes closes_low closes_high", lambda: finite(nullable=True)),
        "optimal": numbers(0.0),
    },
    ["scenario", "load", "policy"],
)

# Streams are endless jobsets of a pooled cluster, of which the arrivals of some steps are measured. The backlog is the
# number of jobs in some steps of each jobset, measured or not. `growth` is the least-squares slope of waiting jobs over
# all measured steps and `finished` the number of jobs that finished in them, both per 100 steps, by jobset.
STREAM_BACKLOG = table(
    "StreamBacklog",
    {
        "policy": pa.Column(str),
        "load": integers(1),
        **_counts(0, "jobset step waiting in_system"),  # in the system: waiting or running
        "growth": finite(),
        "finished": numbers(0.0),
    },
    [*KEYS, "step"],
)

# Results by job length, over all measured jobs of a load; class 1 has the shortest jobs.
STREAM_FAIRNESS = table(
    "StreamFairness",
    {
        "policy": pa.Column(str),
        "load": integers(1),
        "length": integers(1, LENGTHS),
        **_counts(1, "shortest longest jobs"),  # shortest and longest duration in the class
        "mean_slowdown": numbers(1.0),
        "share": numbers(0.0),  # of the sum of all slowdowns at the load
        "longest_wait": integers(0),  # steps from arrival to start; a lower bound for a job that never started
        "unfinished": integers(0),
    },
    ["policy", "load", "length"],
)

# Each policy at each load. A class of job length that a load does not have has no slowdown.
STREAM_SUMMARY = table(
    "StreamSummary",
    {
        "scenario": pa.Column(str),
        "load": integers(1),
        "policy": pa.Column(str),
        **_counts(1, "n jobs"),  # jobsets: independent replications; measured jobs
        **_at_least(1.0, "slowdown"),
        **_at_least(0.0, "slowdown_low slowdown_high"),
        **_at_least(1.0, "p99_slowdown"),  # mean over jobsets
        **_at_least(0.0, "p99_slowdown_low p99_slowdown_high"),
        **_at_least(0.0, "mean_longest_wait mean_longest_wait_low mean_longest_wait_high"),  # steps, mean over jobsets
        "worst_slowdown": numbers(1.0),  # over all jobsets
        "longest_wait": integers(0),  # over all jobsets
        "never_started": integers(0),  # measured jobs, when their stream was cut; waits until then count
        "utilisation": numbers(0.0),
        **{f"slowdown_length_{length}": numbers(1.0, nullable=True) for length in range(1, LENGTHS + 1)},
        **_each("growth growth_low growth_high finished finished_low finished_high", finite),  # jobs per 100 steps
        "overload": pa.Column(bool),  # arrivals end with the measured steps
    },
    ["scenario", "load", "policy"],
)
