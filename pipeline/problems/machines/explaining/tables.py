"""Tables of what a learned policy does otherwise than SJF, in those of its own decisions in which a job could start."""

import pandera.pandas as pa

from pipeline.schemas.columns import integers, numbers, share, table

# Shares of decisions by load, by jobs waiting, and by the share of all resources that is free: SJF's job or one as
# short, on SJF's machine; the same on another machine; another job; none. Bounds are inclusive.
DIFFERENCES = table(
    "Differences",
    {
        "by": pa.Column(str, pa.Check.isin(("load", "waiting", "free"))),
        "from": numbers(0.0),
        "to": numbers(0.0),
        "decisions": integers(1),
        "agrees": share(),
        "another_machine": share(),
        "another_job": share(),
        "waits": share(),
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
        "smaller": share(nullable=True),
        "waited_longer": share(nullable=True),
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
        "fullest": share(nullable=True),
        "fullest_by_chance": share(nullable=True),
        "fullest_first": share(nullable=True),
        "emptiest": share(nullable=True),
        "emptiest_by_chance": share(nullable=True),
        "emptiest_first": share(nullable=True),
    },
    ["load"],
)
