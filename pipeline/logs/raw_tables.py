"""The raw columns of each format, as far as they are read; a row that breaks a rule is refused with its line.

A number may be missing: whether its row is then a job is for the reader to say, who counts it if it is not.
"""

import pandera.pandas as pa

MOST = 1e15  # of a time: more is junk, and could overflow sums
MOST_AMOUNT = 1e9
BEYOND = 1e19  # of a time: above the one that stands for "after the log" in Google's


def _number(most: float = MOST, nullable: bool = True) -> pa.Column:
    below = pa.Check.in_range(-most, most, error=f"a number below {most:g}")
    return pa.Column("float64", below, nullable=nullable, coerce=True)


def _amount(nullable: bool = True) -> pa.Column:
    return _number(MOST_AMOUNT, nullable)


def _schema(name: str, **columns: pa.Column) -> pa.DataFrameSchema:
    return pa.DataFrameSchema(columns, name=name, strict=True, ordered=False)


_WORD = pa.Column("str", nullable=True, coerce=True)

OPENB_PODS = _schema(
    "openb pods",
    cpu_milli=_amount(),
    memory_mib=_amount(),
    num_gpu=_amount(),
    gpu_milli=_amount(),
    gpu_spec=_WORD,
    creation_time=_number(),
    deletion_time=_number(),
    scheduled_time=_number(),
)

OPENB_NODES = _schema(
    "openb nodes",
    cpu_milli=_amount(nullable=False),
    memory_mib=_amount(nullable=False),
    gpu=_amount(nullable=False),
    model=_WORD,
)

ALIBABA2018 = _schema(
    "alibaba2018",
    instance_num=_amount(),
    status=_WORD,
    start_time=_number(),
    end_time=_number(),
    plan_cpu=_amount(),
    plan_mem=_amount(),
)

ALIBABA2017 = _schema(
    "alibaba2017",
    create_timestamp=_number(),
    modify_timestamp=_number(),
    instance_num=_amount(),
    status=_WORD,
    plan_cpu=_amount(),
    plan_mem=_amount(),
)

CLOUDSIMPY = _schema(
    "cloudsimpy", submit_time=_number(), duration=_number(), cpu=_amount(), memory=_amount(), instances_num=_amount()
)

GOOGLE2011 = _schema(
    "google2011",
    time=_number(BEYOND, nullable=False),
    job=_number(nullable=False),
    task=_number(nullable=False),
    event=pa.Column("float64", pa.Check.isin(range(9), error="a number of an event, 0 to 8"), coerce=True),
    user=_WORD,
    cpu=_amount(),
    memory=_amount(),
)
