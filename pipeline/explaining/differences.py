"""Where an agent and SJF part ways in the states that the agent meets, as tables; load [B] is that of each episode."""

from collections.abc import Mapping
from itertools import pairwise

import numpy as np
import pandas as pd

from pipeline.core import BoolArray, FloatArray, IntArray
from pipeline.explaining.decisions import jobsets_of
from pipeline.explaining.recording import Decisions
from pipeline.explaining.tables import CLASSES, DIFFERENCES, EFFECTS, IMPORTANCE, JOBS, MACHINES, WITHHELD
from pipeline.explaining.tree import FEATURES, OF_JOB, PLACE, TreeCard, TreeFeatures, decide
from pipeline.simulation.results import Results, slowdown_column

DURATION_CLASSES, DEMAND_CLASSES = 5, 4  # at most
DIGITS = 6  # of what was kept in single precision
WAITING = (1, 2, 3, 5, 9, 17, 33, np.inf)  # where classes of waiting jobs begin
FREE = (0.0, 0.2, 0.4, 0.6, 0.8, np.inf)  # the same of the share that is free
BINS = 8  # of a feature, at most
SHUFFLES = 3


def differences(decisions: Decisions, load: IntArray) -> pd.DataFrame:
    """Return DIFFERENCES."""
    here, same, rest = load[decisions.episode].astype(float), decisions.same_job, decisions.features.rest
    slots, backlog, free = (rest[:, PLACE[name] - len(OF_JOB)] for name in ("waiting", "backlog", "free"))
    waiting = slots + backlog
    most = {"waiting": float(waiting.max()), "free": 1.0}
    classes = [("load", value, value, here == value) for value in np.unique(here)]
    for by, value, edges_of in (("waiting", waiting, WAITING), ("free", free, FREE)):
        classes += [(by, low, high, (value >= low) & (value < high)) for low, high in pairwise(edges_of)]
    shares = (
        same & decisions.same_machine,
        same & ~decisions.same_machine,
        decisions.starts & ~same,
        ~decisions.starts,
    )
    rows = []
    for by, low, high, inside in classes:
        if inside.any():
            top = min(high - (by == "waiting"), most.get(by, high))
            rows.append((by, float(low), float(top), int(inside.sum()), *(float(one[inside].mean()) for one in shares)))
    return pd.DataFrame(rows, columns=list(DIFFERENCES.columns))


def jobs(decisions: Decisions, load: IntArray) -> pd.DataFrame:
    """Return JOBS."""
    another, agent, sjf = decisions.starts & ~decisions.same_job, decisions.agent, decisions.sjf
    columns = {
        "smaller": (decisions.of("demand", agent) < decisions.of("demand", sjf)).astype(float),
        "waited_longer": (decisions.of("waited", agent) > decisions.of("waited", sjf)).astype(float),
    }
    for name in ("duration", "demand"):
        columns |= {name: decisions.of(name, agent), f"{name}_sjf": decisions.of(name, sjf)}
    frame = pd.DataFrame(columns).astype(float).round(DIGITS).assign(load=load[decisions.episode])
    rows = frame[another].groupby("load")
    shares = rows[["smaller", "waited_longer"]].mean()
    found = rows.median().assign(smaller=shares["smaller"], waited_longer=shares["waited_longer"])
    return _by_load(found, another, decisions, load, list(JOBS.columns))


def machines(decisions: Decisions, load: IntArray) -> pd.DataFrame:
    """Return MACHINES."""
    names, placement = list(MACHINES.columns), decisions.placement
    frame = pd.DataFrame({name: getattr(placement, name) for name in names[2:]})
    frame = frame.assign(load=load[decisions.episode])[placement.uneven]
    return _by_load(frame.groupby("load").mean(), placement.uneven, decisions, load, names)


def _by_load(
    found: pd.DataFrame, counted: BoolArray, decisions: Decisions, load: IntArray, columns: list[str]
) -> pd.DataFrame:
    """Return a row for each load, also of those without such decisions, and how many there are."""
    here = load[decisions.episode]
    loads = np.unique(here).astype(np.int64)
    count = [int(counted[here == value].sum()) for value in loads]
    return found.reindex(loads).rename_axis("load").reset_index().assign(decisions=count)[columns]


