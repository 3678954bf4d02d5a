"""Run independent tasks where the user's setting says; results are in the order of the tasks."""

import pickle
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from pipeline.core.config import repository_root
from pipeline.core.storage.files import discard
from pipeline.errors import UserError
from pipeline.execution.commands import (
    LOOKED_S,
    Commands,
    Job,
    LineCallback,
    Setting,
    cores,
    environment,
    is_failure,
    reason,
    setting,
)
from pipeline.execution.on_ray import driver, understood
from pipeline.execution.on_slurm import SlurmJobs
from pipeline.execution.worker import Store, keys_of, work_file
from pipeline.progress import ShareCallback, no_progress, say

Task = TypeVar("Task")
Result = TypeVar("Result")

LOST = 3  # times in a row that workers may be lost before one task is done
SHOWN_LINES = 60  # of a worker that failed


class Executor:
    """Runs the tasks of one stage."""

    def __init__(self, place: Setting, threads: int, root: Path) -> None:
        """Start no worker yet.

        Every worker has as many `threads` of torch, numba and OpenMP as the stage, since they affect the order of sums.
        `root` is the base of a relative store folder.
        """
        self._setting, self._threads = place, threads
        self._store = Store((root / place.folder).resolve())
        self._keys: set[str] = set()

    @property
    def serial(self) -> bool:
        """Return whether all tasks run in this process, so that a stage need not be cut into tasks."""
        return self._setting.backend == "serial"

    def map(
        self,
        function: Callable[[Task], Result],
        tasks: Sequence[Task],
        inputs: Sequence[Path] = (),
        on_progress: ShareCallback = no_progress,
    ) -> list[Result]:
        """Return the function's result for each task, in their order.

        The function is defined in a module, or a partial of such a one. Its result depends only on its arguments and on
        the `inputs`: files and folders below the working directory. Tasks are records, arrays and parameters, sent by
        value. `on_progress` gets the number of tasks done. Raises UserError: a task raised it, or there are no workers
        with this folder and code.
        """
        if not tasks:
            return []
        if self.serial:
            here = list[Result]()
            for task in tasks:
                here.append(function(task))
                on_progress(len(here))
            return here
        keys = keys_of(function, tasks, inputs)
        self._keys |= set(keys)
        self._store.sweep()
        packed = {key: pickle.dumps((function, task), protocol=5) for key, task in zip(keys, tasks, strict=True)}
        found = self._run(packed, on_progress)
        return [found[key] for key in keys]

    def forget(self) -> None:
        """Discard the results of tasks, once the stage has written its own."""
        discard(*map(self._store.path, self._keys))

    def _run(self, work: Mapping[str, bytes], on_progress: ShareCallback) -> dict[str, Any]:
        """Return the results of all tasks by key; tasks of killed workers start again."""
        found, lost = self._read(work), 0
        on_progress(len(found))
        while len(found) < len(work):
            left = {key: task for key, task in work.items() if key not in found}
            self._work(left, lambda: on_progress(sum(map(self._store.has, work))))
            read = self._read(left)
            found |= read
            lost = 0 if read else lost + 1
            if lost == LOST:
                raise UserError(
                    f"executor: workers were ended from outside {LOST} times before one of {len(left)} tasks"
                    " was done, maybe for want of memory; run again to resume"
                )
        return found

    def _work(self, tasks: Mapping[str, bytes], on_look: Callable[[], None]) -> None:
        """Run tasks; some may be left if a worker is lost."""
        place, most = self._setting, len(tasks)
        at_an_address = place.backend == "ray" and place.address
        workers = min(place.workers or (most if at_an_address else cores()), most)
        given = environment(self._threads)
        if place.backend == "processes" and workers * self._threads > cores():
            given["GOMP_SPINCOUNT"] = "0"  # a thread that spins while it waits takes another's core
        output: deque[str] = deque(maxlen=SHOWN_LINES)

        def on_line(line: str) -> None:
            output.append(line)
            if line.startswith("executor: "):
                say(line)

        with work_file(self._store, tasks, workers) as path:
            words = [sys.executable, "-m", "pipeline.execution.worker", str(path), str(Path.cwd())]
            names = [f"tasks-{path.stem}-{number}" for number in range(workers)]
            jobs = [Job(name, [*words, str(k)], given, self._threads, cores=1) for k, name in enumerate(names)]
            codes = launch(place, jobs, on_line, on_look)
        if failed := [code for code in codes if is_failure(code)]:
            raise _error(list(output), failed[0])
        if any(codes):
            say("executor: a worker was lost; its tasks begin again")

    def _read(self, keys: Iterable[str]) -> dict[str, Any]:
        return {key: held[0] for key in keys if (held := self._store.read(key)) is not None}


@contextmanager
def executor(threads: int, default: Setting | None = None) -> Iterator[Executor]:
    """Yield the executor of a stage; its stored results are removed at the end, unless there is an exception.

    `threads`: of torch, numba and OpenMP in every worker. `default` is used if the user sets nothing; None: serial.
    """
    one = Executor(setting(default), threads, repository_root())
    yield one
    one.forget()


def _error(output: Sequence[str], code: int) -> Exception:
    """Return the error of a worker that failed: a user's mistake, a bug, or a machine without this code."""
    why = reason(output, code)
    if any(line.startswith(("error: ", "srun: error: ")) for line in output):
        return UserError(why)
    if any(line.startswith("Traceback") for line in output) and not why.startswith("ModuleNotFoundError"):
        return RuntimeError("\n".join(["a worker failed:", *output]))
    return UserError(f"executor: a worker cannot run this code ({why}); expected the same Python and packages")


def launch(
    place: Setting, jobs: Sequence[Job], on_line: LineCallback, on_look: Callable[[], None] = lambda: None
) -> list[int]:
    """Run jobs where a setting says; return the exit codes of those that ended, up to the first failure.

    A code below 0 or above 128 means that the command was killed. Ray runs up to one job per core and returns a single
    code: that of a failed job, else the highest. `on_line` is called with each line of output, `on_look` every second.
    Raises UserError: Slurm cannot be reached.
    """
    codes = list[int]()
    with ThreadPoolExecutor(len(jobs)) as pool, Commands() as commands:
        runs: list[Callable[[], int]]
        if place.backend == "ray":
            driven = partial(commands.run, driver(place, jobs), lambda line: on_line(understood(line, place.address)))
            runs = [partial(driven, jobs[0].given)]
        elif place.backend == "slurm":
            slurm = SlurmJobs(place, commands, on_line)
            runs = [partial(slurm.run, job) for job in jobs]
        else:
            runs = [partial(commands.run, job.words, on_line, job.given) for job in jobs]
        left: set[Future[int]] = {pool.submit(run) for run in runs}
        while left and not any(is_failure(code) for code in codes):
            done, left = wait(left, LOOKED_S, FIRST_COMPLETED)
            codes += [future.result() for future in done]
            on_look()
    return codes
