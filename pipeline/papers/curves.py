"""Convergence read from a learning curve, in tenths of its updates, with intervals over the updates of a tenth.

These intervals cover the draws of one training run; they say nothing about another seed. An agent has converged in the
first tenth that is not clearly above the last one, by the mean cost of the jobs that it ran while training.
"""

from collections.abc import Callable, Sequence
from math import inf, sqrt
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
import pandas as pd

from pipeline.core.types import FloatArray
from pipeline.papers.evidence import Evidence
from pipeline.papers.rules import NO, UNDECIDED, YES, CannotTellError
from pipeline.papers.verdicts import Finding, Part

Choice = Callable[[Evidence, str], str]  # of an agent

PARTS = 10
FEWEST = 2  # updates of a part


class Convergence(NamedTuple):
    """When an agent converged: between two updates (`by` is inf if it may not have)."""

    agent: str
    after: int
    by: float
    ran: int  # updates
    size: int  # episodes of an update

    def __str__(self) -> str:
        """Return the convergence in words."""
        end = "or later" if self.by == inf else f"to {self.by:g}"
        return f"{self.agent} in updates {self.after + 1} {end} of {self.ran} (of {self.size} episodes each)"


def points(curve: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Return the updates and values of a metric, in order."""
    return curve[curve["metric"] == metric].sort_values("update")[["update", "value"]]


def tenths(curve: pd.DataFrame, metric: str, agent: str) -> list[FloatArray]:
    """Return the values of a metric in ten parts of its updates, of two or more each, so that they have intervals."""
    values = points(curve, metric)["value"].to_numpy()
    if len(values) < FEWEST * PARTS:
        raise CannotTellError(f"the curve of {agent} has {len(values)} updates with {metric}, {FEWEST * PARTS} needed")
    return np.array_split(values, PARTS)


def difference_interval(one: FloatArray, other: FloatArray, confidence: float) -> tuple[float, float]:
    """Return the interval of one mean minus another, of independent draws (normal, with Welch's error)."""
    error = sqrt(one.var(ddof=1) / len(one) + other.var(ddof=1) / len(other))
    half = NormalDist().inv_cdf((1 + confidence) / 2) * error
    difference = float(one.mean() - other.mean())
    return difference - half, difference + half


def with_interval(text: str, low: float, high: float, confidence: float) -> str:
    """Return a sentence with a difference and its interval."""
    return f"{text}: {(low + high) / 2:+.4g} ({100 * confidence:g} % interval {low:+.4g} to {high:+.4g})"


def change(parts: Sequence[FloatArray], name: str, confidence: float) -> tuple[str, float, float]:
    """Return the difference between the last tenth and the first, in words and as an interval."""
    low, high = difference_interval(parts[-1], parts[0], confidence)
    ends = f"{name} {parts[0].mean():.4g} in the first tenth of updates, {parts[-1].mean():.4g} in the last"
    return with_interval(ends, low, high, confidence), low, high


def update_size(evidence: Evidence, agent: str) -> int:
    """Return the number of episodes in one of an agent's updates."""
    part = evidence.roles.agents[agent].finetune
    return part.jobsets * getattr(part, "episodes", 1)


def convergence(evidence: Evidence, agent: str) -> Convergence:
    """Return when an agent converged; CannotTellError if its curve is too short, or its cost did not fall clearly."""
    curve = evidence.curves[agent]
    metric = "cost" if "cost" in set(curve["metric"]) else "slowdown"
    parts, updates = tenths(curve, metric, agent), np.array_split(points(curve, metric)["update"].to_numpy(), PARTS)
    lows = (difference_interval(part, parts[-1], evidence.confidence)[0] for part in parts)
    place = next(k for k, low in enumerate(lows) if low <= 0)
    if place == 0:
        raise CannotTellError(f"the cost of {agent} did not fall clearly while it learned, so it converged to nothing")
    ends = [int(some[-1]) for some in updates]
    by = inf if place == PARTS - 1 else ends[place]
    return Convergence(agent, ends[place - 1], by, ends[-1], update_size(evidence, agent))


def sooner(one: Convergence, other: Convergence, by_episodes: bool) -> Finding:
    """Judge whether one agent converged before another: undecided where their tenths overlap."""
    scale, against = (one.size, other.size) if by_episodes else (1, 1)
    before, after = one.by * scale <= other.after * against, other.by * against <= one.after * scale
    word = YES if before else NO if after else UNDECIDED
    return Finding(f"converged: {one}, {other}", word, [one.agent, other.agent])


def races(text: str, first: Choice, second: Choice) -> tuple[Part, Part]:
    """Return two parts: that the first of two agents converges before the other by updates, and by episodes."""

    def part(by_episodes: bool) -> Part:
        def judge(evidence: Evidence, agent: str) -> Finding:
            names = [choice(evidence, agent) for choice in (first, second)]
            one, other = (convergence(evidence, name) for name in names)
            return sooner(one, other, by_episodes)

        unit = "episodes" if by_episodes else "updates"
        return Part(f"{text}, by {unit}", f"the other converges before, by {unit}", judge)

    return part(False), part(True)
