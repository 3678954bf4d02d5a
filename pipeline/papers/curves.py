"""What is read off a learning curve."""

import numpy as np
import pandas as pd

from pipeline.core import FloatArray
from pipeline.papers.verdicts import CannotTellError

PARTS = 10
NEAR = 0.05  # of the best validation: a curve this near has converged


def points(curve: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Return the updates and values of a metric, in order."""
    return curve[curve["metric"] == metric].sort_values("update")[["update", "value"]]


def tenths(curve: pd.DataFrame, metric: str, agent: str) -> FloatArray:
    """Return the means of a metric over ten parts of its updates (or over each, where there are fewer).

    Raises:
        CannotTellError: the curve has none of it, or one update only.
    """
    values = points(curve, metric)["value"].to_numpy()
    if len(values) < 2:
        raise CannotTellError(f"the curve of {agent} has {len(values)} updates with {metric}")
    return np.array([part.mean() for part in np.array_split(values, min(PARTS, len(values)))])


def ends(curve: pd.DataFrame, metric: str, agent: str) -> tuple[float, float]:
    """Return the means of a metric over the first and over the last tenth of its updates."""
    parts = tenths(curve, metric, agent)
    return float(parts[0]), float(parts[-1])


def validated(curve: pd.DataFrame, agent: str) -> dict[int, float]:
    """Return the costs on validation jobsets by update, in order.

    Raises:
        CannotTellError: there are none.
    """
    found = points(curve, "validation")
    if found.empty:
        raise CannotTellError(f"the curve of {agent} has no judgement on validation jobsets")
    return dict(zip(found["update"].astype(int), found["value"].astype(float), strict=True))


def first_near_best(curve: pd.DataFrame, agent: str) -> int:
    """Return the first update at which validation is near the curve's best; less is better."""
    found = validated(curve, agent)
    best = min(found.values())
    return next(update for update, value in found.items() if value <= best + NEAR * abs(best))


def rank_correlation(curve: pd.DataFrame, one: str, other: str) -> float | None:
    """Return Spearman's correlation of two metrics over updates; None for fewer than three, or if one stands still."""
    both = points(curve, one).merge(points(curve, other), on="update")
    if len(both) < 3:
        return None
    one_rank, other_rank = both["value_x"].rank(), both["value_y"].rank()
    if one_rank.nunique() == 1 or other_rank.nunique() == 1:
        return None
    return float(np.corrcoef(one_rank, other_rank)[0, 1])
