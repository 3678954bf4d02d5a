"""A user's own jobs, for every problem: a job table, read and checked in chunks, or a log of any format.

A table may be larger than memory, because only compact columns of it are kept. A problem supplies the schema of its
tables, and the conversion of checked rows and of a log.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Generic, NamedTuple, Protocol, TypeVar, cast

import numpy as np
import pandas as pd
import pandera.pandas as pandera
import pyarrow as pa

from pipeline.core.logs.registry import log_format
from pipeline.core.storage.files import check_columns, check_table, line_of
from pipeline.core.storage.user_tables import ROWS, known_to_policies, user_table
from pipeline.core.types import FloatArray, IntArray, TimeArray
from pipeline.errors import UserError
from pipeline.progress import ProgressCallback, progress, say

IDS = ("jobset", "job")
ONLY = "0"  # the jobset of a table without such a column
PLAIN = r"0|-?[1-9]\d{0,17}"  # ids that are equal as numbers and as text
EXACT = 2**53  # floats represent whole numbers below it exactly
AT_ONCE = 1_000_000  # jobs whose ids are compared, or that are played, in one go
OPTIONAL = ("estimate", "nodes")  # columns of a problem that a table may lack


class JobsInColumns(Protocol):
    """Columns of J jobs, as a NamedTuple; None for absent ones."""

    @property
    def arrival(self) -> TimeArray:
        """Return the time [J] of each job's arrival."""

    def __iter__(self) -> Iterator[Any]:
        """Return the columns."""


Columns = TypeVar("Columns", bound=JobsInColumns)


class Part(NamedTuple, Generic[Columns]):
    """Some whole jobsets."""

    number: IntArray  # [B]  of each jobset
    rows: IntArray | slice  # [J]  of its jobs, in the order of the file
    first: IntArray  # [B + 1]  jobset b owns the jobs first[b] : first[b + 1]
    jobs: Columns


class UserJobs(NamedTuple, Generic[Columns]):
    """Jobs in the order of the file."""

    ids: pa.Table  # jobset (as a dictionary) and job, in the user's form
    number: IntArray  # [J]  of each job's jobset, by first appearance
    jobs: Columns  # of all jobsets
    notes: Sequence[str] = ()  # for people

    @property
    def jobsets(self) -> list[str]:
        """Return the names of the jobsets, by their number."""
        first = np.unique(self.number, return_index=True)[1]
        return [str(self.ids["jobset"][int(row)].as_py()) for row in first]

    def rows(self) -> list[IntArray]:
        """Return the rows of each jobset's jobs, stably sorted by arrival."""
        ordered = np.lexsort((self.jobs.arrival, self.number))
        return np.split(ordered, np.cumsum(np.bincount(self.number))[:-1])

    def taken(self, rows: IntArray | slice) -> Columns:
        """Return the jobs of some rows."""
        return _made(type(self.jobs), (None if column is None else column[rows] for column in self.jobs))

    def names(self, rows: IntArray) -> list[str]:
        """Return the ids of the jobs of some rows."""
        return [str(job) for job in self.ids["job"].take(rows).to_pylist()]

    def parts(self, most: int, jobs: int = AT_ONCE) -> Iterator[Part[Columns]]:
        """Yield all jobsets in order of appearance, in parts of up to `most` jobsets and `jobs` jobs.

        A longer jobset is a part of its own.
        """
        number, arrival = self.number, self.jobs.arrival
        same = np.diff(number) == 0
        sorted_already = ((np.diff(number) > 0) | (same & (np.diff(arrival) >= 0))).all()
        rows = None if sorted_already else np.lexsort((arrival, number))
        number = number if rows is None else number[rows]
        edges = np.concatenate([[0], np.flatnonzero(np.diff(number)) + 1, [len(number)]])
        begin = 0
        while begin < len(edges) - 1:
            full = int(np.searchsorted(edges, edges[begin] + jobs, side="right")) - 1
            end = min(max(begin + 1, full), begin + most, len(edges) - 1)
            at = slice(edges[begin], edges[end])
            some = at if rows is None else rows[at]
            yield Part(np.arange(begin, end), some, edges[begin : end + 1] - edges[begin], self.taken(some))
            begin = end


class JobColumns(NamedTuple, Generic[Columns]):
    """How a problem reads a user's jobs."""

    policies_know: str  # about run times, by the scenario
    columns: Mapping[str, pandera.Column]  # of its tables, after jobset and job
    jobs: Callable[[pd.DataFrame, str], Columns]  # (checked rows, the file's name) -> jobs
    log: Callable[[Path, str, ProgressCallback], UserJobs[Columns]]  # (file, its format, on_progress)


def user_jobs_schema(columns: Mapping[str, pandera.Column], there: Collection[str]) -> pandera.DataFrameSchema:
    """Return the schema of a user's job table; OPTIONAL columns are part of it if present."""
    ids = {name: pandera.Column(nullable=False) for name in IDS if name == "job" or name in there}
    kept = {name: column for name, column in columns.items() if name not in OPTIONAL or name in there}
    return pandera.DataFrameSchema(ids | kept, strict=True, unique=list(ids), name="UserJobs")


def read_user_jobs(path: Path, columns: JobColumns[Columns], rows: int = ROWS) -> UserJobs[Columns]:
    """Read a job table, `rows` rows at a time, or a log, and print notes on it."""
    with progress(f"read {path}, percent", 100, brief=True) as advance:
        format = log_format(path)
        found = _table(path, columns, rows, advance) if format is None else columns.log(path, format, advance)
    for note in found.notes:
        say(note)
    return found


