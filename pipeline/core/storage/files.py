"""Atomic writes of files, tables checked by their schemas, and locks."""

import fcntl
import glob
import gzip
import json
import os
import shutil
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import BinaryIO, TextIO, cast

import pandas as pd
import pandera.pandas as pa
import pyarrow
from pandera.errors import SchemaErrors

from pipeline.core.types import Json
from pipeline.errors import UserError
from pipeline.progress import say

DIGITS = 6
OWNER, ANYONE = 0o600, 0o666  # permissions of a new file, less the umask
TABLE_SUFFIXES = (".csv", ".csv.gz", ".parquet")
LOOK_S = 0.2
ENDING_S = 15.0  # wait for the end of a process that was killed, or whose DVC was

Filter = tuple[str, str, list[str] | list[int]]  # (column, operator, values), in pyarrow's form


@contextmanager
def writing(path: Path, mode: int = ANYONE) -> Iterator[BinaryIO]:
    """Open a file for a write that stays atomic whatever happens to the process or the machine."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        for left in path.parent.glob(f".{glob.escape(path.name)}.*.part"):  # of killed processes
            with suppress(OSError), left.open("rb") as stream:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)  # a lock dies with its process
                if os.path.samestat(os.fstat(stream.fileno()), left.stat()):  # not renamed and replaced since
                    left.unlink()
        part = path.with_name(f".{path.name}.{os.getpid()}.part")
        try:
            with _held(part, mode) as stream:
                yield stream
                stream.flush()
                os.fsync(stream.fileno())  # or a renamed file could be empty after a power cut
                part.replace(path)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise UserError(f"{path}: cannot be written ({error.strerror})") from error


def write(path: Path, content: bytes, mode: int = ANYONE) -> None:
    """Write a file atomically."""
    with writing(path, mode) as stream:
        stream.write(content)


def unpacked(file: BinaryIO, path: Path) -> BinaryIO:
    """Return the content of an open file, plain or .gz."""
    return cast(BinaryIO, gzip.open(file)) if path.suffix.lower() == ".gz" else file


def open_private(path: Path, how: str) -> BinaryIO:
    """Open a file for its owner only; an existing one is closed to others."""
    path.touch(mode=OWNER)
    close_to_others(path)
    return cast(BinaryIO, path.open(how))


def private_folder(folder: Path, *names: str) -> None:
    """Make a folder for its owner only; close an existing one, and files in it (patterns), to others."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for place in (folder, *(path for name in names for path in folder.glob(name))):
        close_to_others(place)


def close_to_others(place: Path) -> None:
    """Remove the permissions of others from a file or folder, with a message."""
    mode = stat.S_IMODE(place.stat().st_mode)
    if mode & 0o077:
        try:
            place.chmod(mode & 0o700)
        except OSError as error:
            say(f"{place}: others may read it: mode {mode:o}, which cannot be changed ({error.strerror})")
        else:
            say(f"{place}: others could read it: its mode is now {mode & 0o700:o}")


def discard(*places: Path) -> None:
    """Remove old results before new ones are written, as DVC does, so that a kill leaves no mix of them."""
    for place in places:
        try:
            if place.is_dir() and not place.is_symlink():
                shutil.rmtree(place)
            else:
                place.unlink(missing_ok=True)
        except OSError as error:
            raise UserError(f"{place}: cannot be replaced ({error.strerror})") from error


def _held(part: Path, mode: int = ANYONE) -> BinaryIO:
    """Open and lock a temporary file, so that no other process removes it; some file systems have no locks."""
    while True:
        stream = open(part, "wb", opener=partial(os.open, mode=mode))  # noqa: SIM115
        with suppress(OSError):
            fcntl.flock(stream, fcntl.LOCK_EX)
        if os.fstat(stream.fileno()).st_nlink:  # not removed before it was locked
            return stream
        stream.close()


def write_json(path: Path, values: Json) -> None:
    """Write metrics or records as JSON, with six significant digits."""
    write(path, (json.dumps(_rounded(values), indent=2) + "\n").encode())


def line_of(where: str, row: int) -> str:
    """Return the place of a row, counted from 0: the line of a text file with a header, or the row of another file.

    >>> line_of("jobs.csv: arrival", 0), line_of("jobs.parquet", 0)
    ('line 2', 'row 1')
    """
    return f"row {row + 1}" if ".parquet" in where else f"line {row + 2}"


def read_json(path: Path) -> Json:
    """Read a JSON file that the pipeline wrote."""
    try:
        found: Json = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise missing(path) from error
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}: not JSON ({error})") from error
    return found


def _rounded(values: Json) -> Json:
    if isinstance(values, Mapping):
        return {key: _rounded(value) for key, value in values.items()}
    if isinstance(values, list):
        return [_rounded(value) for value in values]
    return float(f"{values:.{DIGITS}g}") if isinstance(values, float) else values


def write_table(path: Path, frame: pd.DataFrame, schema: pa.DataFrameSchema, digits: int = DIGITS) -> None:
    """Check a table and write it, as parquet or CSV by the path's suffix (.csv, .csv.gz, .parquet); CSV is rounded."""
    frame = check_table(frame, schema, str(path))
    if path.suffix == ".parquet":
        write(path, frame.to_parquet(index=False, write_page_checksum=True))  # DVC trusts its cache; readers check
        return
    text = frame.to_csv(index=False, float_format=f"%.{digits}g", lineterminator="\n").encode()
    write(path, gzip.compress(text, mtime=0) if path.suffix == ".gz" else text)  # no time, no name: the same bytes


