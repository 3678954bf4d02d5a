"""Tables of what a learned policy does differently from SJF. Decisions are those in which a job could start."""

import pandera.pandas as pa

from pipeline.schemas.columns import integers, numbers, table
from pipeline.schemas.tables import COMPARISON


def _share(nullable: bool = False) -> pa.Column:
    return pa.Column("float64", pa.Check.in_range(0.0, 1.0, error="within 0 and 1"), nullable=nullable)


# Shares of decisions by load: the same job as SJF or one as short; none; another job. Of the others, how many are
# narrower than SJF's.
DIFFERENCES = table(
    "Differences",
    {
        "load": integers(1),
        "decisions": integers(1),
        "agrees": _share(),
        "withholds": _share(),
        "starts_another": _share(),
        "another_is_narrower": _share(nullable=True),
    },
    ["load"],
)

# Means over the jobs that could start in decisions in which none was, once for each such step; null where there are
# none. Until the next arrival, of those steps that have one.
WITHHELD = table(
    "Withheld",
    {
        "load": integers(1),
        "withheld": integers(0),
        "duration": numbers(1.0, nullable=True),
        "demand": numbers(0.0, nullable=True),
        "waited": numbers(0.0, nullable=True),
        "shorter_waiting": numbers(0.0, nullable=True),
        "until_arrival": numbers(0.0, nullable=True),
        "after_last_arrival": _share(nullable=True),
    },
    ["load"],
)

# How often a job of a class is withheld, of the times that it was withheld, or started though it could have been.
# Bounds are inclusive.
CLASSES = table(
    "Classes",
    {
        "duration_from": integers(1),
        "duration_to": integers(1),
        "demand_from": numbers(0.0),
        "demand_to": numbers(0.0),
        "n": integers(0),
        "withheld": _share(nullable=True),
    },
    ["duration_from", "demand_from"],
)

# The same in bins of one feature.
EFFECTS = table(
    "Effects",
    {
        "feature": pa.Column(str),
        "low": pa.Column("float64"),
        "high": pa.Column("float64"),
        "mean": pa.Column("float64"),
        "n": integers(1),
        "withheld": _share(),
    },
    ["feature", "low"],
)

# Share of the agent's decisions that the tree no longer makes alike once a feature is shuffled.
IMPORTANCE = table(
    "Importance",
    {"feature": pa.Column(str), "agreement": _share(), "lost": pa.Column("float64")},
    ["feature"],
)

# Comparisons as everywhere, of all jobs, short ones and long ones.
OUTCOMES = pa.DataFrameSchema(
    {"jobs": pa.Column(str, pa.Check.isin(("all", "short", "long")))} | dict(COMPARISON.columns),
    strict=True,
    ordered=True,
    unique=["jobs", "load", "policy", "against"],
    name="Outcomes",
)
