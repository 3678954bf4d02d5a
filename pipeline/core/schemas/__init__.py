"""pandera schemas of tables that pass between stages: strict, checked when written and when read.

These are the tables of every problem; a problem's own are in its `tables.py`. A table whose columns depend on the
scenario (one per resource) has a function that builds its schema.
"""

from collections.abc import Mapping
from typing import NamedTuple

import pandera.pandas as pa

from pipeline.core.schemas.columns import KEYS, empty
from pipeline.core.schemas.tables import COMPARISON, DELAY, HINDSIGHT_SUMMARY, OBJECTIVES, STREAM_SUMMARY, SUMMARY


class ResultTables(NamedTuple):
    """Result tables of the policies on one problem's scenarios."""

    jobs: pa.DataFrameSchema
    jobsets: pa.DataFrameSchema
    also: Mapping[str, pa.DataFrameSchema] = {}  # of this problem only, by name
