"""A user's own job table or log: read and checked a chunk at a time, so that it may be longer than memory."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

from pipeline.config import PoolLog, PoolScenario
from pipeline.core import IntArray
from pipeline.errors import UserError
from pipeline.logs.predicting.run_times import predicted
from pipeline.logs.registry import read
from pipeline.logs.user_files import distinct, log_format
from pipeline.logs.windows import periods
from pipeline.problems.pool.tables import user_jobs_schema
from pipeline.problems.pool.workload.job_table import EXACT, IDS, JobTable, log_table, repeated, whole_numbers
from pipeline.problems.pool.workload.windows import describe, discretise
from pipeline.progress import ProgressCallback
from pipeline.storage.files import check_columns, check_table, line_of
from pipeline.storage.user_tables import ROWS, as_told, user_table

PLAIN = r"0|-?[1-9]\d{0,17}"  # ids that are the same as numbers and as words


class _Checked(NamedTuple):
    """Rows that are jobs."""

    ids: pa.Table
    arrival: IntArray  # [J]
    duration: IntArray  # [J]
    demand: IntArray  # [J, R]
    estimate: IntArray | None  # [J]  None: policies are told run times


def read_jobs(
    path: Path, scenario: PoolScenario, workload: PoolLog, on_progress: ProgressCallback, rows: int = ROWS
) -> tuple[JobTable, Sequence[str]]:
    """Read a user's job table, or a log as one; return it with what there is to say of it.

    A table is read `rows` rows at a time.

    Raises:
        UserError: the file cannot be read, or a row is not a job that the scenario's cluster can run.
    """
    format = log_format(path)
    if format is not None:
        log, notes = distinct(read(path, format, on_progress)), []
        if scenario.policies_know == "predictions":
            learned = max(1, periods(len(log.id), workload)["train"][1])
            log = predicted(log, np.arange(learned))
            notes = [f"run times are predicted as the first {learned:,} jobs teach: judge by the jobs behind them"]
        steps = discretise(log, workload, scenario.resources, scenario.horizon, scenario.policies_know != "durations")
        return log_table(steps), [*describe(log, steps), *notes]
    chunks, jobs, notes = [], 0, []
    for frame, percent in user_table(path, IDS, rows):
        told, notes = as_told(frame, scenario.policies_know, str(path))
        chunks.append(_checked(told, scenario, str(path)))
        jobs += len(frame)
        on_progress(percent, f"{jobs:,} jobs")
    if not jobs:
        raise UserError(f"{path}: expected jobs, found none")
    table = _table(chunks)
    again = repeated(table)
    if again is not None:
        raise UserError(f"{path}: expected each jobset, job once, got the one in {line_of(str(path), again)} again")
    return table, notes


def _checked(frame: pd.DataFrame, scenario: PoolScenario, where: str) -> _Checked:
    resources = list(scenario.resources)
    schema = user_jobs_schema(scenario.resources, scenario.horizon, estimated="estimate" in frame)
    check_columns(frame, schema, where)
    frame = check_table(whole_numbers(frame, resources, where), schema, where)
    ids = pa.Table.from_pandas(frame[list(IDS)].assign(**_plain(frame)), preserve_index=False)
    return _Checked(
        ids.set_column(0, "jobset", _encoded(ids["jobset"])).replace_schema_metadata(),
        frame["arrival"].to_numpy(dtype="int64"),
        frame["duration"].to_numpy(dtype="int16"),  # of at most 10,000, as units are
        np.ascontiguousarray(frame[resources].to_numpy(dtype="int16")),
        frame["estimate"].to_numpy(dtype="int16") if "estimate" in frame else None,
    )


def _plain(frame: pd.DataFrame) -> dict[str, pd.Series]:
    """Return, as whole numbers, the ids that are written like them; other numbers as words, lest digits are lost."""
    plain = {}
    for name in IDS:
        ids = frame[name]
        if ids.dtype.kind == "f":  # as pandas makes of whole numbers beside missing ones
            whole = (ids == np.floor(ids)) & (ids.abs() < EXACT)
            plain[name] = ids.astype("int64") if whole.all() else ids.map(repr).astype("str")
        elif ids.dtype == "str" and ids.str.fullmatch(PLAIN).all():
            plain[name] = ids.astype("int64")
    return plain


def _encoded(ids: pa.ChunkedArray) -> pa.ChunkedArray:
    return ids if pa.types.is_dictionary(ids.type) else ids.dictionary_encode()


def _table(chunks: list[_Checked]) -> JobTable:
    """Return all chunks as one table, and let go of them."""
    tables = [chunk.ids for chunk in chunks]
    columns: list[list[IntArray]] = [list(one) for one in zip(*chunks, strict=True) if one[0] is not None][1:]
    chunks.clear()
    ids = pa.concat_tables(_alike(tables)).unify_dictionaries()
    number = np.concatenate([chunk.indices.to_numpy() for chunk in ids["jobset"].chunks])
    joined = []
    while columns:
        joined.append(np.concatenate(columns.pop(0)))
    return JobTable(ids, number, *joined)


def _alike(tables: list[pa.Table]) -> list[pa.Table]:
    """Return ids of one kind each: words, if any chunk has some that are no plain numbers."""
    if all(table.schema == tables[0].schema for table in tables):
        return tables
    words = pa.schema([(name, pa.large_string()) for name in IDS])
    same = [table.cast(words) for table in tables]
    return [table.set_column(0, "jobset", table["jobset"].dictionary_encode()) for table in same]
