"""An agent's results compared with its previous ones, in one line and as metrics."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd

from pipeline.comparing.resampling import FEW
from pipeline.comparing.statistics import ALL, comparison
from pipeline.core.config import Evaluation

BEFORE = "before"
CHANGE, ENDS = "change", ("", " from", " to")  # names of metrics, after that of the agent; MLflow sorts columns


class Gap(NamedTuple):
    """Relative change of a mean, and the ends of its interval."""

    difference: float
    low: float
    high: float
    n: int  # jobsets, or windows of a log


def gap(agent: str, was: pd.DataFrame, now: pd.DataFrame, settings: Evaluation, seed: int) -> Gap:
    """Return the change of an agent over all loads, paired over the same jobsets; ValueError if the jobsets differ.

    `was` and `now` are its jobset results, with the compared column as `mean_slowdown`.
    """
    both = pd.concat([now[now["policy"] == agent], was[was["policy"] == agent].assign(policy=BEFORE)])
    references = {BEFORE: dict.fromkeys(both["load"].unique(), BEFORE)}
    rows = comparison(both, "", references, settings, np.random.default_rng(seed))
    over = rows[rows["load"] == ALL].iloc[0]
    return Gap(over["difference"], over["difference_low"], over["difference_high"], int(over["n"]))


def metrics(moved: Mapping[str, Gap | str]) -> dict[str, float]:
    """Return the percent of change with its interval by name of the metric: the mean over agents, then each agent.

    The mean's interval is the mean of the intervals, so it is too wide rather than too narrow.

    >>> metrics({"net": Gap(0.2, 0.1, 0.3, 50), "old": Gap(-0.1, -0.2, 0.0, 50), "other": "other jobsets"})["change"]
    5.0
    >>> list(metrics({"net": Gap(0.2, 0.1, 0.3, 50)}).items())[3:]
    [('net change', 20.0), ('net change from', 10.0), ('net change to', 30.0)]
    """
    gaps = {f"{agent} ": found[:3] for agent, found in moved.items() if isinstance(found, Gap)}
    rows = {"": np.mean(list(gaps.values()), axis=0), **gaps} if gaps else {}
    return {
        f"{start}{CHANGE}{end}": round(100 * float(value), 2)
        for start, row in rows.items()
        for end, value in zip(ENDS, row, strict=True)
    }


def line(agent: str, was: float | None, now: float, moved: Gap | str) -> str:
    """Return the line of an agent; without an interval, with the reason.

    >>> line("net", 3.24, 3.96, Gap(0.222, 0.2, 0.24, 50))
    'net: 3.24 -> 3.96 (+22 %, 20 to 24)'
    >>> line("net", 2.0, 1.0, "other jobsets")
    'net: 2.00 -> 1.00 (-50 %; no interval: other jobsets)'
    >>> line("net", None, 1.0, "")
    'net: new, 1.00'
    """
    if was is None:
        return f"{agent}: new, {now:.2f}"
    if isinstance(moved, str):
        change = f" ({100 * (now / was - 1):+.0f} %; no interval: {moved})" if was else f" (no interval: {moved})"
        return f"{agent}: {was:.2f} -> {now:.2f}{change}"
    span = "range " if moved.n < FEW else ""
    low, high = 100 * moved.low, 100 * moved.high
    digits = 0 if high - low >= 2 else 1  # "1 to 1" would be useless
    ends = f"{low:.{digits}f} to {high:.{digits}f}"
    return f"{agent}: {was:.2f} -> {now:.2f} ({100 * moved.difference:+.{digits}f} %, {span}{ends})"
