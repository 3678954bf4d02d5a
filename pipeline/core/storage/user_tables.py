"""Users' own tables, read and written in chunks, so that they may exceed memory; ids stay unchanged.

Files are written atomically; text has the same bytes as if it were written in one piece.
"""

import os
import zlib
from collections.abc import Collection, Iterator
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.core.storage.files import DIGITS, one_line, unpacked, writing
from pipeline.errors import UserError

ROWS = 250_000  # of a chunk
BEST = 9  # of zlib's levels
GZIP = 31  # wbits of zlib for the format of gzip, without time and name


def user_table(path: Path, ids: Collection[str], rows: int = ROWS) -> Iterator[tuple[pd.DataFrame, float]]:
    """Yield a table in chunks with continuous row numbers, each with the percent of the file that was read.

    `ids` are columns of names: 007 is not 7, and NA is a name. Raises UserError: the file cannot be read as a table.
    """
    try:
        yield from _parquet(path, ids, rows) if path.suffix == ".parquet" else _csv(path, ids, rows)
    except pd.errors.EmptyDataError as error:
        raise UserError(f"{path}: expected jobs, found an empty file") from error
    except FileNotFoundError as error:
        raise UserError(f"{path}: no such file") from error
    except UnicodeDecodeError as error:
        found = f"expected UTF-8 text, found byte 0x{error.object[error.start]:02x}, as in UTF-16 or Latin-1"
        raise UserError(f"{path}: not a readable table ({found})") from error
    except (OSError, ValueError, EOFError, zlib.error, pa.ArrowException) as error:
        found = getattr(error, "strerror", None) or one_line(error)
        raise UserError(f"{path}: not a readable table ({found})") from error


def known_to_policies(frame: pd.DataFrame, policies_know: str, where: str) -> tuple[pd.DataFrame, list[str]]:
    """Return jobs without estimates that policies may not know, and a note; UserError if required ones are missing."""
    if policies_know == "predictions":
        raise UserError(f"{where}: a table has no past to predict run times from (policies_know: predictions)")
    if policies_know == "estimates" and "estimate" not in frame:
        raise UserError(f"{where}: columns: missing estimate (policies_know: estimates)")
    if policies_know == "estimates" or "estimate" not in frame:
        return frame, []
    return frame.drop(columns="estimate"), [f"{where}: estimate is not used (policies_know: {policies_know})"]


def _parquet(path: Path, ids: Collection[str], rows: int) -> Iterator[tuple[pd.DataFrame, float]]:
    with pq.ParquetFile(path, page_checksum_verification=True) as file:
        names = file.schema_arrow.names
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise UserError(f"{path}: columns: expected each once, got twice: {', '.join(twice)}")
        labels = (file.schema_arrow.pandas_metadata or {}).get("index_columns", [])
        wanted = [name for name in names if name in ids or name not in labels]
        if not file.metadata.num_rows:
            yield file.schema_arrow.empty_table().to_pandas(ignore_metadata=True)[wanted], 100
        first = 0
        for batch in file.iter_batches(rows, columns=wanted):
            frame = pa.Table.from_batches([batch]).to_pandas(ignore_metadata=True)
            frame.index = pd.RangeIndex(first, first + len(frame))
            first += len(frame)
            yield frame, 100 * first / file.metadata.num_rows


def _csv(path: Path, ids: Collection[str], rows: int) -> Iterator[tuple[pd.DataFrame, float]]:
    with path.open("rb") as file, unpacked(file, path) as stream:
        size = max(os.fstat(file.fileno()).st_size, 1)
        if b"\0" in stream.read(4096):
            raise UserError(f"{path}: not a readable table (expected UTF-8 text, found zero bytes, as in UTF-16)")
        stream.seek(0)
        words = dict.fromkeys(ids, "str")
        reader = pd.read_csv(
            stream, dtype=words, keep_default_na=False, na_values=[""], chunksize=rows, low_memory=False
        )
        for frame in reader:
            if not isinstance(frame.index, pd.RangeIndex):
                raise UserError(f"{path}: expected as many fields in a row as in the header, found more")
            yield frame, min(100 * file.tell() / size, 100)


def write_chunks(path: Path, frames: Iterator[pd.DataFrame], digits: int = DIGITS) -> None:
    """Write the rows of consecutive tables in the format of the path's suffix; text is rounded."""
    with writing(path) as file:
        if path.suffix == ".parquet":
            first = pa.Table.from_pandas(next(frames), preserve_index=False)
            with pq.ParquetWriter(file, first.schema, write_page_checksum=True) as writer:
                writer.write_table(first)
                del first
                for frame in frames:
                    writer.write_table(pa.Table.from_pandas(frame, preserve_index=False))
        elif path.suffix == ".gz":
            packer = zlib.compressobj(BEST, zlib.DEFLATED, GZIP)
            for text in _texts(frames, digits):
                file.write(packer.compress(text))
            file.write(packer.flush())
        else:
            for text in _texts(frames, digits):
                file.write(text)


def _texts(frames: Iterator[pd.DataFrame], digits: int) -> Iterator[bytes]:
    for number, frame in enumerate(frames):
        text = frame.to_csv(index=False, header=number == 0, float_format=f"%.{digits}g", lineterminator="\n")
        yield text.encode()
