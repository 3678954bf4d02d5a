"""Tables of what a learned policy does otherwise than SJF, in those of its own decisions in which a job could start."""

import pandera.pandas as pa

from pipeline.schemas.columns import integers, numbers, table


def _share(nullable: bool = False) -> pa.Column:
    return pa.Column("float64", pa.Check.in_range(0.0, 1.0, error="within 0 and 1"), nullable=nullable)


# Shares of decisions by load, by jobs waiting, and by the share of all resources that is free: SJF's job or one as
# short, on SJF's machine; the same on another machine; another job; none. Bounds are inclusive.
DIFFERENCES = table(
    "Differences",
    {
        "by": pa.Column(str, pa.Check.isin(("load", "waiting", "free"))),
        "from": numbers(0.0),
        "to": numbers(0.0),
        "decisions": integers(1),
        "agrees": _share(),
        "another_machine": _share(),
        "another_job": _share(),
        "waits": _share(),
    },
    ["by", "from"],
)

# The job that it starts instead of SJF's, which is always a longer one: how many are smaller (by the largest share of
# all machines that a job holds) and have waited longer; medians of both jobs. Null where there are none.
JOBS = table(
    "Jobs",
    {
        "load": integers(1),
        "decisions": integers(0),
        "smaller": _share(nullable=True),
        "waited_longer": _share(nullable=True),
        "duration": numbers(0.0, nullable=True),
        "duration_sjf": numbers(0.0, nullable=True),
        "demand": numbers(0.0, nullable=True),
        "demand_sjf": numbers(0.0, nullable=True),
    },
    ["load"],
)

# Where it starts a job that could run on several machines which are not equally full: how often on the fullest and on
# the emptiest of them, beside what chance would do, and beside SJF, which takes the first.
MACHINES = table(
    "Machines",
    {
        "load": integers(1),
        "decisions": integers(0),
        "fullest": _share(nullable=True),
        "fullest_by_chance": _share(nullable=True),
        "fullest_first": _share(nullable=True),
        "emptiest": _share(nullable=True),
        "emptiest_by_chance": _share(nullable=True),
        "emptiest_first": _share(nullable=True),
    },
    ["load"],
)
