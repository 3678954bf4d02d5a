"""Table of a busy day, and the waits of its jobs before and after the settings, on Slurm and in replays.

Replays are those of site advice, of one pool of processors or of the nodes. Changes are paired: the k-th run after the
settings with the k-th before, and replays with the same submissions.
"""

from collections.abc import Callable
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
import pandas as pd
import pandera.pandas as pa

from pipeline.core.schemas.columns import finite, integers, numbers, table
from pipeline.core.types import FloatArray
from pipeline.sites.figures import TAIL, expanded, slowdown

SLURM, POOL, NODES = PLAYERS = ("slurm", "pool", "nodes")  # the last are replays: of a pool of processors, of nodes
BEFORE, AFTER = "before", "after"
SPARE = 0.025  # on each side of an interval of 95 %
FEWEST = 3  # pairs with an interval

# Outcome of every job: a row for each job of each run or replay. Times are seconds from the beginning of the day.
DAY = table(
    "Day",
    {
        "player": pa.Column(str, pa.Check.isin(PLAYERS)),
        "setting": pa.Column(str, pa.Check.isin([BEFORE, AFTER])),
        "repeat": integers(0),
        "speed": numbers(1.0),  # seconds of Slurm's clock in a real one; 1 in replays
        "part": pa.Column(str, pa.Check.isin(["running", "day", "later"])),
        "job": integers(0),  # in the log
        "planned_s": numbers(0.0),  # submission
        "run_s": numbers(0.0),
        "limit_s": numbers(0.0),
        "cpus": integers(1),
        "submit_s": finite(),
        "start_s": finite(),
        "end_s": finite(nullable=True),  # missing: it still ran
    },
    unique=["player", "setting", "repeat", "job"],
)
MEASURES: dict[str, Callable[[FloatArray, FloatArray], float]] = {
    "mean wait": lambda wait, run: float(wait.mean()),
    "mean bounded slowdown": lambda wait, run: float(slowdown(wait, run).mean()),
    "99th percentile of waits": lambda wait, run: float(np.quantile(wait, TAIL, method="inverted_cdf")),
    "longest wait": lambda wait, run: float(wait.max()),
}


class Effect(NamedTuple):
    """A figure before and after the settings, and its relative change."""

    measure: str
    before: float
    after: float
    change: float
    low: float
    high: float
    pairs: int


def effects(day: pd.DataFrame, player: str) -> list[Effect]:
    """Return the effect of the settings on the waits of the day's jobs, for each measure; none without a pair."""
    pairs = [pair for _, pair in _counted(day, player).groupby("repeat") if pair["setting"].nunique() == 2]
    found = []
    for measure in MEASURES if pairs else ():
        before, after = (
            np.array([value(pair[pair["setting"] == setting], measure) for pair in pairs])
            for setting in (BEFORE, AFTER)
        )
        low, high = interval(after / before - 1)
        change = float((after / before - 1).mean())
        found.append(Effect(measure, float(before.mean()), float(after.mean()), change, low, high, len(pairs)))
    return found


def value(jobs: pd.DataFrame, measure: str) -> float:
    """Return a measure of some jobs of one run."""
    wait = (jobs["start_s"] - jobs["submit_s"]).to_numpy()
    return MEASURES[measure](np.maximum(wait, 0.0), jobs["run_s"].to_numpy())


def interval(values: FloatArray) -> tuple[float, float]:
    """Return the interval of a mean by Student's t, or unknown ends for fewer than three values.

    >>> [round(end, 2) for end in interval(np.array([1.0, 2.0, 3.0, 4.0, 5.0]))]
    [1.04, 4.96]
    """
    count = len(values)
    if count < FEWEST:
        return float("nan"), float("nan")
    half = -NormalDist().inv_cdf(expanded(SPARE, count)) * float(values.std()) / count**0.5
    return float(values.mean()) - half, float(values.mean()) + half


def overheads(day: pd.DataFrame) -> dict[str, FloatArray]:
    """Return seconds of the fast clock by which Slurm's jobs are submitted late, and hold processors too long."""
    own = day[(day["player"] == SLURM) & (day["part"] != "running")]
    ended = own[own["end_s"].notna()]
    return {
        "submitted late by": (own["submit_s"] - own["planned_s"]).to_numpy(),
        "processors held longer by": (ended["end_s"] - ended["start_s"] - ended["run_s"]).to_numpy(),
    }


def lines(day: pd.DataFrame) -> list[str]:
    """Return a line for each effect, and for how much the fast clock delays Slurm."""
    found = []
    for player in PLAYERS:
        for one in effects(day, player):
            ends = f" ({100 * one.low:+.1f} to {100 * one.high:+.1f})" if one.pairs >= FEWEST else ""
            change = f"{one.before:,.4g} before, {one.after:,.4g} after: {100 * one.change:+.1f} %{ends}"
            found.append(f"{player}: {one.measure}: {change}, n = {one.pairs} pairs")
    late = [f"{what} {np.median(seconds):.0f} s" for what, seconds in overheads(day).items() if len(seconds)]
    return found + ([f"{SLURM}: medians of the fast clock's delays: {', '.join(late)}"] if late else [])


def _counted(day: pd.DataFrame, player: str) -> pd.DataFrame:
    return day[(day["player"] == player) & (day["part"] == "day")]
