"""Tables of differences between an agent and SJF, at the agent's decisions in which a job could start.

`load` [B] is the load of each episode.
"""

from collections.abc import Mapping
from itertools import pairwise

import numpy as np
import pandas as pd
import pandera.pandas as pa

from pipeline.core.schemas.columns import integers, numbers, share, table
from pipeline.core.schemas.tables import COMPARISON
from pipeline.core.types import BoolArray, FloatArray, IntArray
from pipeline.interactive.explaining.decisions import Decisions, jobsets_of
from pipeline.interactive.explaining.tree import FEATURES, OF_JOB, PLACE, TreeCard, TreeFeatures, decide
from pipeline.simulation.results import Results, slowdown_column

DURATION_CLASSES, DEMAND_CLASSES = 5, 4  # at most
DIGITS = 6  # of values in single precision
WAITING = (1, 2, 3, 5, 9, 17, 33, np.inf)  # lower bounds of classes by waiting jobs
FREE = (0.0, 0.2, 0.4, 0.6, 0.8, np.inf)  # the same by free share
BINS = 8  # of a feature, at most
SHUFFLES = 3

# Shares of decisions by load, by jobs waiting, and by the least free share of a resource. The agent starts SJF's job or
# one as short, on SJF's machine or on another machine; another job; or none. Bounds are inclusive.
DIFFERENCES = table(
    "Differences",
    {
        "by": pa.Column(str, pa.Check.isin(("load", "waiting", "free"))),
        **{name: numbers(0.0) for name in ("from", "to")},
        "decisions": integers(1),
        **{name: share() for name in ("agrees", "another_machine", "another_job", "waits")},
    },
    ["by", "from"],
)

# Jobs that start instead of SJF's, which are always longer: shares that are smaller (by the largest share of all
# machines that a job holds) and that have waited longer; medians of both jobs. Null without decisions.
JOBS = table(
    "Jobs",
    {"load": integers(1), "decisions": integers(0)}
    | {name: share(nullable=True) for name in ("smaller", "waited_longer")}
    | {name: numbers(0.0, nullable=True) for name in ("duration", "duration_sjf", "demand", "demand_sjf")},
    ["load"],
)

# Machines of jobs that could run on several machines, not all equally full: shares on the fullest and on the emptiest
# of these, compared with chance and with SJF, which takes the first.
PLACES = [name + of for name in ("fullest", "emptiest") for of in ("", "_by_chance", "_first")]
MACHINES = table(
    "Machines",
    {"load": integers(1), "decisions": integers(0)} | {name: share(nullable=True) for name in PLACES},
    ["load"],
)

# Means over the jobs that could start in decisions in which none did, once for each such decision; null without any.
# `until_arrival` is the mean over decisions with a next arrival.
MEANS = ("duration", "demand", "waited", "shorter_waiting", "until_arrival")
WITHHELD = table(
    "Withheld",
    {"load": integers(1), "withheld": integers(0)}
    | {name: numbers(0.0, nullable=True) for name in MEANS}
    | {"after_last_arrival": share(nullable=True)},
    ["load"],
)

# Share withheld, of the times that a job of a class was or could have been withheld. Bounds are inclusive.
CLASSES = table(
    "Classes",
    {name: numbers(0.0) for name in ("duration_from", "duration_to", "demand_from", "demand_to")}
    | {"n": integers(0), "withheld": share(nullable=True)},
    ["duration_from", "demand_from"],
)

# The same in bins of one feature.
EFFECTS = table(
    "Effects",
    {"feature": pa.Column(str)}
    | {name: pa.Column("float64") for name in ("low", "high", "mean")}
    | {"n": integers(1), "withheld": share()},
    ["feature", "low"],
)

# Share of the agent's decisions that the tree no longer reproduces if a feature is shuffled.
IMPORTANCE = table(
    "Importance", {"feature": pa.Column(str), "agreement": share(), "lost": pa.Column("float64")}, ["feature"]
)

# Comparisons of all jobs, of short ones and of long ones.
OUTCOMES = table(
    "Outcomes",
    {"jobs": pa.Column(str, pa.Check.isin(("all", "short", "long")))} | dict(COMPARISON.columns),
    ["jobs", "load", "policy", "against"],
)

SCHEMAS = {
    schema.name.lower(): schema
    for schema in (DIFFERENCES, JOBS, MACHINES, WITHHELD, CLASSES, EFFECTS, IMPORTANCE, OUTCOMES)
}


