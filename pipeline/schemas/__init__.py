"""pandera models of every table that crosses a stage: strict, checked when written and when read.

A table whose columns depend on the scenario (one per resource) has a function that builds its schema.
"""

from collections.abc import Mapping
from typing import NamedTuple

import pandera.pandas as pa

from pipeline.schemas.columns import KEYS, empty
from pipeline.schemas.events import EVENT_JOB_RESULTS, EVENT_JOBSET_RESULTS, EVENT_SUMMARY, event_jobs_schema
from pipeline.schemas.explain import CLASSES, DIFFERENCES, EFFECTS, IMPORTANCE, OUTCOMES, WITHHELD
from pipeline.schemas.groups import (
    GROUP_FAIRNESS,
    GROUP_INTERVALS,
    GROUP_JOB_RESULTS,
    GROUP_JOBSET_RESULTS,
    GROUP_RESULTS,
    GROUP_SUMMARY,
    OFF_POLICY,
    group_jobs_schema,
)
from pipeline.schemas.hindsight import HINDSIGHT, HINDSIGHT_SUMMARY
from pipeline.schemas.streams import STREAM_BACKLOG, STREAM_FAIRNESS, STREAM_SUMMARY
from pipeline.schemas.tables import (
    AGREES,
    COMPARISON,
    CURVE,
    DELAY,
    JOB_RESULTS,
    JOBSET_RESULTS,
    LAST_ARRIVAL,
    PAPERS,
    SCHEDULE,
    SUMMARY,
    jobs_schema,
    user_jobs_schema,
)


class ResultTables(NamedTuple):
    """The tables of what policies did on one scenario."""

    jobs: pa.DataFrameSchema
    jobsets: pa.DataFrameSchema
    also: Mapping[str, pa.DataFrameSchema] = {}  # that only this dynamics may have


RESULTS = {  # by dynamics
    "steps": ResultTables(
        JOB_RESULTS,
        JOBSET_RESULTS,
        {"backlog": STREAM_BACKLOG, "fairness": STREAM_FAIRNESS},  # of streams only
    ),
    "events": ResultTables(EVENT_JOB_RESULTS, EVENT_JOBSET_RESULTS),
    "groups": ResultTables(
        GROUP_JOB_RESULTS,
        GROUP_JOBSET_RESULTS,
        {"groups": GROUP_RESULTS, "intervals": GROUP_INTERVALS, "off_policy": OFF_POLICY},
    ),
}

__all__ = [
    "AGREES",
    "CLASSES",
    "COMPARISON",
    "CURVE",
    "DELAY",
    "DIFFERENCES",
    "EFFECTS",
    "EVENT_JOBSET_RESULTS",
    "EVENT_JOB_RESULTS",
    "EVENT_SUMMARY",
    "GROUP_FAIRNESS",
    "GROUP_INTERVALS",
    "GROUP_JOBSET_RESULTS",
    "GROUP_JOB_RESULTS",
    "GROUP_RESULTS",
    "GROUP_SUMMARY",
    "HINDSIGHT",
    "HINDSIGHT_SUMMARY",
    "IMPORTANCE",
    "JOBSET_RESULTS",
    "JOB_RESULTS",
    "KEYS",
    "LAST_ARRIVAL",
    "OFF_POLICY",
    "OUTCOMES",
    "PAPERS",
    "RESULTS",
    "SCHEDULE",
    "STREAM_BACKLOG",
    "STREAM_FAIRNESS",
    "STREAM_SUMMARY",
    "SUMMARY",
    "WITHHELD",
    "ResultTables",
    "empty",
    "event_jobs_schema",
    "group_jobs_schema",
    "jobs_schema",
    "user_jobs_schema",
]
