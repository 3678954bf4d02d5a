"""Commands on a Slurm cluster, each as a job of srun that is watched by its heartbeat."""

import getpass
import hashlib
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from pipeline.core.config import repository_root
from pipeline.core.storage.files import discard
from pipeline.errors import UserError
from pipeline.execution.commands import KILLED, Commands, Job, LineCallback, Setting
from pipeline.execution.worker import SHOWN
from pipeline.progress import say

PATIENT_S = 60.0  # that jobs may wait before a message is shown
WROTE_S = 5.0  # until the files of an ended job are visible here
LOOKED_END_S = 0.2  # between two looks for the end of a job
SILENT_S = 120.0  # without a heartbeat; a network folder may show a file a minute late
ENDED_S = 400.0  # for a cancelled job to end: Slurm gives up a silent node after 300

# Run a command, write a heartbeat every five seconds, and write a file when it has ended well; on TERM or INT, wait for
# the command. POSIX sh, as ["/bin/sh", "-c", NOTED, FILE, *words].
NOTED = """
trap : TERM INT
while kill -0 $$ && : >"$0.beat"; do sleep 5; done >/dev/null 2>&1 &
trap "kill $!" EXIT
"$@" || exit
: >"$0"
"""


class SlurmJobs:
    """Jobs of one stage. A silent one is cancelled, since srun may not notice that a node died and came back."""

    def __init__(self, place: Setting, commands: Commands, on_line: LineCallback) -> None:
        """Start no job yet."""
        self._place, self._commands, self._on_line = place, commands, on_line
        self._begun_s = time.monotonic()
        self._heard: dict[str, tuple[int, float]] = {}  # last heartbeat of a job, and when it was noticed
        self._explained = False

    def run(self, job: Job) -> int:
        """End the job that an earlier, killed stage may have left, run the job, and return its exit code.

        srun may report 0 for a job that was cancelled. So a job that left no file `end` counts as killed.
        """
        name = f"pipeline-{hashlib.sha256(str(Path.cwd()).encode()).hexdigest()[:SHOWN]}-{job.name}"
        end = (repository_root() / self._place.folder / f"{name}.end").resolve()
        beat = end.with_suffix(".end.beat")
        _end_jobs(name)
        end.parent.mkdir(parents=True, exist_ok=True)
        discard(end, beat)
        self._heard[name] = (0, time.monotonic())
        options: dict[str, object] = {"job-name": name, "ntasks": 1, "cpus-per-task": job.threads}
        options |= {"time": self._place.minutes, "chdir": Path.cwd()}
        options |= {"partition": self._place.partition} if self._place.partition else {}
        options |= self._place.options
        chosen = [f"--{key}" + ("" if value is True else f"={value}") for key, value in options.items()]
        srun = ["srun", *chosen, "--input=none", "--kill-on-bad-exit"]
        words = [*srun, "/bin/sh", "-c", NOTED, str(end), *job.words]
        try:
            code = self._commands.run(words, self._on_line, job.given, on_tick=lambda: self._look(name, beat))
            until = time.monotonic() + WROTE_S
            while not code and not end.exists():
                if time.monotonic() > until:
                    code = KILLED
                time.sleep(LOOKED_END_S)
            if code:
                _end_jobs(name)
            return code
        finally:
            discard(end, beat)

    def _look(self, name: str, beat: Path) -> None:
        """Cancel a job that has become silent; if no job begins for a long time, show Slurm's reason once."""
        (last, since), now = self._heard[name], time.monotonic()
        with suppress(FileNotFoundError):
            if (heard := beat.stat().st_mtime_ns) != last:
                self._heard[name] = (heard, now)
                return
        if last and now - since > SILENT_S:
            say(f"executor: Slurm's job {name} was silent for {SILENT_S:.0f} s; it is cancelled")
            _asked("scancel", f"--name={name}")
            self._heard[name] = (last, now)
        if (
            now - self._begun_s >= PATIENT_S
            and not self._explained
            and not any(beat for beat, _ in self._heard.values())
        ):
            self._explained = True
            names = ",".join(self._heard)
            found = _asked("squeue", "-h", f"--name={names}", "-o", "%r")
            why = ", ".join(sorted(set(found.stdout.splitlines()))) or " ".join(found.stderr.split())[:300]
            say(
                f"executor: Slurm lets none of its {len(self._heard)} jobs run: {why}; see sinfo -R, or squeue"
                f" --name={names}"
            )


def _end_jobs(name: str) -> None:
    until = time.monotonic() + ENDED_S
    while (found := _asked("squeue", "-h", f"--name={name}")).stdout or found.returncode:
        _asked("scancel", f"--name={name}")
        if time.monotonic() > until:
            why = " ".join(found.stderr.split())[:300] or f"see squeue --name={name}"
            raise UserError(f"executor: an earlier job of Slurm, {name}, does not end: {why}")
        time.sleep(LOOKED_END_S)


def _asked(*words: str) -> "subprocess.CompletedProcess[str]":
    """Return the answer of a command of Slurm about this user's jobs."""
    command: Sequence[str] = (*words, f"--user={getpass.getuser()}")
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise UserError(f"executor: {words[0]}: {error.strerror}") from error
