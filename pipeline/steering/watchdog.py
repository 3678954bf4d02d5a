"""A process that undoes the controller's changes when the controller dies or hangs, once slurmctld answers.

It reads a pipe from the controller: a byte each tick. The pipe closes when the controller ends, whatever the cause;
silence means that the controller hangs, which is then killed first. A running scontrol inherits the pipe, so that the
pipe does not close before scontrol is done. The watchdog holds the controller's lock until it has finished, so that no
other controller begins meanwhile.
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
from pathlib import Path
from typing import BinaryIO

from pipeline.errors import UserError
from pipeline.progress import say
from pipeline.steering.ledger import SAVED_S, WATCHDOG, Ledger, sign_lock
from pipeline.steering.reset import retry_undo
from pipeline.steering.slurm import Slurm

PAUSE_S = 2.0  # between two attempts
SILENT_S = 300.0  # at least; more than the commands of a tick may take together
GIVEN_UP_S = 86_400.0  # of attempts, after which it gives up
SWEPT_S = 5.0  # between two looks for jobs that were submitted held, without a controller to release them
FAILED = 1  # exit code: what was set stays until a person resets it
DONE, GONE, SILENT = b".", b"", b"?"  # end of the controller: all is undone already, it died, it hangs


class Watchdog:
    """The controller's end of the pipe."""

    def __init__(self, folder: Path, lock: BinaryIO, sign: socket.socket, tick_s: float) -> None:
        theirs, self.pipe = os.pipe()  # every process that changes something for the controller must hold it
        silent_s = max(SILENT_S, 20 * tick_s)
        words = [sys.executable, "-m", "pipeline.steering.watchdog", str(folder), str(os.getpid())]
        held = (theirs, lock.fileno(), sign.fileno())
        self._process = subprocess.Popen(
            [*words, *map(str, held), str(silent_s)],
            pass_fds=held,
            stdin=subprocess.DEVNULL,
            start_new_session=True,  # signals of a terminal to the controller do not reach it
        )
        os.close(theirs)

    @property
    def alive(self) -> bool:
        """Whether the watchdog's process runs."""
        return self._process.poll() is None

    def signal_alive(self) -> None:
        """Signal that the controller works."""
        with contextlib.suppress(OSError):  # it was killed
            os.write(self.pipe, b"+")

    def dismiss(self, clean: bool) -> None:
        """Close the pipe; `clean`: all is undone."""
        if clean:
            with contextlib.suppress(OSError):
                os.write(self.pipe, DONE)
        os.close(self.pipe)


def main() -> int:
    """Watch until the controller is gone; then undo what it left."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # signals that end the controller must not end this process
    folder, silent_s = Path(sys.argv[1]), float(sys.argv[-1])
    controller, pipe, locked, sign = map(int, sys.argv[2:-1])
    lock, ended = os.fdopen(locked, "a+b"), _watch(pipe, silent_s)
    back = True
    if ended != DONE:
        if ended == SILENT and os.getppid() == controller:
            say("steer: the controller has been silent for too long and is ended")
            os.kill(controller, signal.SIGKILL)
            _watch(pipe, silent_s)  # until its scontrol has ended, too
        back = _undo(folder, lock)
    os.close(sign)
    if not back:
        return FAILED
    # A killed slurmctld has not saved its last seconds, so look again. Another controller may begin meanwhile, and the
    # ledger then tells it what is to be undone.
    fcntl.flock(lock, fcntl.LOCK_UN)
    time.sleep(SAVED_S)
    said = False
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:  # another controller is in charge
            return 0
        back = _undo(folder, lock)
        fcntl.flock(lock, fcntl.LOCK_UN)
        if not back:
            return FAILED
        if not (held_in := Ledger(folder).held_in):
            return 0
        if not said:
            said = True
            where = ", ".join(held_in)
            say(
                f"steer: no controller: jobs that are submitted held in {where} are let go, until one begins or --reset"
            )
        time.sleep(SWEPT_S)


def _undo(folder: Path, lock: BinaryIO) -> bool:
    """Undo everything, with the lock held; return whether that was done in time."""
    sign_lock(lock, WATCHDOG)
    return retry_undo(Slurm(), Ledger(folder), say, PAUSE_S, GIVEN_UP_S)


def _watch(pipe: int, silent_s: float) -> bytes:
    """Wait for the end of the controller: DONE, GONE or SILENT."""
    while select.select([pipe], [], [], silent_s)[0]:
        read = os.read(pipe, 4096)
        if not read or read.endswith(DONE):
            return DONE if read else GONE
    return SILENT


if __name__ == "__main__":
    try:
        sys.exit(main())
    except UserError as error:  # a ledger that cannot be read
        say(f"steer: the watchdog ends: {error}")
        sys.exit(FAILED)
