"""Tables of what a policy does differently from SJF. Decisions are those of its own in which a job could start."""

import pandera.pandas as pa

from pipeline.schemas.columns import integers, numbers, share, table
from pipeline.schemas.tables import COMPARISON

# Shares of decisions by load, by jobs waiting, and by the least share of a resource that is free: SJF's job or one as
# short, on SJF's machine; the same on another machine; another job; none. Bounds are inclusive.
DIFFERENCES = table(
    "Differences",
    {
        "by": pa.Column(str, pa.Check.isin(("load", "waiting", "free"))),
        **{name: numbers(0.0) for name in ("from", "to")},
        "decisions": integers(1),
        **{name: share() for name in ("agrees", "another_machine", "another_job", "waits")},
    },
    ["by", "from"],
)

# The job that it starts instead of SJF's, which is always a longer one: how many are smaller (by the largest share of
# all machines that a job holds) and have waited longer; medians of both jobs. Null where there are none.
JOBS = table(
    "Jobs",
    {"load": integers(1), "decisions": integers(0)}
    | {name: share(nullable=True) for name in ("smaller", "waited_longer")}
    | {name: numbers(0.0, nullable=True) for name in ("duration", "duration_sjf", "demand", "demand_sjf")},
    ["load"],
)

# Where it starts a job that could run on several machines which are not equally full: how often on the fullest and on
# the emptiest of them, next to what chance would do, and to SJF, which takes the first.
PLACES = [name + of for name in ("fullest", "emptiest") for of in ("", "_by_chance", "_first")]
MACHINES = table(
    "Machines",
    {"load": integers(1), "decisions": integers(0)} | {name: share(nullable=True) for name in PLACES},
    ["load"],
)

# Means over the jobs that could start in decisions in which none was, once for each such decision; null where there are
# none. Until the next arrival, of those decisions that have one.
MEANS = ("duration", "demand", "waited", "shorter_waiting", "until_arrival")
WITHHELD = table(
    "Withheld",
    {"load": integers(1), "withheld": integers(0)}
    | {name: numbers(0.0, nullable=True) for name in MEANS}
    | {"after_last_arrival": share(nullable=True)},
    ["load"],
)

# How often a job of a class is withheld, of the times that it was withheld, or started though it could have been.
# Bounds are inclusive.
CLASSES = table(
    "Classes",
    {name: numbers(0.0) for name in ("duration_from", "duration_to", "demand_from", "demand_to")}
    | {"n": integers(0), "withheld": share(nullable=True)},
    ["duration_from", "demand_from"],
)

# The same in bins of one feature.
EFFECTS = table(
    "Effects",
    {"feature": pa.Column(str)}
    | {name: pa.Column("float64") for name in ("low", "high", "mean")}
    | {"n": integers(1), "withheld": share()},
    ["feature", "low"],
)

# Share of the agent's decisions that the tree no longer makes in the same way once a feature is shuffled.
IMPORTANCE = table(
    "Importance",
    {"feature": pa.Column(str), "agreement": share(), "lost": pa.Column("float64")},
    ["feature"],
)

# Comparisons as everywhere, of all jobs, short ones and long ones.
OUTCOMES = table(
    "Outcomes",
    {"jobs": pa.Column(str, pa.Check.isin(("all", "short", "long")))} | dict(COMPARISON.columns),
    ["jobs", "load", "policy", "against"],
)

SCHEMAS = {
    schema.name.lower(): schema
    for schema in (DIFFERENCES, JOBS, MACHINES, WITHHELD, CLASSES, EFFECTS, IMPORTANCE, OUTCOMES)
}