def read_table(path: Path, schema: pa.DataFrameSchema, rows: list[Filter] | None = None) -> pd.DataFrame:
    """Read and check a table of the pipeline, or some rows of a parquet (filters of pyarrow)."""
    parquet = partial(pd.read_parquet, page_checksum_verification=True)
    reader: Callable[..., pd.DataFrame] = parquet if path.suffix == ".parquet" else pd.read_csv
    try:
        frame = reader(path, filters=rows) if rows else reader(path)
    except FileNotFoundError as error:
        raise missing(path) from error
    except (OSError, ValueError, pyarrow.ArrowException) as error:
        raise UserError(f"{path}: not a readable table ({one_line(error)})") from error
    if path.suffix != ".parquet":  # text has no types: without rows none are found, and whole floats look like integers
        kinds = {name: str(kind) for name, kind in schema.dtypes.items() if name in frame}
        whole = [name for name, kind in kinds.items() if kind == "float64" and frame[name].dtype == "int64"]
        frame = frame.astype(kinds if frame.empty else dict.fromkeys(whole, "float64"))
    return check_table(frame, schema, str(path))


def check_table(frame: pd.DataFrame, schema: pa.DataFrameSchema, where: str) -> pd.DataFrame:
    """Return the table if it satisfies its schema; else a UserError with the first violation and its place."""
    check_columns(frame, schema, where)
    try:
        return schema.validate(frame, lazy=True)
    except SchemaErrors as error:
        cases = error.failure_cases
        first = cases.iloc[0]
        if first["check"] == "multiple_fields_uniqueness":
            keys = ", ".join(schema.unique or ())
            raise UserError(
                f"{where}: expected each {keys} once, got the one in {line_of(where, first['index'])} again"
            ) from error
        column = "" if first["column"] in (None, schema.name) else f" {first['column']}:"
        row = "" if pd.isna(first["index"]) else f" in {line_of(where, first['index'])}"
        more = f" (and {len(cases) - 1} more)" if len(cases) > 1 else ""
        raise UserError(
            f"{where}:{column} expected {first['check']}, got {first['failure_case']}{row}{more}"
        ) from error


def check_columns(frame: pd.DataFrame, schema: pa.DataFrameSchema, where: str) -> None:
    """Refuse a table with columns other than its schema's."""
    wanted, found = list(schema.columns), list(frame.columns)
    if set(wanted) != set(found):
        missing, extra = [c for c in wanted if c not in found], [str(c) for c in found if c not in wanted]
        words = [f"{kind} {', '.join(names)}" for kind, names in (("missing", missing), ("unknown", extra)) if names]
        raise UserError(f"{where}: columns: expected {', '.join(wanted)}; {'; '.join(words)}")


def missing(path: Path) -> UserError:
    """Return the error of a missing output of an earlier stage."""
    return UserError(f"{path} is missing: run 'dvc repro' (or 'dvc pull') first")


def one_line(error: Exception) -> str:
    """Return a library's error message as one line."""
    return " ".join(str(error).split())[:200]


def check_out(
    path: Path, ends: Sequence[str] = TABLE_SUFFIXES, inputs: Iterable[Path] = (), what: str = "schedule"
) -> None:
    """Refuse, before any work, an output that cannot be written, has an unknown suffix, or is one of the inputs."""
    if not path.name.endswith(tuple(ends)):
        wanted = " or ".join([", ".join(ends[:-1]), ends[-1]] if len(ends) > 1 else ends)
        raise UserError(f"{path}: expected a name that ends in {wanted}")
    if any(path.exists() and one.exists() and path.samefile(one) for one in inputs):
        raise UserError(f"{path}: the jobs are read from it: name another file for the {what}")
    if path.is_dir():
        raise UserError(f"{path}: cannot be written (Is a directory)")
    there = next(parent for parent in path.parents if parent.exists())
    if not there.is_dir():
        raise UserError(f"{path}: cannot be written (Not a directory: {there})")
    if not os.access(there, os.W_OK | os.X_OK):
        raise UserError(f"{path}: cannot be written (Permission denied: {there})")


def hold(path: Path, what: str, patient: bool = False) -> TextIO:
    """Return an open file locked for one process, or refuse and name its holder; the lock ends when all close the file.

    Wait for a killed holder to end; with `patient`, wait for a live one as well, since it may be ending.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    held, until = path.open("a+"), time.monotonic() + ENDING_S
    while not _locked(held):
        held.seek(0)
        if (holder := held.read().strip() or "unknown") == str(os.getpid()):
            return held  # this process does the work
        if time.monotonic() > until or (not patient and _is_alive(holder)):
            held.close()
            raise UserError(f"{what}: another one is at work here (process {holder}); wait for it, or end it")
        time.sleep(LOOK_S)
    held.truncate(0)
    held.write(f"{os.getpid()}\n")
    held.flush()
    return held


def _locked(held: TextIO) -> bool:
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        pass  # a file system without locks
    return True


def _is_alive(holder: str) -> bool:
    try:
        os.kill(int(holder), 0)
    except PermissionError:
        return True
    except (ProcessLookupError, ValueError):
        return False
    return True
