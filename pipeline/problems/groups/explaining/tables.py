"""Tables of what a controller does otherwise than shares by demand; decisions are those while any job waits.

Differences are parts of the cluster, mean over resources: what a group is given, less what it would be by demand.
"""

import numpy as np
import pandera.pandas as pa

from pipeline.schemas import DELAY
from pipeline.schemas.columns import integers, numbers, share, table


def _difference() -> pa.Column:
    return pa.Column("float64", pa.Check(np.isfinite, error="finite"))


# By load: the part of the cluster that other groups have, and the share of decisions in which it is less than ALIKE.
DIFFERENCES = table(
    "Differences", {"load": integers(1), "decisions": integers(1), "moved": share(), "alike": share()}, ["load"]
)

# Of each group in bins of one feature of its state.
STATES = table(
    "States",
    {
        "feature": pa.Column(str),
        "low": numbers(0.0),
        "high": numbers(0.0),
        "mean": numbers(0.0),
        "n": integers(1),
        "difference": _difference(),
    },
    ["feature", "low"],
)

# How often queues are served in each order, in groups of which jobs of several queues wait.
ORDERS = table(
    "Orders", {"load": integers(1), "order": pa.Column(str), "n": integers(0), "part": share()}, ["load", "order"]
)

# Mean part of the cluster that each group is given, and what it would be by demand in the same states.
SHARES = table(
    "GroupShares",
    {"load": integers(1), "group": integers(0), "share": numbers(0.0), "by_demand": numbers(0.0)},
    ["load", "group"],
)

# Comparisons as everywhere, of mean slowdowns and of mean waiting times.
OUTCOMES = pa.DataFrameSchema(
    {"metric": pa.Column(str, pa.Check.isin(("slowdown", "wait")))} | dict(DELAY.columns),
    strict=True,
    ordered=True,
    unique=["metric", "load", "policy", "against"],
    name="Outcomes",
)