def differences(decisions: Decisions, load: IntArray) -> pd.DataFrame:
    """Return DIFFERENCES."""
    here, same, rest = load[decisions.episode].astype(float), decisions.same_job, decisions.features.rest
    slots, backlog, free = (rest[:, PLACE[name] - len(OF_JOB)] for name in ("waiting", "backlog", "free"))
    waiting = slots + backlog
    most = {"waiting": float(waiting.max()), "free": 1.0}
    classes = [("load", value, value, here == value) for value in np.unique(here)]
    for by, value, edges_of in (("waiting", waiting, WAITING), ("free", free, FREE)):
        classes += [(by, low, high, (value >= low) & (value < high)) for low, high in pairwise(edges_of)]
    starts, machine = decisions.starts, decisions.same_machine
    shares = (same & machine, same & ~machine, starts & ~same, ~starts)
    rows = []
    for by, low, high, inside in classes:
        if inside.any():
            top = min(high - (by == "waiting"), most.get(by, high))
            rows.append((by, float(low), float(top), int(inside.sum()), *(float(one[inside].mean()) for one in shares)))
    return pd.DataFrame(rows, columns=list(DIFFERENCES.columns))


def jobs(decisions: Decisions, load: IntArray) -> pd.DataFrame:
    """Return JOBS."""
    another, agent, sjf = decisions.starts & ~decisions.same_job, decisions.agent, decisions.sjf
    columns: dict[str, BoolArray | FloatArray] = {
        "smaller": decisions.of("demand", agent) < decisions.of("demand", sjf),
        "waited_longer": decisions.of("waited", agent) > decisions.of("waited", sjf),
    }
    shares = dict.fromkeys(columns, "mean")
    for name in ("duration", "demand"):
        columns |= {name: decisions.of(name, agent), f"{name}_sjf": decisions.of(name, sjf)}
    frame, here = pd.DataFrame(columns).astype(float).round(DIGITS), load[decisions.episode]
    return _by_load(frame[another], here[another], here, JOBS, dict.fromkeys(columns, "median") | shares)


def machines(decisions: Decisions, load: IntArray) -> pd.DataFrame:
    """Return MACHINES."""
    placement, here = decisions.placement, load[decisions.episode]
    frame = pd.DataFrame({name: getattr(placement, name) for name in PLACES})
    return _by_load(frame[placement.uneven], here[placement.uneven], here, MACHINES)


def withheld(decisions: Decisions, load: IntArray) -> pd.DataFrame:
    """Return WITHHELD."""
    place, slot = np.nonzero(decisions.features.fits & ~decisions.starts[:, None])
    job, until = decisions.features.job[place, slot].astype(float), decisions.until_arrival[place]
    columns = {name: job[:, PLACE[name]] for name in ("duration", "demand", "waited", "shorter_waiting")}
    frame = pd.DataFrame(columns | {"until_arrival": until, "after_last_arrival": np.isnan(until).astype(float)})
    here = load[decisions.episode]
    return _by_load(frame, here[place], here, WITHHELD)


def _by_load(
    rows: pd.DataFrame, load: IntArray, every: IntArray, schema: pa.DataFrameSchema, how: str | dict[str, str] = "mean"
) -> pd.DataFrame:
    """Return the number of rows, the schema's second column, and a statistic of each column, for each of all loads."""
    columns, loads, grouped = list(schema.columns), np.unique(every).astype(np.int64), rows.groupby(load)
    found = grouped.agg(how).reindex(loads).assign(**{columns[1]: grouped.size().reindex(loads, fill_value=0)})
    return found.rename_axis("load").reset_index()[columns]


class Times:
    """The N times that a job was withheld, or started though it could have been withheld; shares refer to these."""

    def __init__(self, decisions: Decisions) -> None:
        place, slot = np.nonzero(decisions.features.fits)
        did = decisions.agent[place]
        kept = ((did == slot) & decisions.features.may_wait[place]) | (did == decisions.slots)
        rows = decisions.features.rows(decisions.features.fits)
        self.rows: FloatArray = rows[kept].astype(float).round(DIGITS)  # [N, FEATURES]
        self.withheld: BoolArray = did[kept] == decisions.slots  # [N]


