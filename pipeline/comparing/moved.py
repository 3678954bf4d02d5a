"""An agent's results compared with its previous ones, in one line."""

from typing import NamedTuple

import numpy as np
import pandas as pd

from pipeline.comparing.resampling import FEW
from pipeline.comparing.statistics import ALL, comparison
from pipeline.core.config import Evaluation

BEFORE = "before"


class Gap(NamedTuple):
    """Relative change of a mean, and the ends of its interval."""

    difference: float
    low: float
    high: float
    n: int  # jobsets, or windows of a log


def gap(agent: str, was: pd.DataFrame, now: pd.DataFrame, settings: Evaluation, seed: int) -> Gap:
    """Return the change of an agent over all loads, paired over the same jobsets.

    Args:
        agent: its name.
        was: its previous jobset results, with the compared column as `mean_slowdown`.
        now: the current ones.
        settings: of the bootstrap.
        seed: of its resamples.

    Raises:
        ValueError: the jobsets differ.
    """
    both = pd.concat([now[now["policy"] == agent], was[was["policy"] == agent].assign(policy=BEFORE)])
    references = {BEFORE: dict.fromkeys(both["load"].unique(), BEFORE)}
    rows = comparison(both, "", references, settings, np.random.default_rng(seed))
    over = rows[rows["load"] == ALL].iloc[0]
    return Gap(over["difference"], over["difference_low"], over["difference_high"], int(over["n"]))


def line(agent: str, was: float | None, now: float, moved: Gap | None, why: str = "") -> str:
    """Return the line of an agent; without an interval, with the reason.

    >>> line("net", 3.24, 3.96, Gap(0.222, 0.2, 0.24, 50))
    'net: 3.24 -> 3.96 (+22 %, 20 to 24)'
    >>> line("net", 2.0, 1.0, None, "other jobsets")
    'net: 2.00 -> 1.00 (-50 %; no interval: other jobsets)'
    >>> line("net", None, 1.0, None)
    'net: new, 1.00'
    """
    if was is None:
        return f"{agent}: new, {now:.2f}"
    if moved is None:
        change = f" ({100 * (now / was - 1):+.0f} %; no interval: {why})" if was else f" (no interval: {why})"
        return f"{agent}: {was:.2f} -> {now:.2f}{change}"
    span = "range " if moved.n < FEW else ""
    low, high = 100 * moved.low, 100 * moved.high
    digits = 0 if high - low >= 2 else 1  # "1 to 1" would be useless
    ends = f"{low:.{digits}f} to {high:.{digits}f}"
    return f"{agent}: {was:.2f} -> {now:.2f} ({100 * moved.difference:+.{digits}f} %, {span}{ends})"
