"""What is read off a learning curve, in tenths of its updates, with intervals over the updates of a tenth.

These intervals are of what one run of training drew; of another seed they tell nothing. An agent has converged in the
first tenth that is not clearly above the last one, by the mean cost of the jobs that it played while training.
"""

from collections.abc import Callable, Sequence
from math import inf, sqrt
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
import pandas as pd

from pipeline.core import FloatArray
from pipeline.papers.evidence import Evidence
from pipeline.papers.rules import CANNOT, NO, YES
from pipeline.papers.verdicts import CannotTellError, Part, Verdict

PARTS = 10
FEWEST = 2  # updates of a part


class Course(NamedTuple):
    """When an agent converged: after so many updates, and by so many at the latest (inf: perhaps not yet)."""

    agent: str
    after: int
    by: float
    ran: int  # updates
    size: int  # episodes of an update

    def __str__(self) -> str:
        """Return it in words."""
        end = "or later" if self.by == inf else f"to {self.by:g}"
        return f"{self.agent} in updates {self.after + 1} {end} of {self.ran} (of {self.size} episodes each)"


def points(curve: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Return the updates and values of a metric, in order."""
    return curve[curve["metric"] == metric].sort_values("update")[["update", "value"]]


def tenths(curve: pd.DataFrame, metric: str, agent: str) -> list[FloatArray]:
    """Return the values of a metric in ten parts of its updates.

    Raises:
        CannotTellError: a part would have one update or none, and so no interval.
    """
    values = points(curve, metric)["value"].to_numpy()
    if len(values) < FEWEST * PARTS:
        raise CannotTellError(f"the curve of {agent} has {len(values)} updates with {metric}, {FEWEST * PARTS} needed")
    return np.array_split(values, PARTS)


def apart(one: FloatArray, other: FloatArray, confidence: float) -> tuple[float, float]:
    """Return the interval of one mean less another, of independent draws (normal, by Welch's error)."""
    error = sqrt(one.var(ddof=1) / len(one) + other.var(ddof=1) / len(other))
    half = NormalDist().inv_cdf((1 + confidence) / 2) * error
    difference = float(one.mean() - other.mean())
    return difference - half, difference + half


def change(parts: Sequence[FloatArray], name: str, confidence: float) -> tuple[str, float, float]:
    """Return how the last tenth differs from the first, in words and as an interval."""
    low, high = apart(parts[-1], parts[0], confidence)
    ends = f"{name} {parts[0].mean():.4g} in the first tenth of updates, {parts[-1].mean():.4g} in the last"
    return f"{ends}: {(low + high) / 2:+.4g} ({100 * confidence:g} % interval {low:+.4g} to {high:+.4g})", low, high


def validated(curve: pd.DataFrame, agent: str) -> dict[int, float]:
    """Return the costs on validation jobsets by update, in order.

    Raises:
        CannotTellError: there are none.
    """
    found = points(curve, "validation")
    if found.empty:
        raise CannotTellError(f"the curve of {agent} has no judgement on validation jobsets")
    return dict(zip(found["update"].astype(int), found["value"].astype(float), strict=True))


def size(evidence: Evidence, agent: str) -> int:
    """Return the episodes of one of an agent's updates."""
    part = evidence.roles.agents[agent].finetune
    return part.jobsets * getattr(part, "episodes", 1)


def course(evidence: Evidence, agent: str) -> Course:
    """Return when an agent converged.

    Raises:
        CannotTellError: its curve is too short, or its cost did not fall clearly, so that it learned nothing.
    """
    curve = evidence.curves[agent]
    metric = "cost" if "cost" in set(curve["metric"]) else "slowdown"
    parts, updates = tenths(curve, metric, agent), np.array_split(points(curve, metric)["update"].to_numpy(), PARTS)
    place = next(k for k, part in enumerate(parts) if apart(part, parts[-1], evidence.confidence)[0] <= 0)
    if place == 0:
        raise CannotTellError(f"the cost of {agent} did not fall clearly while it learned, so it converged to nothing")
    ends = [int(some[-1]) for some in updates]
    by = inf if place == PARTS - 1 else ends[place]
    return Course(agent, ends[place - 1], by, ends[-1], size(evidence, agent))


def sooner(one: Course, other: Course, by_episodes: bool) -> Verdict:
    """Judge whether one agent converged before another, which is open where their tenths overlap."""
    scale, against = (one.size, other.size) if by_episodes else (1, 1)
    first, second = ((one.after * scale, one.by * scale), (other.after * against, other.by * against))
    word = YES if first[1] <= second[0] else NO if second[1] <= first[0] else CANNOT
    return Verdict(f"converged: {one}, {other}", word, [one.agent, other.agent])


def races(text: str, pair: Callable[[Evidence, str], tuple[str, str]]) -> tuple[Part, Part]:
    """Return two parts: that the first of two agents converges before the other by updates, and by episodes."""

    def part(by_episodes: bool) -> Part:
        unit = "episodes" if by_episodes else "updates"

        def judge(evidence: Evidence, agent: str) -> Verdict:
            one, other = pair(evidence, agent)
            return sooner(course(evidence, one), course(evidence, other), by_episodes)

        return Part(f"{text}, by {unit}", f"the other converges before, by {unit}", judge)

    return part(False), part(True)
