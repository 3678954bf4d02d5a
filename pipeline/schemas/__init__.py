"""pandera models of tables that cross a stage: strict, checked when written and when read.

Here are those that every problem has; a problem's own are in its `tables.py`. A table whose columns depend on the
scenario (one per resource) has a function that builds its schema.
"""

from collections.abc import Mapping
from typing import NamedTuple

import pandera.pandas as pa

from pipeline.schemas.columns import KEYS, empty
from pipeline.schemas.hindsight import HINDSIGHT, HINDSIGHT_SUMMARY
from pipeline.schemas.streams import STREAM_BACKLOG, STREAM_FAIRNESS, STREAM_SUMMARY
from pipeline.schemas.tables import COMPARISON, CURVE, DELAY, LOADS, OBJECTIVES, PAPERS, SUMMARY, TRIAL


class ResultTables(NamedTuple):
    """The tables of what policies did on the scenarios of one problem."""

    jobs: pa.DataFrameSchema
    jobsets: pa.DataFrameSchema
    also: Mapping[str, pa.DataFrameSchema] = {}  # that only this problem has, by name
