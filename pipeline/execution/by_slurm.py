"""A whole command as a job of Slurm that srun waits for.

What srun says is not all: of a node that died and came back it may hear nothing, and then says 0 of a job that was
cancelled. So the command notes that it is there, and that it ended well, in files that all nodes see.
"""

import getpass
import hashlib
import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from pipeline.config import repository_root
from pipeline.errors import UserError
from pipeline.execution.beginning import KILLED, SHOWN
from pipeline.execution.setting import Setting
from pipeline.progress import say
from pipeline.storage.files import discard

STOP_S = 10.0  # for what is half written to be cleared away
LOOKED_S = 0.2
WROTE_S = 5.0  # after its end in which what a node wrote is seen here
HEARD_S = 2.0  # between two looks at whether a job is there
SILENT_S = 120.0  # without a sign of it; a folder by a network may show what was written a minute late
ENDED_S = 400.0  # in which a job that is cancelled ends: Slurm gives up a node that is silent after 300

# A command that notes that it is there, every five seconds, and that it ended well; told to end, it is waited for.
# POSIX sh, as ["/bin/sh", "-c", NOTED, FILE, *words].
NOTED = """
trap : TERM INT
while kill -0 $$ && : >"$0.beat"; do sleep 5; done >/dev/null 2>&1 &
trap "kill $!" EXIT
"$@" || exit
: >"$0"
"""


def by_slurm(
    place: Setting, threads: int, words: Sequence[str], command: Sequence[str], given: Mapping[str, str]
) -> int:
    """Return the exit code of a job that srun waits for; one that a killed stage left is ended first.

    Args:
        place: what is said to Slurm.
        threads: of the command.
        words: that name it.
        command: the whole of it.
        given: its environment has beside ours.
    """
    name = f"pipeline-{hashlib.sha256(str(Path.cwd()).encode()).hexdigest()[:SHOWN]}-{'-'.join(words)}"
    end = (repository_root() / place.folder / f"{name}.end").resolve()
    beat = end.with_suffix(".end.beat")
    _end_jobs(name)
    end.parent.mkdir(parents=True, exist_ok=True)
    discard(end, beat)
    line = [*_srun(place, threads, name), "/bin/sh", "-c", NOTED, str(end), *command]
    try:
        job = subprocess.Popen(line, env={**os.environ, **given}, stdin=subprocess.DEVNULL)
    except OSError as error:
        raise UserError(f"executor: srun: {error.strerror}") from error
    try:
        return _waited(job, name, beat) or _ended(end)
    except BaseException:
        with suppress(subprocess.TimeoutExpired):
            job.terminate()  # srun tells the command
            job.wait(STOP_S)
        _end_jobs(name)
        raise
    finally:
        discard(end, beat)


def _srun(place: Setting, threads: int, name: str) -> list[str]:
    options: dict[str, object] = {
        "job-name": name,
        "ntasks": 1,
        "cpus-per-task": threads,
        "time": place.minutes,
        "chdir": Path.cwd(),
    }
    options |= {"partition": place.partition} if place.partition else {}
    options |= place.options
    chosen = [f"--{key}" + ("" if value is True else f"={value}") for key, value in options.items()]
    return ["srun", *chosen, "--input=none", "--kill-on-bad-exit"]


def _waited(job: "subprocess.Popen[bytes]", name: str, beat: Path) -> int:
    """Return srun's exit code; of a node that was lost and came back it hears nothing, so the job is cancelled then."""
    last, since = 0, time.monotonic()
    while True:
        with suppress(subprocess.TimeoutExpired):
            return job.wait(HEARD_S)
        with suppress(FileNotFoundError):
            if (heard := beat.stat().st_mtime_ns) != last:
                last, since = heard, time.monotonic()
        if last and time.monotonic() - since > SILENT_S:
            say(f"executor: nothing was heard of Slurm's job {name} for {SILENT_S:.0f} s; it is cancelled")
            _cancel(name)
            since = time.monotonic()


def _ended(end: Path) -> int:
    """Return 0 if the command has noted that it ended well: srun also says so of one whose node was lost."""
    until = time.monotonic() + WROTE_S
    while not end.exists():
        if time.monotonic() > until:
            return KILLED
        time.sleep(LOOKED_S)
    return 0


def _end_jobs(name: str) -> None:
    """End jobs of a name, and wait until they have ended."""
    words, end = ["squeue", "-h", f"--user={getpass.getuser()}", f"--name={name}"], time.monotonic() + ENDED_S
    try:
        while (asked := subprocess.run(words, capture_output=True, text=True, check=False)).stdout or asked.returncode:
            _cancel(name)
            if time.monotonic() > end:
                why = " ".join(asked.stderr.split())[:300] or f"see squeue --name={name}"
                raise UserError(f"executor: Slurm's job {name} of before does not end: {why}")
            time.sleep(LOOKED_S)
    except OSError as error:
        raise UserError(f"executor: squeue: {error.strerror}") from error


def _cancel(name: str) -> None:
    subprocess.run(["scancel", f"--user={getpass.getuser()}", f"--name={name}"], capture_output=True, check=False)
