"""Where an agent and SJF part ways on what the agent meets, as tables."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from pipeline.core import BoolArray, FloatArray, IntArray
from pipeline.explaining.decisions import jobsets_of
from pipeline.problems.pool.explaining.recording import NEVER, AgentDecisions
from pipeline.problems.pool.explaining.tables import CLASSES, DIFFERENCES, EFFECTS, IMPORTANCE, WITHHELD
from pipeline.problems.pool.explaining.tree import FEATURES, OF_JOB, TreeCard, TreeFeatures, decide
from pipeline.simulation.results import Results

DURATION_CLASSES, DEMAND_CLASSES = 5, 4  # at most
DIGITS = 6  # of what was kept in single precision
PLACE = {name: place for place, name in enumerate(OF_JOB)}


def agrees(decisions: AgentDecisions) -> BoolArray:
    """Return in which decisions [D] the agent starts SJF's job or one as short, which SJF takes as well."""
    started = decisions.agent < decisions.slots
    return np.asarray(started & (decisions.duration(decisions.agent) == decisions.duration(decisions.sjf)))


def differences(decisions: AgentDecisions, load: IntArray) -> pd.DataFrame:
    """Return DIFFERENCES; load [B] is that of each episode."""
    same, void = agrees(decisions), decisions.agent == decisions.slots
    another = ~same & ~void
    narrower = decisions.demand(decisions.agent) < decisions.demand(decisions.sjf)
    columns = {
        "load": load[decisions.episode].astype(np.int64),
        "decisions": 1,
        "agrees": same,
        "withholds": void,
        "starts_another": another,
        "another_is_narrower": np.where(another, narrower.astype(float), np.nan),
    }
    by_load = pd.DataFrame(columns).groupby("load", as_index=False)
    return by_load.mean().assign(decisions=by_load["decisions"].sum()["decisions"])[list(DIFFERENCES.columns)]


def withheld(decisions: AgentDecisions, load: IntArray) -> pd.DataFrame:
    """Return WITHHELD; load [B] is that of each episode."""
    place, slot = np.nonzero(decisions.features.may_start)
    held = decisions.agent[place] == decisions.slots
    place, slot = place[held], slot[held]
    job, until = decisions.features.job[place, slot], decisions.until_arrival[place]
    of_job = {name: job[:, PLACE[name]].astype(float) for name in ("duration", "demand", "waited", "shorter_waiting")}
    columns = {
        "load": load[decisions.episode[place]].astype(np.int64),
        "withheld": np.ones(len(place), dtype=np.int64),
        **of_job,
        "until_arrival": np.where(until == NEVER, np.nan, until),
        "after_last_arrival": (until == NEVER).astype(float),
    }
    by_load = pd.DataFrame(columns).groupby("load")
    found = by_load.mean().assign(withheld=by_load["withheld"].sum()).reindex(np.unique(load[decisions.episode]))
    found = found.assign(withheld=found["withheld"].fillna(0).astype("int64"))
    return found.rename_axis("load").reset_index()[list(WITHHELD.columns)]


class Times:
    """The N times that a job was withheld, or started though it could have been: what a chance to be withheld is of."""

    def __init__(self, decisions: AgentDecisions) -> None:
        place, slot = np.nonzero(decisions.features.may_start)
        did = decisions.agent[place]
        kept = ((did == slot) & decisions.features.may_wait[place]) | (did == decisions.slots)
        self.rows: FloatArray = decisions.features.rows()[kept].astype(float).round(DIGITS)  # [N, FEATURES]
        self.withheld: BoolArray = did[kept] == decisions.slots  # [N]


def classes(times: Times) -> pd.DataFrame:
    """Return CLASSES: a grid of durations and demands."""
    duration, demand = (times.rows[:, PLACE[name]] for name in ("duration", "demand"))
    longs, wides = edges(duration, DURATION_CLASSES), edges(demand, DEMAND_CLASSES)
    rows = []
    for low, high in longs:
        for narrow, wide in wides:
            inside = (duration >= low) & (duration <= high) & (demand >= narrow) & (demand <= wide)
            share = float(times.withheld[inside].mean()) if inside.any() else np.nan
            rows.append((int(low), int(high), narrow, wide, int(inside.sum()), share))
    return pd.DataFrame(rows, columns=list(CLASSES.columns))


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
    jobs = pd.concat([done.jobs for done in results.values()], ignore_index=True)
    long = jobs["duration"] > jobs["duration"].mean()
    parts = {"all": jobsets_of(results), "short": _jobsets(jobs[~long])}
    return parts | ({"long": _jobsets(jobs[long])} if long.any() else {})


def _jobsets(jobs: pd.DataFrame) -> pd.DataFrame:
    """Return the mean slowdown of each jobset's jobs of a class."""
    keys = ["policy", "load", "jobset"]
    found = jobs.groupby(keys, sort=False, as_index=False).agg(
        mean_slowdown=("slowdown", "mean"), unfinished=("unfinished", "sum")
    )
    return found.astype({"unfinished": "int64"})


BINS = 8  # at most
SHUFFLES = 3


def effects(times: Times) -> pd.DataFrame:
    """Return EFFECTS: the share of jobs withheld in bins of each feature, all others as they come."""
    rows = []
    for place, name in enumerate(FEATURES):
        values = times.rows[:, place]
        for low, high in edges(values, BINS):
            inside = (values >= low) & (values <= high)
            share = float(times.withheld[inside].mean())
            rows.append((name, low, high, float(values[inside].mean()), int(inside.sum()), share))
    return pd.DataFrame(rows, columns=list(EFFECTS.columns)).astype({"n": "int64"})


def agreement(card: TreeCard, decisions: AgentDecisions, features: TreeFeatures | None = None) -> float:
    """Return the share of decisions in which a tree does as the agent, or starts a job as short."""
    does = decide(card.tree(), card.threshold, decisions.features if features is None else features)
    started = (does < decisions.slots) == (decisions.agent < decisions.slots)
    return float((started & (decisions.duration(does) == decisions.duration(decisions.agent))).mean())


def importance(card: TreeCard, decisions: AgentDecisions, rng: np.random.Generator) -> pd.DataFrame:
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
