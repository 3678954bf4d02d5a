"""Work on a Slurm cluster: workers as an array of jobs (submitit), or a whole command as one job (srun)."""

import getpass
import hashlib
import logging
import os
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from pipeline.core.config import repository_root
from pipeline.core.storage.files import discard
from pipeline.errors import UserError, missing_packages_named
from pipeline.execution.environment import KILLED, SHOWN, environment
from pipeline.execution.setting import LOOKED_S, Setting
from pipeline.execution.tasks import PackedTask, StageContext, run_tasks
from pipeline.progress import say

QUEUE_S = 3.0  # between two looks at the queue
PATIENT_S = 60.0  # jobs may wait without a message
WROTE_S = 5.0  # until the files of an ended job are visible here
STOP_S = 10.0  # for a command to clear away unfinished work
LOOKED_END_S = 0.2  # between two looks for the end of a job
HEARD_S = 2.0  # between two looks at a job's heartbeat
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


class SlurmWorkers:
    """Jobs that run their share of the tasks and end; new jobs take the tasks of killed ones."""

    def __init__(self, setting: Setting, stage: StageContext, threads: int) -> None:
        """Submit nothing yet."""
        with missing_packages_named():
            import submitit
        logging.getLogger("submitit").setLevel(logging.CRITICAL)
        self._submitit = submitit
        self._stage, self._workers = stage, setting.workers or 1
        self._folder = stage.mark.with_suffix(".slurm")
        try:
            self._executor = self._submitit.SlurmExecutor(folder=self._folder, max_num_timeout=0)
        except RuntimeError as error:
            raise UserError(f"executor: Slurm: {error}") from error
        self._executor.update_parameters(
            job_name="pipeline",
            time=setting.minutes,
            cpus_per_task=threads,
            use_srun=False,
            setup=[f"export {name}={shlex.quote(value)}" for name, value in sorted(environment(threads).items())],
            additional_parameters={"requeue": True, **setting.options},
            **({"partition": setting.partition} if setting.partition else {}),
        )
        self._jobs: list[Any] = []
        self._waiting_since, self._said = time.monotonic(), ""

    def run(self, tasks: Sequence[PackedTask], on_done: Callable[[int], None]) -> None:
        """Run tasks; those of a job that was ended are left."""
        number = min(self._workers, len(tasks))
        try:
            shares = [tasks[first::number] for first in range(number)]
            self._jobs = self._executor.map_array(run_tasks, [self._stage] * number, shares)
        except self._submitit.core.utils.FailedJobError as error:
            raise UserError(f"executor: sbatch: {' '.join(str(error).split())[:300]}") from error
        queued = True
        looked = self._waiting_since = time.monotonic()
        while not all(job.paths.result_pickle.exists() for job in self._jobs):
            on_done(self._done(tasks))
            if not queued:
                break
            time.sleep(LOOKED_S)
            if time.monotonic() - looked > QUEUE_S:
                queued, looked = self._queued(), time.monotonic()
                time.sleep(0.0 if queued else WROTE_S)
        for job in self._jobs:
            if job.paths.result_pickle.exists():
                if failed := job.exception():
                    raise failed
                if said := job.result():
                    raise UserError(said)
        if not self._done(tasks):
            self._explain_failure()

    def close(self) -> None:
        """Cancel running jobs, and remove submitit's files."""
        if self._jobs and not all(job.paths.result_pickle.exists() for job in self._jobs):
            subprocess.run(["scancel", self._array], capture_output=True, check=False)
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def _array(self) -> str:
        found: str = self._jobs[0].job_id.partition("_")[0]
        return found

    def _done(self, tasks: Sequence[PackedTask]) -> int:
        return sum(self._stage.store.has(task.key) for task in tasks)

    def _queued(self) -> bool:
        """Return whether any job waits or runs, as far as Slurm can tell; if none runs for long, say why, once."""
        words = ["squeue", "-h", "-r", "-o", "%T|%r", "-j", self._array]
        asked = subprocess.run(words, capture_output=True, text=True, check=False)
        rows, now = [line.split("|", 1) for line in asked.stdout.splitlines()], time.monotonic()
        if any(state != "PENDING" for state, _ in rows):
            self._waiting_since = now
        reasons = ", ".join(sorted({reason for _, reason in rows}))
        if rows and now - self._waiting_since >= PATIENT_S and reasons != self._said:
            self._said = reasons
            say(
                f"executor: Slurm lets none of its {len(rows)} jobs {self._array} run: {reasons}; see sinfo -R,"
                f" or squeue -j {self._array}"
            )
        unknown, why = "Invalid job id" in asked.stderr, " ".join(asked.stderr.split())[:300]
        if asked.returncode and not unknown and why != self._said:
            self._said = why
            say(f"executor: squeue: {why}")
        return bool(asked.stdout.strip()) or (asked.returncode != 0 and not unknown)

    def _explain_failure(self) -> None:
        """Raise the error of jobs that ended before they finished a task; killed ones are started again instead."""
        logs = [log for job in self._jobs for log in (job.paths.stderr, job.paths.stdout) if log.exists()]
        if not logs:
            raise UserError(
                f"executor: Slurm's jobs {self._array} ended without a word in {self._folder.parent};"
                " expected a folder that all nodes share"
            )
        lines = [line for log in logs for line in log.read_text(errors="replace").splitlines()]
        faults = [line for line in lines if "Error" in line or "rror:" in line]
        if faults and not any("CANCELLED" in line or "NODE FAILURE" in line for line in lines):
            raise UserError(f"executor: Slurm's jobs {self._array}: {faults[-1].strip()}")


