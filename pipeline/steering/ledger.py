"""Ledger of what the controller set and released, stored so that a crash does not lose it.

An intent is saved before the command runs, and confirmed when scontrol or a later reading shows that it took effect.
Until then both states are possible. The folder has a lock, which the watchdog keeps when the controller is gone.
"""

import fcntl
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep
from typing import BinaryIO

from pydantic import BaseModel, ConfigDict, ValidationError

from pipeline.core.storage.files import OWNER, open_private, private_folder, write
from pipeline.errors import UserError
from pipeline.progress import say

LOCK, LEDGER = "lock", "set.json"
WATCHDOG = "a watchdog that takes back what a controller set"
PATIENCE_S, LOOK_S = 15.0, 0.1  # with a watchdog that holds the lock for a moment; between two attempts
SAVED_S = 15.0  # slurmctld saves its state every 5 s; one that is killed restarts from there
MOST_BEFORE = 16  # earlier factors that a job may still have: those set in SAVED_S at one tick a second
MISSES = 2  # consecutive readings without the factor that was set, after which a job counts as frozen


class Entry(BaseModel):
    """A job whose factor was set."""

    model_config = ConfigDict(extra="forbid")
    submitted: float
    factor: int  # the latest intent
    before: tuple[int, ...] = ()  # earlier factors, newest first: after a failed scontrol the job may have any of them
    confirmed: bool = False  # by slurmctld, so that the next reading must show it
    misses: int = 0
    gone: float | None = None  # since when the job is missing; if slurmctld forgot its end, it reappears

    @property
    def frozen(self) -> bool:
        """Whether setting the factor has no effect, as for a job with a priority of its own."""
        return self.misses >= MISSES


class Held(BaseModel):
    """A job of a partition whose jobs are submitted held."""

    model_config = ConfigDict(extra="forbid")
    submitted: float
    hold: str  # hold when first seen; "": not held, so that any hold from now on is not the controller's
    let_go: float | None = None  # time of the intent to release it
    done: bool = False  # the release is confirmed by scontrol or a reading
    kept: bool = False  # so long ago that slurmctld has saved it
    nodes: tuple[str, ...] = ()  # where it was to start,
    pinned: bool = False  # and it may start nowhere else


class Contents(BaseModel):
    """Contents of the ledger's file."""

    model_config = ConfigDict(extra="forbid")
    version: int = 1
    jobs: dict[int, Entry] = {}
    held_in: tuple[str, ...] = ()
    held: dict[int, Held] = {}
    withdrawn: dict[str, str] = {}  # policies that the canary withdrew, by digest, and why


class Ledger:
    """Factors that were set, by number of a job or an array, and the held jobs that the controller releases."""

    def __init__(self, folder: Path, blank: bool = False) -> None:
        self.path, self._unsaved = folder / LEDGER, False
        kept = Contents()
        try:
            if not blank and self.path.exists():
                kept = Contents.model_validate_json(self.path.read_bytes())
        except OSError as error:
            raise UserError(f"{self.path}: cannot be read ({error.strerror})") from error
        except ValidationError as error:
            said = error.errors()[0]["msg"]
            raise UserError(f"{self.path}: expected what a controller wrote, found something else ({said})") from None
        self.jobs, self.held_in, self.held, self.withdrawn = kept.jobs, kept.held_in, kept.held, kept.withdrawn

    def save(self) -> None:
        """Save the ledger; a full disk is an error."""
        now = Contents(jobs=self.jobs, held_in=self.held_in, held=self.held, withdrawn=self.withdrawn)
        write(self.path, now.model_dump_json().encode() + b"\n", OWNER)

    def try_save(self) -> bool:
        """Save the ledger if the disk permits, and return whether it did: undoing must never wait for a disk."""
        try:
            self.save()
        except UserError as error:
            if not self._unsaved:
                say(f"steer: {error}; jobs are let go and factors are taken back all the same")
            self._unsaved = True
            return False
        self._unsaved = False
        return True

    def record_intent(self, factors: Mapping[int, int], submitted: Mapping[int, float]) -> None:
        """Save the factors that are about to be set; a full disk is an error, before anything is set."""
        self.note(factors, submitted)
        self.save()

    def note(self, factors: Mapping[int, int], submitted: Mapping[int, float]) -> None:
        """Note jobs' new factors, and the earlier ones that they may still have."""
        for number, factor in factors.items():
            known = self.jobs.get(number)
            earlier = () if known is None else dict.fromkeys((known.factor, *known.before))
            same = known is not None and known.submitted == submitted[number]
            self.jobs[number] = Entry(
                submitted=submitted[number],
                factor=factor,
                before=tuple(one for one in earlier if one not in (0, factor))[:MOST_BEFORE],
                misses=known.misses if known is not None and same else 0,
            )

    def mark_uncertain(self) -> None:
        """Note that slurmctld was away: what it accepted may be lost, which does not mean that a job is frozen."""
        for entry in self.jobs.values():
            if not entry.frozen:
                entry.confirmed, entry.misses = False, 0

    def update_present(self, numbers: set[int], now: float) -> None:
        """Note which jobs exist, and forget those missing for so long that slurmctld has saved their end."""
        for number, entry in list(self.jobs.items()):
            if number in numbers:
                entry.gone = None
            elif entry.gone is None:
                entry.gone = now
            elif now - entry.gone > SAVED_S:
                del self.jobs[number]

    def owns(self, number: int, factor: int) -> bool:
        """Return whether a job's factor was set here or is 0."""
        known = self.jobs.get(number)
        return factor == 0 or (known is not None and factor in (known.factor, *known.before))


def lock_folder(folder: Path) -> BinaryIO:
    """Create a folder if needed, and lock it while any process has the returned file open; UserError if that fails."""
    try:
        private_folder(folder, LEDGER)
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
            if who.startswith(WATCHDOG) and monotonic() < until:
                sleep(LOOK_S)
                continue
            stream.close()
            who = who or "another controller"
            raise UserError(f"{folder}: {who} is at work here; expected one at a time") from None
        sign_lock(stream, "a controller")
        return stream


def sign_lock(stream: BinaryIO, holder: str) -> None:
    """Write the holder into the lock, if the disk has room."""
    with suppress(OSError):
        os.ftruncate(stream.fileno(), 0)
        os.write(stream.fileno(), f"{holder} (process {os.getpid()})".encode())
