"""Tables of what full knowledge of the jobs could have made of them."""

import numpy as np
import pandas as pd
import pandera.pandas as pa

from pipeline.schemas.columns import integers, numbers, table

NEARLY = 1e-9
STATUSES = ("OPTIMAL", "FEASIBLE", "WARM")  # proved best; better than the warm start; the warm start itself


def _not_below_the_bound(frame: pd.DataFrame) -> pd.Series:
    return frame["objective"] >= frame["bound"] - NEARLY


def _not_above_the_warm_start(frame: pd.DataFrame) -> pd.Series:
    return frame["objective"] <= frame["warm_slowdown"] + NEARLY


# One row a jobset; objective, bound and warm_slowdown are mean slowdowns.
HINDSIGHT = pa.DataFrameSchema(
    {
        "load": integers(1),
        "jobset": integers(0),
        "jobs": integers(1),
        "objective": numbers(1.0),
        "bound": numbers(1.0),
        "status": pa.Column(str, pa.Check.isin(STATUSES, error=f"one of {', '.join(STATUSES)}")),
        "warm": pa.Column(str),
        "warm_slowdown": numbers(1.0),
    },
    checks=[
        pa.Check(_not_below_the_bound, error="objective at least bound"),
        pa.Check(_not_above_the_warm_start, error="objective at most warm_slowdown"),
    ],
    strict=True,
    ordered=True,
    unique=["load", "jobset"],
    name="Hindsight",
)


def _share() -> pa.Column:
    return pa.Column("float64", pa.Check(np.isfinite, error="finite"), nullable=True)


# How much of the distance from the best heuristic to hindsight each policy closes; null where the two do not
# differ clearly: the paired interval of their distance is not above 0.
HINDSIGHT_SUMMARY = table(
    "HindsightSummary",
    {
        "scenario": pa.Column(str),
        "load": pa.Column(str),
        "policy": pa.Column(str),
        "n": integers(1),
        "slowdown": numbers(1.0),
        "best_heuristic": numbers(1.0),
        "hindsight": numbers(1.0),
        "bound": numbers(1.0),
        "closes": _share(),
        "closes_low": _share(),
        "closes_high": _share(),
        "optimal": numbers(0.0),
    },
    ["scenario", "load", "policy"],
)