def run_on_slurm(
    place: Setting, threads: int, words: Sequence[str], command: Sequence[str], given: Mapping[str, str]
) -> int:
    """Return the exit code of a command run by srun, after ending the job of an earlier, killed stage.

    Args:
        place: options of Slurm.
        threads: of the command.
        words: for its name.
        command: complete.
        given: variables added to the environment.
    """
    name = f"pipeline-{hashlib.sha256(str(Path.cwd()).encode()).hexdigest()[:SHOWN]}-{'-'.join(words)}"
    end = (repository_root() / place.folder / f"{name}.end").resolve()
    beat = end.with_suffix(".end.beat")
    _end_jobs(name)
    end.parent.mkdir(parents=True, exist_ok=True)
    discard(end, beat)
    options: dict[str, object] = {"job-name": name, "ntasks": 1, "cpus-per-task": threads, "time": place.minutes}
    options |= {"chdir": Path.cwd(), **({"partition": place.partition} if place.partition else {}), **place.options}
    chosen = [f"--{key}" + ("" if value is True else f"={value}") for key, value in options.items()]
    srun = ["srun", *chosen, "--input=none", "--kill-on-bad-exit", "/bin/sh", "-c", NOTED, str(end), *command]
    try:
        job = subprocess.Popen(srun, env={**os.environ, **given}, stdin=subprocess.DEVNULL)
    except OSError as error:
        raise UserError(f"executor: srun: {error.strerror}") from error
    try:
        return _exit_code(job, name, beat, end)
    except BaseException:
        with suppress(subprocess.TimeoutExpired):
            job.terminate()  # srun ends the command
            job.wait(STOP_S)
        _end_jobs(name)
        raise
    finally:
        discard(end, beat)


def _exit_code(job: "subprocess.Popen[bytes]", name: str, beat: Path, end: Path) -> int:
    """Return the exit code of a job.

    srun may not notice that a node died and came back, and may report 0 for a job that was cancelled. So a silent job
    is cancelled, and one that left no file `end` counts as killed.
    """
    code: int | None = None
    last, since = 0, time.monotonic()
    while code is None:
        with suppress(subprocess.TimeoutExpired):
            code = job.wait(HEARD_S)
            break
        with suppress(FileNotFoundError):
            if (heard := beat.stat().st_mtime_ns) != last:
                last, since = heard, time.monotonic()
        if last and time.monotonic() - since > SILENT_S:
            say(f"executor: Slurm's job {name} was silent for {SILENT_S:.0f} s; it is cancelled")
            _cancel(name)
            since = time.monotonic()
    until = time.monotonic() + WROTE_S
    while not code and not end.exists():
        if time.monotonic() > until:
            return KILLED
        time.sleep(LOOKED_END_S)
    return code


def _end_jobs(name: str) -> None:
    """Cancel jobs by name, and wait for their end."""
    words, end = ["squeue", "-h", f"--user={getpass.getuser()}", f"--name={name}"], time.monotonic() + ENDED_S
    try:
        while (asked := subprocess.run(words, capture_output=True, text=True, check=False)).stdout or asked.returncode:
            _cancel(name)
            if time.monotonic() > end:
                why = " ".join(asked.stderr.split())[:300] or f"see squeue --name={name}"
                raise UserError(f"executor: an earlier job of Slurm, {name}, does not end: {why}")
            time.sleep(LOOKED_END_S)
    except OSError as error:
        raise UserError(f"executor: squeue: {error.strerror}") from error


def _cancel(name: str) -> None:
    subprocess.run(["scancel", f"--user={getpass.getuser()}", f"--name={name}"], capture_output=True, check=False)
