"""Ledger of what the controller set and released, kept where a crash does not lose it.

An intent is written before Slurm hears of it, and confirmed when scontrol or a later reading shows that it was done.
Until then both may be true. The folder has a lock, which the watchdog keeps when the controller is gone.
"""

import fcntl
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep
from typing import BinaryIO

from pydantic import BaseModel, ConfigDict, ValidationError

from pipeline.errors import UserError
from pipeline.progress import say
from pipeline.storage.files import OWNER, open_private, private_folder, write

LOCK, BOOK = "lock", "set.json"
WHO = "a watchdog that takes back what a controller set"
PATIENCE_S, LOOK_S = 15.0, 0.1  # with a watchdog that has the lock for a moment, and between two tries
SAVED_S = 15.0  # in which slurmctld has saved what it did (it does so every 5 s); one that is killed goes back to that
MOST_BEFORE = 16  # earlier factors of a job, any of which it may have: as many as a tick a second sets in SAVED_S
MISSES = 2  # readings in a row that do not show what was set, behind which a job counts as frozen


class Entry(BaseModel):
    """A job whose factor was set."""

    model_config = ConfigDict(extra="forbid")
    submitted: float
    factor: int  # the last that was to be set
    before: tuple[int, ...] = ()  # earlier ones, the last first: a scontrol that failed leaves open which one is there
    told: bool = False  # slurmctld took it, so that the next reading must show it
    misses: int = 0
    gone: float | None = None  # since when the job is not there; one that slurmctld forgot to have ended comes back

    @property
    def frozen(self) -> bool:
        """Return whether setting it does nothing, as of a job with a priority of its own."""
        return self.misses >= MISSES


class Held(BaseModel):
    """A job of a partition whose jobs are submitted held."""

    model_config = ConfigDict(extra="forbid")
    submitted: float
    hold: str  # how it was held when it was seen first; "": not, so that whoever holds it now is somebody else
    let_go: float | None = None  # when it was to be let go, if it was
    done: bool = False  # and it is certain that it was: scontrol or a reading said so
    kept: bool = False  # and so long ago that slurmctld has saved it
    nodes: tuple[str, ...] = ()  # where it was to start,
    pinned: bool = False  # and it may start nowhere else


class _Kept(BaseModel):
    model_config = ConfigDict(extra="forbid")
    version: int = 1
    jobs: dict[int, Entry]
    held_in: tuple[str, ...] = ()
    held: dict[int, Held] = {}
    behind: dict[str, str] = {}  # policies that the canary took back, by digest, and why


class Book:
    """The factors that were set, by number of a job or an array; and the jobs that are let go from here."""

    def __init__(self, folder: Path, blank: bool = False) -> None:
        self.path, self._unsaved = folder / BOOK, False
        kept = _Kept(jobs={}) if blank else _read(self.path)
        self.jobs, self.held_in, self.held, self.behind = kept.jobs, kept.held_in, kept.held, kept.behind

    def save(self) -> None:
        """Keep it, whatever happens next."""
        write(
            self.path,
            _Kept(jobs=self.jobs, held_in=self.held_in, held=self.held, behind=self.behind).model_dump_json().encode()
            + b"\n",
            OWNER,
        )

    def keep(self) -> bool:
        """Save it where the disk lets us, and return whether it did: taking back must never wait for a disk."""
        try:
            self.save()
        except UserError as error:
            if not self._unsaved:
                say(f"steer: {error}; jobs are let go and factors are taken back all the same")
            self._unsaved = True
            return False
        self._unsaved = False
        return True

    def intend(self, factors: Mapping[int, int], submitted: Mapping[int, float]) -> None:
        """Note what is about to be set, and save it; a full disk is an error, before anything is set."""
        self.note(factors, submitted)
        self.save()

    def note(self, factors: Mapping[int, int], submitted: Mapping[int, float]) -> None:
        """Note the factors that jobs have from now on, or had before."""
        for number, factor in factors.items():
            known = self.jobs.get(number)
            same = known is not None and known.submitted == submitted[number]
            self.jobs[number] = Entry(
                submitted=submitted[number],
                factor=factor,
                before=_before(known, factor),
                misses=known.misses if known is not None and same else 0,
            )

    def took(self, numbers: Iterable[int]) -> None:
        """Note that slurmctld took what was to be set."""
        for number in numbers:
            self.jobs[number].told = True

    def doubt(self) -> None:
        """Note that slurmctld was away: what it took may be lost, and is no sign of a frozen job."""
        for entry in self.jobs.values():
            if not entry.frozen:
                entry.told, entry.misses = False, 0

    def seen(self, numbers: set[int], now: float) -> None:
        """Note which jobs are there, and forget those that have been gone for longer than slurmctld forgets."""
        for number, entry in list(self.jobs.items()):
            if number in numbers:
                entry.gone = None
            elif entry.gone is None:
                entry.gone = now
            elif now - entry.gone > SAVED_S:
                del self.jobs[number]

    def owns(self, number: int, factor: int) -> bool:
        """Return whether a factor that a job has is one that was set here, or none at all."""
        known = self.jobs.get(number)
        return factor == 0 or (known is not None and factor in (known.factor, *known.before))


def _before(known: Entry | None, factor: int) -> tuple[int, ...]:
    """Return the factors that a job may still have when another is set."""
    earlier = () if known is None else dict.fromkeys((known.factor, *known.before))
    return tuple(one for one in earlier if one not in (0, factor))[:MOST_BEFORE]


def _read(path: Path) -> _Kept:
    try:
        return _Kept.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return _Kept(jobs={})
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from error
    except ValidationError as error:
        said = error.errors()[0]["msg"]
        raise UserError(f"{path}: expected what a controller wrote, found something else ({said})") from None


def locked(folder: Path) -> BinaryIO:
    """Return the lock of a folder, which is made where there is none; it is held while the file is open anywhere.

    Raises:
        UserError: somebody holds it, or the folder cannot be made.
    """
    try:
        private_folder(folder, BOOK)
        stream = open_private(folder / LOCK, "a+b")
    except OSError as error:
        raise UserError(f"{folder}: cannot be used ({error.strerror})") from error
    until = monotonic() + PATIENCE_S
    while True:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            stream.seek(0)
            who = stream.read(100).decode(errors="replace").strip()
            if who.startswith(WHO) and monotonic() < until:
                sleep(LOOK_S)
                continue
            stream.close()
            who = who or "another controller"
            raise UserError(f"{folder}: {who} is at work here; expected one at a time") from None
        held_by(stream, "a controller")
        return stream


def held_by(stream: BinaryIO, what: str) -> None:
    """Say in the lock who holds it, if the disk has room for that."""
    with suppress(OSError):
        os.ftruncate(stream.fileno(), 0)
        os.write(stream.fileno(), f"{what} (process {os.getpid()})".encode())
