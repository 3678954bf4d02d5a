"""Tables of what a learned policy does differently from SJF. Decisions are those in which a job could start."""

import pandera.pandas as pa

from pipeline.schemas.columns import integers, numbers, share, table
from pipeline.schemas.tables import COMPARISON

# Shares of decisions by load: the same job as SJF or one as short; none; another job. Of the others, how many are
# narrower than SJF's.
DIFFERENCES = table(
    "Differences",
    {
        "load": integers(1),
        "decisions": integers(1),
        "agrees": share(),
        "withholds": share(),
        "starts_another": share(),
        "another_is_narrower": share(nullable=True),
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
        "after_last_arrival": share(nullable=True),
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
        "withheld": share(nullable=True),
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
        "withheld": share(),
    },
    ["feature", "low"],
)

# Share of the agent's decisions that the tree no longer makes alike once a feature is shuffled.
IMPORTANCE = table(
    "Importance",
    {"feature": pa.Column(str), "agreement": share(), "lost": pa.Column("float64")},
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
