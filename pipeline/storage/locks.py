"""Locks of files: one process at a time does some work, and the lock ends with whatever holds the file open."""

import fcntl
import os
import time
from pathlib import Path
from typing import TextIO

from pipeline.errors import UserError

LOOK_S = 0.2
ENDING_S = 15.0  # in which what was killed, or lost the DVC that ran it, has ended


def hold(path: Path, what: str, patient: bool = False) -> TextIO:
    """Return an open file that no other process holds, or say who does; its lock ends when it is closed everywhere.

    `patient`: wait for a holder that lives, too, since it may be ending; one that was killed is always waited for.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    held, until = path.open("a+"), time.monotonic() + ENDING_S
    while not _locked(held):
        held.seek(0)
        if (holder := held.read().strip() or "unknown") == str(os.getpid()):
            return held  # it is this process that does the work
        if time.monotonic() > until or (not patient and _lives(holder)):
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
        pass  # a file system without locks: hope
    return True


def _lives(holder: str) -> bool:
    try:
        os.kill(int(holder), 0)
    except PermissionError:
        return True
    except (ProcessLookupError, ValueError):
        return False
    return True
