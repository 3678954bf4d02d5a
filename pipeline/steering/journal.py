"""Journal of readings, decisions, changes and outcomes of jobs.

A row is a JSON object on a line, written to the disk each tick; files are rotated. Users appear as a keyed digest whose
key is in the same folder; names of jobs are never read. A job counts as ended when a reading no longer has it, which is
up to a tick late. A job that waited at one reading and is gone at the next ran for less than a tick or was cancelled.
"""

import hashlib
import hmac
import json
import os
import secrets
from collections.abc import Callable, Container, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from pipeline.core.storage.files import OWNER, open_private, private_folder, write
from pipeline.core.types import Json
from pipeline.errors import UserError
from pipeline.steering.rows import HOLDING, PENDING, JobRow, Reading

JOURNAL, KEY = "journal.jsonl", "users.key"
VERSION = 1
MOST_BYTES = 64_000_000  # of one file
MOST_FILES = 20  # older ones are removed
OPEN_S = 86_400.0  # a job that exists for longer keeps no window open


class Journal:
    """The journal of a folder."""

    def __init__(self, folder: Path, most_bytes: int = MOST_BYTES, most_files: int = MOST_FILES) -> None:
        self.path, self._most_bytes, self._most_files = folder / JOURNAL, most_bytes, most_files
        if not (key := folder / KEY).exists():
            write(key, secrets.token_bytes(32), OWNER)
        self._key = key.read_bytes()
        private_folder(folder, "journal.*.jsonl", KEY)
        self._stream = open_private(self.path, "ab")
        with self.path.open("rb") as stream:  # end a line that a power cut left half-written; readers skip it
            stream.seek(max(0, stream.seek(0, os.SEEK_END) - 1))
            if stream.read(1) not in (b"", b"\n"):
                self._stream.write(b"\n")
        self._rows: list[bytes] = []

    def add(self, kind: str, time: float, **what: Json) -> None:
        """Add a row, written with the next `keep`."""
        row = {"kind": kind, "time": round(time, 3), **what}
        self._rows.append(json.dumps(row, separators=(",", ":")).encode() + b"\n")

    def keep(self) -> None:
        """Write the added rows to the disk. Raises UserError: the disk is full, or gone."""
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

    def pseudonym(self, user: str) -> str:
        """Return the keyed digest of a user."""
        return hmac.new(self._key, user.encode(), hashlib.sha256).hexdigest()[:12]

    def close(self) -> None:
        """Write the added rows, and close the file."""
        self.keep()
        self._stream.close()

    def _rotate(self) -> None:
        self._stream.close()
        kept = files(self.path.parent)[:-1]
        number = 1 + max((int(path.suffixes[0][1:]) for path in kept), default=0)
        self.path.rename(self.path.with_name(f"journal.{number:06d}.jsonl"))
        for old in kept[: max(0, len(kept) + 1 - self._most_files)]:
            old.unlink()
        self._stream = open_private(self.path, "ab")


def files(folder: Path) -> list[Path]:
    """Return the files of a journal, the oldest first and the current one last."""
    return [*sorted(folder.glob("journal.??????.jsonl")), folder / JOURNAL]


class Line(NamedTuple):
    """A line of a journal."""

    path: Path
    number: int
    row: Mapping[str, Json] | None  # none: it was not written completely


def lines(folder: Path) -> Iterator[Line]:
    """Yield the lines of a journal in order; raise a UserError if there is none."""
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
    """Yield the rows of the complete lines; raises like `lines`."""
    return (line.row for line in lines(folder) if line.row is not None)


class OutcomeTracker:
    """Follows jobs from reading to reading."""

    def __init__(self, pseudonym: Callable[[str], str]) -> None:
        """Begin without jobs; `pseudonym` returns the digest of a user."""
        self._pseudonym = pseudonym
        self._seen: dict[int, JobRow] = {}
        self._could: set[int] = set()  # of those, the jobs that run or could start

    def update(self, reading: Reading, let_go: Container[int] = ()) -> Iterator[tuple[str, dict[str, Json]]]:
        """Yield the kind and the row of each job that has disappeared since the previous reading.

        The kind is `ran` if it was seen to run, else `left`. The jobs of `let_go` could start at once.
        """
        there = {job.number: job for job in reading.jobs if job.state in (PENDING, *HOLDING)}

        def startable(job: JobRow) -> bool:
            eligible = job.eligible is not None and job.eligible <= reading.now
            return job.state in HOLDING or (eligible and not (job.hold or job.depends))

        could = {number for number, job in there.items() if number in let_go or startable(job)}
        there |= {number: job._replace(eligible=None) for number, job in there.items() if number in let_go}
        since = [there[number].arrived for number in could]
        open_ = min((time for time in since if reading.now - time <= OPEN_S), default=None)
        for number, job in self._seen.items():
            now = there.get(number)
            if now is None or now.submitted != job.submitted:
                ran = job.state in HOLDING and job.started is not None
                yield "ran" if ran else "left", self._row(job, reading.now, number in self._could, open_)
        self._seen, self._could = there, could

    def _row(self, job: JobRow, end: float, could: bool, open_: float | None) -> dict[str, Json]:
        """Return the row of a job as last seen; `open_`: first arrival of the remaining jobs."""
        return {
            "job": job.number,
            "array": job.array,
            "user": self._pseudonym(job.user),
            "partition": ",".join(job.partitions),
            "submit": job.submitted,
            "eligible": job.arrived,
            "start": job.started if job.state in HOLDING else None,
            "end": end,
            "limit_s": job.limit_s,
            "nodes": job.nodes,
            "units": dict(job.units),
            "could_start": could,
            "open": open_,
        }
