"""Run independent tasks where the user's setting says; results are in the order of the tasks."""

import multiprocessing as mp
import pickle
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, TypeVar

from pipeline.core.config import repository_root
from pipeline.errors import UserError
from pipeline.execution.environment import begin_child, code_digest, environment
from pipeline.execution.on_ray import RayWorkers
from pipeline.execution.on_slurm import SlurmWorkers
from pipeline.execution.setting import LOOKED_S, Setting, cores, setting
from pipeline.execution.tasks import PackedTask, StageContext, Store, keys_of, run_task
from pipeline.progress import ShareCallback, no_progress, say

Task = TypeVar("Task")
Result = TypeVar("Result")

LOST = 3  # times in a row that workers may be lost before one task is done


class Workers(Protocol):
    """Workers of one backend."""

    def run(self, tasks: Sequence[PackedTask], on_done: Callable[[int], None]) -> None:
        """Run tasks and report how many are done; tasks of lost workers may be left.

        Raises:
            UserError: a user's mistake, reported by a task or by the backend.
        """

    def close(self) -> None:
        """Release the workers."""


class ProcessWorkers:
    """A pool of processes of this machine, started with the first task and again after one of them was killed."""

    def __init__(self, place: Setting, stage: StageContext, threads: int) -> None:
        self._most, self._stage = place.workers or cores(), stage
        # Where there are more threads than cores, a thread that spins while it waits takes another's core.
        crowded = {"GOMP_SPINCOUNT": "0"} if self._most * threads > cores() else {}
        self._environment = environment(threads) | crowded
        self._pool: ProcessPoolExecutor | None = None

    def run(self, tasks: Sequence[PackedTask], on_done: Callable[[int], None]) -> None:
        """Run tasks; some may be left if a process was killed."""
        if self._pool is None:
            context = mp.get_context("spawn")  # a fork would inherit threads of compiled code in the middle of work
            self._pool = ProcessPoolExecutor(min(self._most, len(tasks)), context, begin_child, (self._environment,))
        pool = self._pool
        try:
            left: set[Future[str]] = {pool.submit(run_task, self._stage, task) for task in tasks}
            total = len(left)
            while left:
                done, left = wait(left, LOOKED_S, FIRST_COMPLETED)
                for future in done:
                    if said := future.result():
                        raise UserError(said)
                on_done(total - len(left))
        except BrokenProcessPool:
            self.close()
        except BaseException:
            for child in list((pool._processes or {}).values()):  # a signal would wait for the computation
                child.kill()
            self.close()
            raise

    def close(self) -> None:
        """End the processes."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
        self._pool = None


class Executor:
    """Runs the tasks of one stage."""

    def __init__(self, place: Setting, threads: int, root: Path) -> None:
        """Start no worker yet.

        Args:
            place: where tasks run.
            threads: of torch, numba and OpenMP in every worker: those of the stage itself, since they order sums.
            root: base of a relative store folder.
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
        resumable: bool = False,
    ) -> list[Result]:
        """Return the function's result for each task, in their order.

        Args:
            function: of a module, or a partial of one; its result depends only on its arguments and inputs.
            tasks: records, arrays and parameters, sent by value.
            inputs: files and folders below the working directory that it reads.
            on_progress: called with the number of tasks done.
            resumable: run in this process, and reuse the results of an interrupted stage.

        Raises:
            UserError: of a task; or there are no workers, they see no shared folder, or they run other code.
        """
        if not tasks:
            return []
        if self.serial and not resumable:
            results = []
            for task in tasks:
                results.append(function(task))
                on_progress(len(results))
            return results
        keys = keys_of(function, tasks, inputs)
        self._keys |= set(keys)
        if resumable:
            return self._resume(function, tasks, keys, on_progress)
        packed = (pickle.dumps((function, task), protocol=5) for task in tasks)
        found = self._run({key: PackedTask(key, task) for key, task in zip(keys, packed, strict=True)}, on_progress)
        return [found[key] for key in keys]

    def _resume(
        self, function: Callable[[Task], Result], tasks: Sequence[Task], keys: list[str], on_progress: ShareCallback
    ) -> list[Result]:
        found, keeping = list[Result](), True
        self._store.sweep()
        for key, task in zip(keys, tasks, strict=True):
            held = self._store.read(key)
            found.append(function(task) if held is None else held[0])
            if held is None and keeping:
                try:
                    self._store.write(key, found[-1])
                except UserError as error:  # the result does not need it
                    say(f"{error}; continuing without keeping what is done")
                    keeping = False
            on_progress(len(found))
        return found

    def forget(self) -> None:
        """Discard the results of tasks, once the stage has written its own."""
        self._store.discard(self._keys)

    def _run(self, work: dict[str, PackedTask], on_progress: ShareCallback) -> dict[str, Any]:
        """Return the results of all tasks by key; tasks of killed workers start again."""
        found = self._read(work)
        on_progress(len(found))
        lost = 0
        if len(found) == len(work):
            return found

        def on_done(done: int) -> None:
            on_progress(len(found) + done)

        self._store.sweep()
        with self._store.marked() as (mark, word):
            torch: Any = sys.modules.get("torch")
            torch_threads = None if torch is None else int(torch.get_num_threads())
            stage = StageContext(Path.cwd(), mark, word, code_digest(), torch_threads)
            workers = _workers(self._setting, stage, self._threads)
            try:
                while len(found) < len(work):
                    before = len(found)
                    left = [task for key, task in work.items() if key not in found]
                    workers.run(left, on_done)
                    found |= self._read(task.key for task in left)
                    lost = lost + 1 if len(found) == before else 0
                    if lost == LOST:
                        raise UserError(
                            f"executor: workers were ended from outside {LOST} times before one of {len(left)} tasks"
                            " was done, maybe for want of memory; run again to resume"
                        )
                    if len(found) < len(work):
                        say(f"executor: a worker was lost; {len(work) - len(found)} of {len(work)} tasks begin again")
            finally:
                workers.close()
        return found

    def _read(self, keys: Iterable[str]) -> dict[str, Any]:
        read = {key: self._store.read(key) for key in keys}
        return {key: held[0] for key, held in read.items() if held is not None}


@contextmanager
def executor(threads: int, default: Setting | None = None) -> Iterator[Executor]:
    """Yield the executor of a stage; its stored results are removed at the end, unless that is an exception.

    Args:
        threads: of torch, numba and OpenMP in every worker.
        default: used if the user sets nothing; None: serial.

    Raises:
        UserError: the user's setting is invalid.
    """
    one = Executor(setting(default), threads, repository_root())
    yield one
    one.forget()


def _workers(place: Setting, stage: StageContext, threads: int) -> Workers:
    if place.backend == "ray":
        return RayWorkers(place, stage, threads)
    if place.backend == "slurm":
        return SlurmWorkers(place, stage, threads)
    return ProcessWorkers(place, stage, threads)