def classes(times: Times) -> pd.DataFrame:
    """Return CLASSES: a grid of durations and demands."""
    duration, demand = (times.rows[:, PLACE[name]] for name in ("duration", "demand"))
    rows = []
    for low, high in edges(duration, DURATION_CLASSES):
        for narrow, wide in edges(demand, DEMAND_CLASSES):
            inside = (duration >= low) & (duration <= high) & (demand >= narrow) & (demand <= wide)
            part = float(times.withheld[inside].mean()) if inside.any() else np.nan
            rows.append((low, high, narrow, wide, int(inside.sum()), part))
    return pd.DataFrame(rows, columns=list(CLASSES.columns)).astype({"n": "int64"})


def edges(values: FloatArray, most: int) -> list[tuple[float, float]]:
    """Return the least and largest value of each of up to `most` bins with similar numbers of values.

    >>> edges(np.array([1.0, 1.0, 1.0, 2.0, 3.0, 9.0]), 3)
    [(1.0, 1.0), (2.0, 2.0), (3.0, 9.0)]
    """
    if not len(values):
        return []
    kinds, count = np.unique(values, return_counts=True)
    middle = (np.cumsum(count) - count / 2) / len(values)  # a value is never split between two bins
    groups = np.unique(np.minimum(middle * most, most - 1).astype(np.int64), return_inverse=True)[1]
    return [(float(kinds[groups == k][0]), float(kinds[groups == k][-1])) for k in range(groups.max() + 1)]


def by_length(results: Mapping[str, Results]) -> dict[str, pd.DataFrame]:
    """Return results on each jobset for all jobs, for short and for long ones (longer than the mean of all jobs)."""
    every = jobsets_of(results)
    column = slowdown_column(every)  # in continuous time, the bounded one
    jobs = pd.concat([done.jobs for done in results.values()], ignore_index=True)
    long, parts = jobs["duration"] > jobs["duration"].mean(), {"all": every.assign(mean_slowdown=every[column])}
    for name, which in (("short", ~long), ("long", long)):
        if which.any():
            found = jobs[which].groupby(["policy", "load", "jobset"], sort=False, as_index=False)
            parts[name] = found.agg(
                mean_slowdown=(column.removeprefix("mean_"), "mean"), unfinished=("unfinished", "sum")
            ).astype({"unfinished": "int64"})
    return parts


def effects(times: Times) -> pd.DataFrame:
    """Return EFFECTS: the share of withheld jobs in bins of each varying feature, ignoring all others."""
    rows = []
    for place, name in enumerate(FEATURES):
        values = times.rows[:, place]
        bins = edges(values, BINS)
        for low, high in bins if len(bins) > 1 else ():
            inside = (values >= low) & (values <= high)
            part = float(times.withheld[inside].mean())
            rows.append((name, low, high, float(values[inside].mean()), int(inside.sum()), part))
    kinds = {name: str(column.dtype) for name, column in EFFECTS.columns.items()}
    return pd.DataFrame(rows, columns=list(kinds)).astype(kinds)


def agreement(card: TreeCard, decisions: Decisions, features: TreeFeatures | None = None) -> float:
    """Return the share of decisions in which a tree does the same as the agent, or starts a job as short."""
    does = decide(card, decisions.features if features is None else features)
    same = decisions.of("duration", does) == decisions.of("duration", decisions.agent)
    return float((((does < decisions.slots) == decisions.starts) & same).mean())


def importance(card: TreeCard, decisions: Decisions, rng: np.random.Generator) -> pd.DataFrame:
    """Return the table IMPORTANCE: agreement lost when a feature is shuffled, mean over shuffles, highest first.

    Features of jobs are shuffled among the jobs that could start, others among decisions.
    """
    whole = agreement(card, decisions)
    rows = []
    for place, name in enumerate(FEATURES):
        used = any(node.feature == name for node in card.nodes)
        shuffles = [_shuffled(decisions.features, place, rng) for _ in range(SHUFFLES if used else 0)]
        lost = [whole - agreement(card, decisions, shuffled) for shuffled in shuffles]
        rows.append((name, whole, float(np.mean(lost)) if lost else 0.0))
    return pd.DataFrame(rows, columns=list(IMPORTANCE.columns)).sort_values("lost", ascending=False, kind="stable")


def _shuffled(features: TreeFeatures, place: int, rng: np.random.Generator) -> TreeFeatures:
    job, rest = features.job.copy(), features.rest.copy()
    if place < len(OF_JOB):
        values: FloatArray = job[features.may_start, place]
        job[features.may_start, place] = rng.permutation(values)
    else:
        rest[:, place - len(OF_JOB)] = rng.permutation(rest[:, place - len(OF_JOB)])
    return features._replace(job=job, rest=rest)
