"""Tables of what full knowledge of the jobs could have made of them."""

import pandera.pandas as pa

from pipeline.schemas.columns import finite, integers, numbers, table

NEARLY = 1e-9
STATUSES = ("OPTIMAL", "FEASIBLE", "WARM")  # proved best; better than the warm start; the warm start itself


# One row a jobset; objective, bound and warm_slowdown are mean slowdowns.
HINDSIGHT = table(
    "Hindsight",
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
    ["load", "jobset"],
    [
        pa.Check(lambda frame: frame["objective"] >= frame["bound"] - NEARLY, error="objective at least bound"),
        pa.Check(
            lambda frame: frame["objective"] <= frame["warm_slowdown"] + NEARLY,
            error="objective at most warm_slowdown",
        ),
    ],
)

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
        **{name: finite(nullable=True) for name in ("closes", "closes_low", "closes_high")},
        "optimal": numbers(0.0),
    },
    ["scenario", "load", "policy"],
)
