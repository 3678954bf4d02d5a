"""Journal of what was read, decided, set and seen to happen, and the outcomes of jobs as readings show them.

A row is a JSON object on a line of its own, written to the disk each tick; files are rotated. Users appear as a keyed
digest whose key is in the same folder; names of jobs are never read.

A job ends when a reading no longer has it, up to a tick late. A job that waited at one reading and is gone at the next
is only known to be gone: it ran for less than a tick or was cancelled.
"""

import hashlib
import hmac
import json
import os
import secrets
from collections.abc import Container, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from pipeline.core import Json
from pipeline.errors import UserError
from pipeline.steering.rows import HOLDING, PENDING, JobRow, Reading
from pipeline.storage.files import open_private, private_folder

JOURNAL, KEY = "journal.jsonl", "users.key"
VERSION = 1
MOST_BYTES = 64_000_000  # of one file
MOST_FILES = 20  # older ones are removed
OPEN_S = 86_400.0  # a job that is there for longer keeps no window open


class Journal:
    """The journal of a folder."""

    def __init__(self, folder: Path, most_bytes: int = MOST_BYTES, most_files: int = MOST_FILES) -> None:
        self.path, self._most_bytes, self._most_files = folder / JOURNAL, most_bytes, most_files
        self._key = _key(folder / KEY)
        private_folder(folder, "journal.*.jsonl", KEY)
        self._stream = open_private(self.path, "ab")
        self._end_a_torn_line()
        self._rows: list[bytes] = []

    def add(self, kind: str, time: float, **what: Json) -> None:
        """Add a row; it is kept with the next `keep`."""
        row = {"kind": kind, "time": round(time, 3), **what}
        self._rows.append(json.dumps(row, separators=(",", ":")).encode() + b"\n")

    def keep(self) -> None:
        """Write what was added to the disk.

        Raises:
            UserError: the disk is full, or gone.
        """
        if not self._rows:
            return
        try:
            self._stream.write(b"".join(self._rows))
            self._stream.flush()
            os.fsync(self._stream.fileno())
            self._rows.clear()
            if self._stream.tell() >= self._most_bytes:
                self._rotate()
        except OSError as error:
            raise UserError(f"{self.path}: cannot be written ({error.strerror})") from error

    def called(self, user: str) -> str:
        """Return what a user is called here."""
        return hmac.new(self._key, user.encode(), hashlib.sha256).hexdigest()[:12]

    def close(self) -> None:
        """Close its file."""
        self.keep()
        self._stream.close()

    def _end_a_torn_line(self) -> None:
        """End the line that a power cut left half; readers skip it."""
        with self.path.open("rb") as stream:
            size = stream.seek(0, os.SEEK_END)
            stream.seek(max(0, size - 1))
            torn = stream.read(1) not in (b"", b"\n")
        if torn:
            self._stream.write(b"\n")

    def _rotate(self) -> None:
        self._stream.close()
        kept = files(self.path.parent)[:-1]
        number = 1 + max((int(path.suffixes[0][1:]) for path in kept), default=0)
        self.path.rename(self.path.with_name(f"journal.{number:06d}.jsonl"))
        for old in kept[: max(0, len(kept) + 1 - self._most_files)]:
            old.unlink()
        self._stream = open_private(self.path, "ab")


def files(folder: Path) -> list[Path]:
    """Return the files of a journal, the oldest first and the one that is written to last."""
    return [*sorted(folder.glob("journal.??????.jsonl")), folder / JOURNAL]


class Line(NamedTuple):
    """A line of a journal."""

    path: Path
    number: int
    row: Mapping[str, Json] | None  # none: it was never written whole


def lines(folder: Path) -> Iterator[Line]:
    """Yield the lines of a journal in order.

    Raises:
        UserError: there is no journal.
    """
    if not (folder / JOURNAL).exists():
        raise UserError(f"{folder / JOURNAL}: not found; expected the --folder of a controller")
    for path in files(folder):
        with path.open("rb") as stream:
            for number, text in enumerate(stream, start=1):
                try:
                    row = json.loads(text)
                except (ValueError, RecursionError):
                    row = None
                yield Line(path, number, row if isinstance(row, dict) else None)


def rows(folder: Path) -> Iterator[Mapping[str, Json]]:
    """Yield the rows of the lines that were written whole; raise as `lines` does."""
    return (line.row for line in lines(folder) if line.row is not None)


def _key(path: Path) -> bytes:
    """Return the key by which users are told apart; made once, and readable by its owner alone."""
    if not path.exists():
        made = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(made, "wb") as stream:
            stream.write(secrets.token_bytes(32))
    return path.read_bytes()


class Gone(NamedTuple):
    """A job that is no longer there."""

    job: JobRow  # as it was seen last
    end: float
    could: bool  # could it have started?
    open: float | None  # the first arrival of the jobs that are still there

    def told(self, user: str) -> dict[str, Json]:
        """Return the row of a journal.

        Args:
            user: as it is called there.
        """
        job = self.job
        return {
            "job": job.number,
            "array": job.array,
            "user": user,
            "partition": ",".join(job.partitions),
            "submit": job.submitted,
            "eligible": job.arrived,
            "start": job.started if job.state in HOLDING else None,
            "end": self.end,
            "limit_s": job.limit_s,
            "nodes": job.nodes,
            "units": dict(job.units),
            "could_start": self.could,
            "open": self.open,
        }


class Outcomes:
    """Watches jobs from reading to reading."""

    def __init__(self) -> None:
        self._seen: dict[int, JobRow] = {}
        self._could: set[int] = set()  # of those, the jobs that run or could start

    def since(self, reading: Reading, let_go: Container[int] = ()) -> Iterator[tuple[str, Gone]]:
        """Yield the jobs that are gone since the reading before: `ran`, or `left` if none saw them run.

        Args:
            reading: of the cluster.
            let_go: jobs that the controller held: they could start, but for it, when they were submitted.
        """
        there = {job.number: job for job in reading.jobs if job.state in (PENDING, *HOLDING)}
        could = {number for number, job in there.items() if number in let_go or _could_start(job, reading.now)}
        there |= {number: job._replace(eligible=None) for number, job in there.items() if number in let_go}
        since = [there[number].arrived for number in could]
        open_ = min((time for time in since if reading.now - time <= OPEN_S), default=None)
        for number, job in self._seen.items():
            now = there.get(number)
            if now is not None and now.submitted == job.submitted:
                continue
            ran = job.state in HOLDING and job.started is not None
            yield "ran" if ran else "left", Gone(job, reading.now, number in self._could, open_)
        self._seen, self._could = there, could


def _could_start(job: JobRow, now: float) -> bool:
    waits = job.eligible is not None and job.eligible <= now and not (job.hold or job.depends)
    return job.state in HOLDING or waits
