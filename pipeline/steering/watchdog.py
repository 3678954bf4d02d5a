"""Undo all changes, on behalf of the controller when it ends or of a user, and a process that does so if it dies.

A reset factor stays in the ledger, as 0: a killed slurmctld has forgotten its last seconds, and restarts with the
earlier factors.

The process, the watchdog, acts when the controller dies or hangs, once slurmctld answers. It reads a pipe from the
controller: a byte each tick. The pipe closes when the controller ends, whatever the cause; silence means that the
controller hangs, which is then killed first. A running scontrol inherits the pipe, so that the pipe does not close
before scontrol is done. The watchdog holds the controller's lock until it has finished, so that no other controller
begins meanwhile.
"""

import contextlib
import fcntl
import os
import re
import select
import signal
import socket
import subprocess
import sys
from pathlib import Path
from time import monotonic, sleep
from typing import BinaryIO

from pipeline.errors import UserError
from pipeline.progress import say
from pipeline.steering.ledger import SAVED_S, WATCHDOG, Ledger, sign_lock
from pipeline.steering.release import LOOK_S, TRIES, release_all
from pipeline.steering.rows import OddError
from pipeline.steering.slurm import AwayError, Slurm, confirmed_jobs

UNKNOWN = re.compile(r"Invalid job id specified for job (\d+)")
PAUSE_S, LONGEST_PAUSE_S = 2.0, 60.0  # between two attempts to undo all: the first pause, and the longest
SILENT_S = 300.0  # at least; more than the commands of a tick may take together
GIVEN_UP_S = 86_400.0  # of attempts, after which it gives up
SWEPT_S = 5.0  # between two looks for jobs that were submitted held, without a controller to release them
FAILED = 1  # exit code: what was set stays until a person resets it
DONE, GONE, SILENT = b".", b"", b"?"  # end of the controller: all is undone already, it died, it hangs


def reset(slurm: Slurm, ledger: Ledger) -> int:
    """Set the factors of all jobs in the ledger to 0; return how many present jobs had another, or raise a UserError.

    A factor that another user has set since stays. Running jobs are reset too, since a requeued job keeps its factor.
    """
    wanted = _jobs_to_reset(ledger, _shown_factors(slurm)) if ledger.jobs else set()
    count, left = sum(ledger.jobs[number].gone is None for number in wanted), wanted
    stay, unsure, complaint = set[int](), set[int](), ""
    for attempt in range(TRIES):
        if not left:
            break
        sleep(LOOK_S if attempt else 0.0)
        complaint = slurm.set(dict.fromkeys(left, 0))
        seen = _shown_factors(slurm) or {}
        stay = {number for number in left if seen.get(number, 0) != 0}
        # For jobs that sprio does not show, scontrol's answer must do; a job unknown to slurmctld needs no reset.
        unknown = {int(one) for one in UNKNOWN.findall(complaint)}
        unsure = left - seen.keys() - confirmed_jobs(left, complaint) - unknown
        left = stay | {number for number in unsure if ledger.jobs[number].gone is None}
    if stay:
        why = f": {' '.join(complaint.split())[:200]}" if complaint else ""
        raise OddError(f"scontrol: {len(stay)} jobs keep their SiteFactor, job {min(stay)} first{why}")
    if done := wanted - unsure:
        ledger.note(dict.fromkeys(done, 0), {number: ledger.jobs[number].submitted for number in done})
        ledger.try_save()
    return count


def _shown_factors(slurm: Slurm) -> dict[int, int] | None:
    """Return the factors that sprio shows, or None if unreadable; the caller then resets every job of the ledger."""
    try:
        return slurm.factors()
    except AwayError:
        raise
    except OddError:
        return None


def _jobs_to_reset(ledger: Ledger, seen: dict[int, int] | None) -> set[int]:
    """Return the jobs with a factor that was set here, and those whose factor is not shown because they run.

    A job that was gone may be running again by now; if not, slurmctld complains, which does no harm.
    """
    if seen is None:
        return set(ledger.jobs)
    common = ledger.jobs.keys() & seen.keys()
    shown = {number for number in common if seen[number] and ledger.owns(number, seen[number])}
    return shown | {number for number, entry in ledger.jobs.items() if number not in seen and entry.factor}


def undo_all(slurm: Slurm, ledger: Ledger) -> str:
    """Reset all factors and release all jobs held for the controller; return a summary, or raise like `reset`."""
    found, failed = list[str](), list[UserError]()
    for said, act in (("SiteFactor of {} jobs taken back", reset), ("{} held jobs let go", release_all)):
        try:
            if count := act(slurm, ledger):
                found.append(said.format(count))
        except UserError as error:  # a failure of one must not prevent the other
            failed.append(error)
    if failed:
        raise failed[0]
    return ", ".join(found)


def retry_undo(slurm: Slurm, ledger: Ledger, pause_s: float = PAUSE_S, most_s: float = GIVEN_UP_S) -> bool:
    """Undo all as soon as slurmctld answers; return whether that took less than `most_s`.

    Pauses grow from `pause_s` by half each time, up to a minute. Each reason for a failure is printed once.
    """
    said, begun = "", monotonic()
    while True:
        try:
            if back := undo_all(slurm, ledger):
                say(f"steer: {back}")
            return True
        except UserError as error:
            if str(error) != said:
                said = str(error)
                say(f"steer: what was set is not taken back yet: {said}")
        if monotonic() - begun >= most_s:
            by_hand = f"python -m pipeline steer slurm --reset --folder {ledger.path.parent}"
            say(f"steer: given up after {most_s / 3600:g} h; when Slurm is back: {by_hand}")
            return False
        sleep(min(pause_s, most_s))
        pause_s = min(1.5 * pause_s, LONGEST_PAUSE_S)


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

    def signal_alive(self) -> bool:
        """Signal that the controller works; return whether the watchdog's process still runs."""
        with contextlib.suppress(OSError):  # it was killed
            os.write(self.pipe, b"+")
        return self._process.poll() is None

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
    sleep(SAVED_S)
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
        sleep(SWEPT_S)


def _undo(folder: Path, lock: BinaryIO) -> bool:
    """Undo everything, with the lock held; return whether that was done in time."""
    sign_lock(lock, WATCHDOG)
    return retry_undo(Slurm(), Ledger(folder))


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
