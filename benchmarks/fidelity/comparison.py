"""Figures of plays, and whether those of the simulator lie within the range of Slurm's own repeats.

A wait counts from a job's arrival; in Slurm from its submission, with both times in whole seconds. Utilisation is the
work of all jobs (time slept times processors) over the cluster's capacity from the first arrival to the last end. The
distance of two plays is the 1-Wasserstein distance of their start times: the mean gap of both when sorted, in seconds.

A play of Slurm lies outside the range of n others with probability 2 / (n + 1), so not every figure can be inside.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from benchmarks.fidelity.jobs import ShortJobs
from benchmarks.fidelity.simulated import CLOCKS, DISPATCHES, starts
from benchmarks.slurm.configuration import Cluster
from pipeline.core.types import FloatArray

MEASURES = ("mean_wait", "p99_wait", "utilisation", "distance")
SLURM = "slurm"


class Within(NamedTuple):
    """A figure of the simulator and those of Slurm."""

    order: str
    measure: str
    ours: float  # mean of its plays
    mean: float  # of Slurm's repeats
    low: float
    high: float

    @property
    def inside(self) -> bool:
        """Return whether ours lies in the range of Slurm's repeats; a distance cannot be too small."""
        return (self.measure == "distance" or self.low <= self.ours) and self.ours <= self.high


def figures(plays: pd.DataFrame, cluster: Cluster) -> pd.DataFrame:
    """Return a row of MEASURES for each order, player (Slurm or a simulator) and repeat."""
    rows = []
    for order, own in plays.groupby("order", sort=False):
        repeats = [play for _, play in own.sort_values("job").groupby("repeat")]
        jobs = jobs_of(repeats[0])
        theirs = [one["start_s"].to_numpy() - one["submit_s"].min() for one in repeats]
        for k, (play, begun) in enumerate(zip(repeats, theirs, strict=True)):
            others = [one for j, one in enumerate(theirs) if j != k]
            wait = (play["start_s"] - play["submit_s"]).to_numpy()
            until = float(play["end_s"].max() - play["submit_s"].min())
            rows.append([order, SLURM, k, *_measured(jobs, wait, until, begun, others, cluster)])
        for dispatch in dispatches_of(cluster):
            for clock in CLOCKS:
                for k in range(CLOCKS[clock]):
                    begun = starts(jobs, str(order), dispatch, clock, cluster, k)
                    until = float((begun + jobs.run_s).max())
                    told = _measured(jobs, begun - jobs.arrival_s, until, begun, theirs, cluster)
                    rows.append([order, f"{dispatch}, {clock}", k, *told])
    return pd.DataFrame(rows, columns=["order", "player", "repeat", *MEASURES])


def dispatches_of(cluster: Cluster) -> tuple[str, ...]:
    """Return the simulators to compare; only the replay has tiers and fair-share."""
    return DISPATCHES[-1:] if cluster.short or cluster.fair_share else DISPATCHES


def jobs_of(play: pd.DataFrame) -> ShortJobs:
    """Return the jobs of one play."""
    return ShortJobs._make(play[name].to_numpy() for name in ShortJobs._fields)


def _measured(
    jobs: ShortJobs, wait: FloatArray, until: float, begun: FloatArray, others: Sequence[FloatArray], cluster: Cluster
) -> list[float]:
    work = float((jobs.run_s * jobs.cpus * jobs.nodes).sum())
    gaps = [distance(begun, other) for other in others]
    busy = work / (cluster.nodes * cluster.cpus * until)
    return [float(wait.mean()), float(np.percentile(wait, 99)), busy, float(np.mean(gaps)) if gaps else 0.0]


def distance(one: FloatArray, other: FloatArray) -> float:
    """Return the distance of two plays of the same number of jobs.

    >>> distance(np.array([0.0, 5.0]), np.array([6.0, 0.0]))
    0.5
    """
    return float(np.abs(np.sort(one) - np.sort(other)).mean())


def within(found: pd.DataFrame, player: str) -> list[Within]:
    """Return each figure of a player with the range of Slurm's repeats."""
    rows = []
    for order, own in found.groupby("order", sort=False):
        theirs, ours = own[own["player"] == SLURM], own[own["player"] == player]
        for measure in MEASURES:
            spread = theirs[measure]
            rows.append(
                Within(str(order), measure, float(ours[measure].mean()), spread.mean(), spread.min(), spread.max())
            )
    return rows


def ranked(found: pd.DataFrame, player: str, measure: str = "mean_wait") -> list[str]:
    """Return the orders by mean, lowest first."""
    means = found[found["player"] == player].groupby("order")[measure].mean()
    return [str(order) for order in means.sort_values(kind="stable").index]
