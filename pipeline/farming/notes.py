"""Notes of a farm for the next one, under .dvc/tmp: its lock, times of stages, and copies of dvc.lock.

Stages are in dvc.lock in the order in which `dvc repro` would have written them, whichever ended first: DVC keeps the
place of a stage that is there already, and puts a new one after the others.
"""

import fcntl
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from pipeline.core.config.parsing import parsed
from pipeline.core.storage.files import discard, hold, write
from pipeline.errors import UserError
from pipeline.progress import say
from pipeline.tracking.digests import LOCK, dvc_waits

FOLDER = Path(".dvc/tmp/farm")
SECONDS = FOLDER / "seconds.json"
BEFORE = FOLDER / "before.lock"  # dvc.lock at the beginning of a farm that has not ended
LATEST = FOLDER / "latest.lock"  # dvc.lock after its last stage: DVC writes in place, and a kill may truncate the file
USERS = Path(".dvc/tmp/rwlock")  # DVC's list of readers and writers
HEAD = re.compile(r"^(?=  [^ ].*:$)", re.MULTILINE)  # before the first line of a stage
FIRST_FREE = 10  # file descriptor that sh does not use


def seconds() -> dict[str, float]:
    """Return the duration of the last run of each stage here; empty if the notes are missing or unreadable."""
    try:
        found = json.loads(SECONDS.read_bytes())
        return {str(stage): float(took_s) for stage, took_s in found.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def note(took_s: Mapping[str, float]) -> None:
    """Write the durations of stages."""
    write(SECONDS, json.dumps(took_s, indent=1, sort_keys=True).encode())


@contextmanager
def exclusive() -> Iterator[int]:
    """Lock this repository for one farm; yield the file descriptor of the lock, which the stages must hold, too."""
    if not Path(".dvc").is_dir() or not Path("dvc.yaml").is_file():
        raise UserError("farm: expected dvc.yaml and .dvc here; run this at the repository's root")
    with hold(FOLDER / "lock", "farm") as held:
        kept = fcntl.fcntl(held, fcntl.F_DUPFD_CLOEXEC, FIRST_FREE)
        try:
            yield kept
        finally:
            os.close(kept)


def begin() -> None:
    """Copy dvc.lock before a farm, unless an earlier farm has not ended."""
    if not BEFORE.exists():
        with dvc_waits():
            write(BEFORE, LOCK.read_bytes() if LOCK.exists() else b"")


def keep() -> None:
    """Copy dvc.lock after a stage."""
    with dvc_waits():
        write(LATEST, LOCK.read_bytes())


def unfinished() -> bool:
    """Return whether a farm has begun here and has not ended."""
    return BEFORE.exists()


def end(passed: Sequence[str]) -> None:
    """Put the stages of dvc.lock in the order of `dvc repro`, and end the farm."""
    with dvc_waits():
        lock = LOCK.read_text(encoding="utf-8")
        if (put := ordered(lock, stages_of(BEFORE.read_text(encoding="utf-8")), passed)) != lock:
            write(LOCK, put.encode())
    discard(BEFORE, LATEST)


def repair() -> None:
    """Restore the files of DVC that a kill has truncated: DVC writes them in place, and refuses damaged ones."""
    if USERS.exists():
        with USERS.with_name(f"{USERS.name}.lock").open("a") as guard:
            fcntl.flock(guard, fcntl.LOCK_EX)  # DVC holds it briefly while it writes
            try:
                json.loads(USERS.read_bytes())
            except (ValueError, RecursionError):
                USERS.unlink()
                say(f"farm: {USERS} was cut by a kill; removed")
    copy = LATEST if LATEST.exists() else BEFORE
    if copy.exists():
        with dvc_waits():
            kept = copy.read_bytes()
            if is_truncated(LOCK.read_bytes() if LOCK.exists() else b"", kept):  # DVC's cache has the missing entries
                write(LOCK, kept)
                say(f"farm: {LOCK} was cut by a kill; restored its state when a stage last ended")


def is_truncated(lock: bytes, kept: bytes) -> bool:
    """Return whether a kill has truncated dvc.lock, compared with an earlier copy."""
    try:
        parsed(lock.decode(), str(LOCK), of_dvc=True)
    except (UserError, UnicodeDecodeError):
        return True
    lost = set(stages_of(kept.decode())) - set(stages_of(lock.decode()))
    return bool(lost) or not lock.endswith(b"\n")


def stages_of(lock: str) -> list[str]:
    """Return the stages of a dvc.lock in their order."""
    return [_name(block) for block in HEAD.split(lock)[1:]]


def ordered(lock: str, before: Sequence[str], passed: Sequence[str]) -> str:
    r"""Return a dvc.lock with its stages in the order of `dvc repro`: those that it had `before`, then those `passed`.

    >>> ordered("schema: '2.0'\nstages:\n  b:\n    cmd: b\n  a:\n    cmd: a\n", [], ["a", "b"])
    "schema: '2.0'\nstages:\n  a:\n    cmd: a\n  b:\n    cmd: b\n"
    """
    place = {name: at for at, name in enumerate(dict.fromkeys([*before, *passed]))}
    head, *blocks = HEAD.split(lock)
    return head + "".join(sorted(blocks, key=lambda block: place.get(_name(block), len(place))))


def _name(block: str) -> str:
    return block.partition("\n")[0].strip().removesuffix(":").strip("'\"")
