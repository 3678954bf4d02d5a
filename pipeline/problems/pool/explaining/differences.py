"""Where an agent and SJF part ways on what the agent meets, as tables."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from pipeline.comparing.statistics import comparison
from pipeline.config import Evaluation
from pipeline.core import BoolArray, FloatArray, IntArray
from pipeline.problems.pool.explaining.recording import NEVER, AgentDecisions
from pipeline.problems.pool.explaining.tables import CLASSES, DIFFERENCES, WITHHELD
from pipeline.problems.pool.explaining.tree import OF_JOB
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


def outcomes(
    results: Mapping[str, Results],
    scenario: str,
    references: Sequence[str],
    settings: Evaluation,
    seed: int,
) -> pd.DataFrame:
    """Return OUTCOMES: policies on the same jobsets, by all jobs and by short and long ones, against references.

    A job is long if it is longer than the mean of all jobs.
    """
    jobs = pd.concat([done.jobs for done in results.values()], ignore_index=True)
    long = jobs["duration"] > jobs["duration"].mean()
    parts = {"all": pd.concat([done.jobsets for done in results.values()], ignore_index=True)}
    parts |= {"short": _jobsets(jobs[~long])} | ({"long": _jobsets(jobs[long])} if long.any() else {})
    frames = []
    for name, part in parts.items():
        against = {one: dict.fromkeys(part["load"].unique(), one) for one in references}
        compared = comparison(part, scenario, against, settings, np.random.default_rng(seed))
        frames.append(compared.assign(jobs=name)[["jobs", *compared.columns]])
    return pd.concat(frames, ignore_index=True)


def _jobsets(jobs: pd.DataFrame) -> pd.DataFrame:
    """Return the mean slowdown of each jobset's jobs of a class."""
    keys = ["policy", "load", "jobset"]
    found = jobs.groupby(keys, sort=False, as_index=False).agg(
        mean_slowdown=("slowdown", "mean"), unfinished=("unfinished", "sum")
    )
    return found.astype({"unfinished": "int64"})
