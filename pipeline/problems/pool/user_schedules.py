"""The schedule of a user's jobs, written a chunk at a time: whole or not at all, the same bytes as in one go."""

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.core import IntArray
from pipeline.problems.pool.tables import SCHEDULE
from pipeline.problems.pool.workload.job_table import JobTable
from pipeline.progress import ProgressCallback
from pipeline.storage.files import DIGITS, check_table, writing

ROWS = 1 << 20  # of a chunk, as of a row group that pyarrow makes by itself
BEST = 9  # of zlib's levels
GZIP = 31  # zlib's word for gzip's format; no time and no name in it


def write_schedule(
    path: Path, table: JobTable, start: IntArray, on_progress: ProgressCallback, rows: int = ROWS
) -> None:
    """Write when each job starts [J] and finishes, in the table's order."""
    frames = _frames(path, table, start, on_progress, rows)
    with writing(path) as file:
        if path.suffix == ".parquet":
            _write_parquet(file, frames)
        elif path.suffix == ".gz":
            _write_gz(file, frames)
        else:
            for text in _texts(frames):
                file.write(text)


def _frames(
    path: Path, table: JobTable, start: IntArray, on_progress: ProgressCallback, rows: int
) -> Iterator[pd.DataFrame]:
    for first in range(0, len(start), rows):
        frame = table.ids.slice(first, rows).to_pandas()
        if isinstance(frame["jobset"].dtype, pd.CategoricalDtype):
            frame["jobset"] = frame["jobset"].astype(frame["jobset"].cat.categories.dtype)
        some = slice(first, first + rows)
        frame["start"] = start[some]
        frame["finish"] = start[some] + table.duration[some]
        frame["slowdown"] = (frame["finish"] - table.arrival[some]) / table.duration[some]
        yield check_table(frame, SCHEDULE, str(path))
        done = first + len(frame)
        on_progress(100 * done / len(start), f"{done:,} jobs")


def _texts(frames: Iterator[pd.DataFrame]) -> Iterator[bytes]:
    for number, frame in enumerate(frames):
        text = frame.to_csv(index=False, header=number == 0, float_format=f"%.{DIGITS}g", lineterminator="\n")
        yield text.encode()


def _write_gz(file: BinaryIO, frames: Iterator[pd.DataFrame]) -> None:
    packer = zlib.compressobj(BEST, zlib.DEFLATED, GZIP)
    for text in _texts(frames):
        file.write(packer.compress(text))
    file.write(packer.flush())


def _write_parquet(file: BinaryIO, frames: Iterator[pd.DataFrame]) -> None:
    first = pa.Table.from_pandas(next(frames), preserve_index=False)
    with pq.ParquetWriter(file, first.schema, write_page_checksum=True) as writer:
        writer.write_table(first)
        del first
        for frame in frames:
            writer.write_table(pa.Table.from_pandas(frame, preserve_index=False))