def withheld(decisions: Decisions, load: IntArray) -> pd.DataFrame:
    """Return WITHHELD."""
    place, slot = np.nonzero(decisions.features.fits & ~decisions.starts[:, None])
    job, until = decisions.features.job[place, slot].astype(float), decisions.until_arrival[place]
    columns = {
        "load": load[decisions.episode[place]].astype(np.int64),
        **{name: job[:, PLACE[name]] for name in ("duration", "demand", "waited", "shorter_waiting")},
        "until_arrival": until,
        "after_last_arrival": np.isnan(until).astype(float),
    }
    by_load = pd.DataFrame(columns).groupby("load")
    found = by_load.mean().assign(withheld=by_load.size()).reindex(np.unique(load[decisions.episode]))
    found = found.assign(withheld=found["withheld"].fillna(0).astype("int64"))
    return found.rename_axis("load").reset_index()[list(WITHHELD.columns)]


class Times:
    """The N times that a job was withheld, or started though it could have been: what a chance to be withheld is of."""

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
            share = float(times.withheld[inside].mean()) if inside.any() else np.nan
            rows.append((low, high, narrow, wide, int(inside.sum()), share))
    return pd.DataFrame(rows, columns=list(CLASSES.columns)).astype({"n": "int64"})


def edges(values: FloatArray, most: int) -> list[tuple[float, float]]:
    """Return the least and largest value of each of at most so many bins of about equally many values.

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
    """Return what policies made of every jobset, by all jobs and by short and long ones.

    A job is long if it is longer than the mean of all jobs.
    """
    every = jobsets_of(results)
    column = slowdown_column(every)  # in real time, the bounded one
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
    """Return EFFECTS: the share of jobs withheld in bins of each feature that varies, all others as they come."""
    rows = []
    for place, name in enumerate(FEATURES):
        values = times.rows[:, place]
        bins = edges(values, BINS)
        for low, high in bins if len(bins) > 1 else ():
            inside = (values >= low) & (values <= high)
            share = float(times.withheld[inside].mean())
            rows.append((name, low, high, float(values[inside].mean()), int(inside.sum()), share))
    kinds = {name: str(column.dtype) for name, column in EFFECTS.columns.items()}
    return pd.DataFrame(rows, columns=list(kinds)).astype(kinds)


def agreement(card: TreeCard, decisions: Decisions, features: TreeFeatures | None = None) -> float:
    """Return the share of decisions in which a tree does as the agent, or starts a job as short."""
    does = decide(card, decisions.features if features is None else features)
    same = decisions.of("duration", does) == decisions.of("duration", decisions.agent)
    return float((((does < decisions.slots) == decisions.starts) & same).mean())


def importance(card: TreeCard, decisions: Decisions, rng: np.random.Generator) -> pd.DataFrame:
    """Return IMPORTANCE, the most important first: agreement lost when a feature is shuffled, mean of some shuffles.

    Features of jobs are shuffled among the jobs that could start, others among decisions.
    """
    whole = agreement(card, decisions)
    rows = []
    for place, name in enumerate(FEATURES):
        asked = any(node.feature == name for node in card.nodes)
        shuffles = [_shuffled(decisions.features, place, rng) for _ in range(SHUFFLES if asked else 0)]
        lost = [whole - agreement(card, decisions, shuffled) for shuffled in shuffles]
        rows.append((name, whole, float(np.mean(lost)) if lost else 0.0))
    return pd.DataFrame(rows, columns=list(IMPORTANCE.columns)).sort_values("lost", ascending=False, kind="stable")


def _shuffled(features: TreeFeatures, place: int, rng: np.random.Generator) -> TreeFeatures:
    """Return features in which one feature is that of others."""
    job, rest = features.job.copy(), features.rest.copy()
    if place < len(OF_JOB):
        values: FloatArray = job[features.may_start, place]
        job[features.may_start, place] = rng.permutation(values)
    else:
        rest[:, place - len(OF_JOB)] = rng.permutation(rest[:, place - len(OF_JOB)])
    return features._replace(job=job, rest=rest)
