"""What `benchmark rlscheduler` writes: a row for each sequence and policy, and policies against references."""

import pandera.pandas as pa

from pipeline.schemas.columns import integers, numbers

SEQUENCE = {
    "trace": pa.Column(str),
    "seq": integers(0),
    "start_index": integers(0),
    "backfill": integers(0, 1),
    "policy": pa.Column(str),
    "avg_bounded_slowdown": numbers(1.0),
}
RLSCHEDULER = pa.DataFrameSchema(
    SEQUENCE | {"avg_wait_s": numbers(0.0), "utilization_peer": numbers(0.0), "makespan_s": numbers(0.0)},
    strict=True,
    ordered=True,
    unique=["trace", "seq", "backfill", "policy"],
    name="RLScheduler",
)
RLSCHEDULER_WAITS = pa.DataFrameSchema(
    SEQUENCE | {name: numbers(0.0) for name in ("p99_wait_s", "longest_wait_s", "area_weighted_response_s")},
    strict=True,
    ordered=True,
    unique=["trace", "seq", "backfill", "policy"],
    name="RLSchedulerWaits",
)
RLSCHEDULER_PAIRED = pa.DataFrameSchema(
    {
        "policy": pa.Column(str),
        "against": pa.Column(str),
        "n": integers(1),
        "mean": numbers(1.0),
        "mean_against": numbers(1.0),
        "difference": pa.Column("float64"),
        "difference_low": pa.Column("float64"),
        "difference_high": pa.Column("float64"),
    },
    strict=True,
    ordered=True,
    unique=["policy", "against"],
    name="RLSchedulerPaired",
)
