"""A process beside the controller that takes back what it set when it dies or hangs, once slurmctld answers.

It reads a pipe from the controller: a byte each tick. The pipe ends with the controller, however that ends; silence
means that it hangs, and then it is killed first. A scontrol that is under way has the pipe, too, so that the pipe does
not end before what it writes is written. The watchdog holds the controller's lock until it is done, so that no other
controller begins meanwhile.
"""

import contextlib
import fcntl
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from pipeline.errors import UserError
from pipeline.progress import say
from pipeline.steering.asking import Slurm
from pipeline.steering.book import SAVED_S, WHO, Book, held_by
from pipeline.steering.resetting import until_reset

PAUSE_S = 2.0  # between two tries
SILENT_S = 300.0  # at least; more than the commands of a tick may take together
GIVEN_UP_S = 86_400.0  # without an answer of slurmctld
SWEPT_S = 5.0  # between two looks for jobs that were submitted held, where no controller lets them go
FAILED = 1  # exit code: what was set stays until a person takes it back
DONE, GONE, SILENT = b".", b"", b"?"  # how it ends: all is taken back already, or it died, or it hangs


class Watched:
    """The controller's end of it."""

    def __init__(self, folder: Path, lock: BinaryIO, sign: socket.socket, tick_s: float) -> None:
        theirs, self.pipe = os.pipe()  # whoever changes something for the controller must hold it
        silent_s = max(SILENT_S, 20 * tick_s)
        words = [sys.executable, "-m", "pipeline.steering.watchdog", str(folder), str(os.getpid())]
        held = (theirs, lock.fileno(), sign.fileno())
        self._process = subprocess.Popen(
            [*words, *map(str, held), str(silent_s)],
            pass_fds=held,
            stdin=subprocess.DEVNULL,
            start_new_session=True,  # what a terminal sends to the controller is not for it
        )
        os.close(theirs)

    @property
    def alive(self) -> bool:
        """Return whether it watches."""
        return self._process.poll() is None

    def alive_still(self) -> None:
        """Tell it that the controller goes round."""
        with contextlib.suppress(OSError):  # it was killed
            os.write(self.pipe, b"+")

    def done(self, clean: bool) -> None:
        """Let it go: nothing is left to take back, or all is now its own."""
        if clean:
            with contextlib.suppress(OSError):
                os.write(self.pipe, DONE)
        os.close(self.pipe)


def main(words: Sequence[str]) -> int:
    """Watch until the controller is gone; then take back what it left."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # what ends the controller must not end it; it ends by itself
    folder, silent_s = Path(words[0]), float(words[-1])
    controller, pipe, locked, sign = map(int, words[1:-1])
    lock, ended = os.fdopen(locked, "a+b"), _watch(pipe, silent_s)
    back = True
    if ended != DONE:
        if ended == SILENT and os.getppid() == controller:
            say("steer: the controller has been silent for too long and is ended")
            os.kill(controller, signal.SIGKILL)
            _watch(pipe, silent_s)  # until a scontrol of its has ended, too
        back = _reset(folder, lock)
    os.close(sign)
    return _look_again(folder, lock) if back else FAILED


def _reset(folder: Path, lock: BinaryIO) -> bool:
    """Take everything back, with the lock held; return whether that was done in time."""
    held_by(lock, WHO)
    return until_reset(Slurm(), Book(folder), say, PAUSE_S, GIVEN_UP_S)


def _look_again(folder: Path, lock: BinaryIO) -> int:
    """Look whether what was taken back stays so: a slurmctld that is killed has not saved its last seconds.

    Another controller may begin meanwhile, and then it knows by the book what is to be taken back.
    """
    fcntl.flock(lock, fcntl.LOCK_UN)
    time.sleep(SAVED_S)
    said = False
    while _taken_back(folder, lock):
        if not (held_in := Book(folder).held_in):
            return 0
        if not said:
            said = True
            where = ", ".join(held_in)
            say(
                f"steer: no controller: jobs that are submitted held in {where} are let go, until one begins or --reset"
            )
        time.sleep(SWEPT_S)
    return FAILED


def _taken_back(folder: Path, lock: BinaryIO) -> bool:
    """Take all back unless another controller is in charge; return whether there is more to look after."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        sys.exit(0)
    back = _reset(folder, lock)
    fcntl.flock(lock, fcntl.LOCK_UN)
    return back


def _watch(pipe: int, silent_s: float) -> bytes:
    """Return how it ended: DONE, GONE or SILENT."""
    while select.select([pipe], [], [], silent_s)[0]:
        read = os.read(pipe, 4096)
        if not read or read.endswith(DONE):
            return DONE if read else GONE
    return SILENT


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except UserError as error:  # of a ledger that cannot be read
        say(f"steer: the watchdog ends: {error}")
        sys.exit(FAILED)
