"""Workers that are jobs of a Slurm cluster, submitted as an array by submitit; each has its share of the tasks."""

import logging
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from typing import Any

from pipeline.errors import UserError, missing_packages_named
from pipeline.execution.beginning import environment
from pipeline.execution.processes import LOOKED_S
from pipeline.execution.setting import Setting
from pipeline.execution.worker import Errand, Order, carry_out_all
from pipeline.progress import say

QUEUE_S = 3.0  # between two looks at Slurm's queue
PATIENT_S = 60.0  # that jobs may wait before it is said why
WROTE_S = 5.0  # after its end in which what a node wrote is seen here


class SlurmCrew:
    """Jobs that carry out tasks and end; what a killed one has left goes to new ones."""

    def __init__(self, setting: Setting, order: Order, threads: int) -> None:
        """Submit nothing yet."""
        with missing_packages_named():
            import submitit
        logging.getLogger("submitit").setLevel(logging.CRITICAL)
        self._submitit = submitit
        self._order, self._workers = order, setting.workers or 1
        self._folder = order.mark.with_suffix(".slurm")
        try:
            self._executor = self._submitit.SlurmExecutor(folder=self._folder, max_num_timeout=0)
        except RuntimeError as error:
            raise UserError(f"executor: Slurm: {error}") from error
        self._executor.update_parameters(**_parameters(setting, threads))
        self._jobs: list[Any] = []
        self._waiting_since, self._said = time.monotonic(), ""

    def run(self, errands: Sequence[Errand], on_done: Callable[[int], None]) -> None:
        """Carry out tasks; those of a job that was ended are left."""
        number = min(self._workers, len(errands))
        try:
            shares = [errands[first::number] for first in range(number)]
            self._jobs = self._executor.map_array(carry_out_all, [self._order] * number, shares)
        except self._submitit.core.utils.FailedJobError as error:
            raise UserError(f"executor: sbatch: {' '.join(str(error).split())[:300]}") from error
        queue = True
        looked = self._waiting_since = time.monotonic()
        while not all(job.paths.result_pickle.exists() for job in self._jobs):
            on_done(self._done(errands))
            if not queue:
                break
            time.sleep(LOOKED_S)
            if time.monotonic() - looked > QUEUE_S:
                queue, looked = self._queued(), time.monotonic()
                time.sleep(0.0 if queue else WROTE_S)
        self._check()
        if not self._done(errands):
            self._tell()

    def close(self) -> None:
        """Cancel what still runs, and remove what submitit wrote."""
        if self._jobs and not all(job.paths.result_pickle.exists() for job in self._jobs):
            subprocess.run(["scancel", self._array], capture_output=True, check=False)
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def _array(self) -> str:
        found: str = self._jobs[0].job_id.partition("_")[0]
        return found

    def _queued(self) -> bool:
        """Tell whether any of the jobs waits or runs, as far as Slurm can tell."""
        words = ["squeue", "-h", "-r", "-o", "%T|%r", "-j", self._array]
        asked = subprocess.run(words, capture_output=True, text=True, check=False)
        self._say_why_they_wait([line.split("|", 1) for line in asked.stdout.splitlines()])
        unknown, why = "Invalid job id" in asked.stderr, " ".join(asked.stderr.split())[:300]
        if asked.returncode and not unknown and why != self._said:
            self._said = why
            say(f"executor: squeue: {why}")
        return bool(asked.stdout.strip()) or (asked.returncode != 0 and not unknown)

    def _say_why_they_wait(self, rows: Sequence[Sequence[str]]) -> None:
        """Say it once of each reason, when none of the jobs has run for some time: a node may be drained for ever."""
        now = time.monotonic()
        if any(state != "PENDING" for state, _ in rows):
            self._waiting_since = now
        reasons = ", ".join(sorted({reason for _, reason in rows}))
        if rows and now - self._waiting_since >= PATIENT_S and reasons != self._said:
            self._said = reasons
            say(
                f"executor: Slurm lets none of its {len(rows)} jobs {self._array} run: {reasons}; see sinfo -R,"
                f" or squeue -j {self._array}"
            )

    def _done(self, errands: Sequence[Errand]) -> int:
        return sum(self._order.store.has(errand.key) for errand in errands)

    def _check(self) -> None:
        for job in self._jobs:
            if job.paths.result_pickle.exists():
                if error := job.exception():
                    raise error
                if said := job.result():
                    raise UserError(said)

    def _tell(self) -> None:
        """Say what is known of jobs that ended before they carried out a task; a killed one is begun again."""
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


def _parameters(setting: Setting, threads: int) -> dict[str, Any]:
    found: dict[str, Any] = {
        "job_name": "pipeline",
        "time": setting.minutes,
        "cpus_per_task": threads,
        "use_srun": False,
        "setup": [f"export {name}={shlex.quote(value)}" for name, value in sorted(environment(threads).items())],
        "additional_parameters": {"requeue": True, **setting.options},
    }
    return found | ({"partition": setting.partition} if setting.partition else {})