def of_log(ids: IntArray, jobs: Columns, notes: Sequence[str]) -> UserJobs[Columns]:
    """Return the jobs of a log as one jobset, with the log's own numbers."""
    number = np.zeros(len(ids), dtype=np.int32)
    one = pa.DictionaryArray.from_arrays(pa.array(number), pa.array([0]))
    return UserJobs(pa.table({"jobset": one, "job": ids}), number, jobs, notes)


def _table(path: Path, columns: JobColumns[Columns], rows: int, on_progress: ProgressCallback) -> UserJobs[Columns]:
    where, ids, parts, seen, notes = str(path), list[pa.Table](), list[Columns](), 0, list[str]()
    for frame, percent in user_table(path, (*IDS, "queue"), rows):
        known, notes = known_to_policies(frame, columns.policies_know, where)
        checked = _checked(known if "jobset" in known else known.assign(jobset=ONLY), columns, where)
        seen += len(checked)
        if len(checked) or not ids:
            ids.append(_ids(checked))
            parts.append(columns.jobs(checked, where))
        on_progress(percent, f"{seen:,} jobs")
    if not seen:
        raise UserError(f"{path}: expected jobs, found none")
    if any(table.schema != ids[0].schema for table in ids):  # some chunk has ids that are not plain numbers
        words = [table.cast(pa.schema([(name, pa.large_string()) for name in IDS])) for table in ids]
        ids = [table.set_column(0, "jobset", table["jobset"].dictionary_encode()) for table in words]
    together = pa.concat_tables(ids).unify_dictionaries()
    number = np.concatenate([chunk.indices.to_numpy() for chunk in together["jobset"].chunks])
    again = _repeated(together["job"], number)
    if again is not None:
        raise UserError(f"{path}: expected each jobset, job once, got the one in {line_of(where, again)} again")
    return UserJobs(together, number, _joined(parts), notes)


def _checked(frame: pd.DataFrame, columns: JobColumns[Columns], where: str) -> pd.DataFrame:
    schema = user_jobs_schema(columns.columns, frame.columns)
    check_columns(frame, schema, where)
    changed = {}
    for name, column in schema.columns.items():
        kind = str(column.dtype)
        if kind in ("int64", "float64"):
            changed[name] = _numbers(frame[name], kind == "int64", f"{where}: {name}")
        elif kind == "str":
            changed[name] = frame[name].astype("str")
    return check_table(frame.assign(**changed), schema, where)


def _numbers(column: pd.Series, whole: bool, where: str) -> pd.Series:
    many, one = ("whole numbers", "a whole number") if whole else ("numbers", "a number")
    if column.dtype.kind in "Mmbc":  # pandas would convert dates and booleans to numbers
        raise UserError(f"{where}: expected {many}, got {column.dtype}")
    try:
        found: FloatArray = pd.to_numeric(column, errors="coerce").to_numpy(dtype="float64", na_value=np.nan)
    except (TypeError, ValueError) as error:
        raise UserError(f"{where}: expected {many}, got {column.iloc[0]!s}") from error
    right = (found == np.floor(found)) & (np.abs(found) < EXACT) if whole else ~np.isnan(found)
    if not right.all():
        row = int(right.argmin())
        raise UserError(f"{where}: expected {one} in {line_of(where, column.index[row])}, got {column.iloc[row]!s}")
    return pd.Series(found.astype("int64") if whole else found, index=column.index)


def _ids(frame: pd.DataFrame) -> pa.Table:
    """Return the ids: as whole numbers if they look like them, or else as text, so that no digit is lost."""
    plain = {}
    for name in IDS:
        ids = frame[name]
        if ids.dtype.kind == "f":  # pandas converts whole numbers next to missing ones
            whole = (ids == np.floor(ids)) & (ids.abs() < EXACT)
            plain[name] = ids.astype("int64") if whole.all() else ids.map(repr).astype("str")
        elif ids.dtype == "str" and ids.str.fullmatch(PLAIN).all():
            plain[name] = ids.astype("int64")
    table = pa.Table.from_pandas(frame[list(IDS)].assign(**plain), preserve_index=False)
    jobset = table["jobset"]
    encoded = jobset if pa.types.is_dictionary(jobset.type) else jobset.dictionary_encode()
    return table.set_column(0, "jobset", encoded).replace_schema_metadata()


def _joined(parts: list[Columns]) -> Columns:
    """Concatenate the jobs of all chunks, and free them column by column."""
    like, columns = type(parts[0]), [list(one) for one in zip(*parts, strict=True)]
    parts.clear()
    joined = []
    while columns:
        some = columns.pop(0)
        joined.append(None if some[0] is None else np.concatenate(some))
    return _made(like, joined)


def _made(like: type[Columns], columns: Iterable[Any]) -> Columns:
    made: Columns = cast("Any", like)._make(columns)
    return made


def _repeated(job: pa.ChunkedArray, jobset: IntArray) -> int | None:
    """Return the first row that has the same jobset and job as another row."""
    mixed = np.empty(len(jobset), dtype=np.uint64)
    for first in range(0, len(mixed), AT_ONCE):
        rows = slice(first, first + AT_ONCE)
        some = pd.DataFrame({"jobset": jobset[rows], "job": job.slice(first, AT_ONCE).to_pandas()})
        mixed[rows] = pd.util.hash_pandas_object(some, index=False).to_numpy()
    ordered = np.sort(mixed)
    suspect = ordered[1:][ordered[1:] == ordered[:-1]]
    # Rarely more than one: hashes of different ids hardly ever collide.
    for row in np.flatnonzero(np.isin(mixed, suspect)):
        same = np.flatnonzero(mixed == mixed[row])
        found = {(int(jobset[other]), job[int(other)].as_py()) for other in same}
        if len(found) < len(same):
            return int(row)
    return None
