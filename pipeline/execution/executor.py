"""Carry out independent tasks where the user says; results come in the order of the tasks, whoever found them first."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

from pipeline.config import repository_root
from pipeline.errors import UserError
from pipeline.execution.beginning import code_digest
from pipeline.execution.processes import Processes
from pipeline.execution.setting import Setting, setting
from pipeline.execution.store import Store, keys_of
from pipeline.execution.worker import Errand, Order, packed, torch_threads
from pipeline.progress import ShareCallback, no_progress, say

Task = TypeVar("Task")
Result = TypeVar("Result")

LOST = 3  # times in a row that workers may be lost before a single task is done


class Crew(Protocol):
    """Workers of one kind."""

    def run(self, errands: Sequence[Errand], on_done: Callable[[int], None]) -> None:
        """Carry out tasks, telling how many are done; tasks of lost workers may be left.

        Raises:
            UserError: what a task, or the engine, says that a user did wrong.
        """

    def close(self) -> None:
        """Let the workers go."""


class Executor:
    """Carries out the tasks of one stage."""

    def __init__(self, place: Setting, threads: int, root: Path) -> None:
        """Carry out nothing yet.

        Args:
            place: where tasks run.
            threads: of torch, numba and OpenMP in every worker: as many as the stage itself has, for they order sums.
            root: where a relative folder of the store begins.
        """
        self._setting, self._threads = place, threads
        self._store = Store((root / place.folder).resolve())
        self._keys: set[str] = set()

    @property
    def alone(self) -> bool:
        """Tell whether this process does all by itself, and a stage need not be cut into tasks."""
        return self._setting.backend == "serial"

    def map(
        self,
        function: Callable[[Task], Result],
        tasks: Sequence[Task],
        inputs: Sequence[Path] = (),
        on_progress: ShareCallback = no_progress,
    ) -> list[Result]:
        """Return what a function makes of each task, in their order.

        Args:
            function: of a module, or a partial of one; what it returns depends on its arguments and inputs alone.
            tasks: records, arrays and parameters, which are sent by value.
            inputs: files and folders that it reads below the working directory.
            on_progress: told how many tasks are done.

        Raises:
            UserError: what a task says; or the workers cannot be had, see no shared folder, or run other code.
        """
        if not tasks:
            return []
        if self.alone:
            results = []
            for task in tasks:
                results.append(function(task))
                on_progress(len(results))
            return results
        keys = keys_of(function, tasks, inputs)
        self._keys |= set(keys)
        work = {key: packed(key, function, task) for key, task in zip(keys, tasks, strict=True)}
        found = self._found(work, on_progress)
        return [found[key] for key in keys]

    def kept(
        self,
        function: Callable[[Task], Result],
        tasks: Sequence[Task],
        inputs: Sequence[Path] = (),
        on_progress: ShareCallback = no_progress,
    ) -> list[Result]:
        """Return what `map` does, in this process; results of an interrupted stage are read instead of made again."""
        keys, found, keeping = keys_of(function, tasks, inputs), list[Result](), True
        self._keys |= set(keys)
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
        """Discard what tasks found: what was made of it is written."""
        self._store.discard(self._keys)

    def _found(self, work: dict[str, Errand], on_progress: ShareCallback) -> dict[str, Any]:
        """Return the results of all tasks, by key; those of killed workers are begun again."""
        found = self._read(work)
        on_progress(len(found))
        lost = 0
        if len(found) == len(work):
            return found
        self._store.sweep()
        with self._store.marked() as (mark, word):
            order = Order(Path.cwd(), mark, word, code_digest(), torch_threads())
            crew = crew_of(self._setting, order, self._threads)
            try:
                while len(found) < len(work):
                    before = len(found)
                    left = [errand for key, errand in work.items() if key not in found]
                    crew.run(left, partial(_told, on_progress, before))
                    found |= self._read([errand.key for errand in left])
                    lost = lost + 1 if len(found) == before else 0
                    if lost == LOST:
                        raise UserError(
                            f"executor: workers were ended from outside {LOST} times before one of {len(left)} tasks"
                            " was done, maybe for want of memory; run again to resume"
                        )
                    if len(found) < len(work):
                        say(f"executor: a worker was lost; {len(work) - len(found)} of {len(work)} tasks begin again")
            finally:
                crew.close()
        return found

    def _read(self, keys: Sequence[str] | dict[str, Errand]) -> dict[str, Any]:
        read = {key: self._store.read(key) for key in keys}
        return {key: held[0] for key, held in read.items() if held is not None}


def _told(on_progress: ShareCallback, before: int, done: int) -> None:
    on_progress(before + done)


@contextmanager
def executor(threads: int, default: Setting | None = None) -> Iterator[Executor]:
    """Yield what carries out a stage's tasks; behind its end nothing is left of them, unless it ends by an exception.

    Args:
        threads: of torch, numba and OpenMP in every worker.
        default: where tasks run if the user says nothing; None: here, one after another.

    Raises:
        UserError: the user's setting is none.
    """
    one = Executor(setting(default), threads, repository_root())
    yield one
    one.forget()


def crew_of(place: Setting, order: Order, threads: int) -> Crew:
    """Return workers; Ray and submitit are imported when they are asked for."""
    if place.backend == "ray":
        from pipeline.execution.on_ray import RayCrew

        return RayCrew(place, order, threads)
    if place.backend == "slurm":
        from pipeline.execution.on_slurm import SlurmCrew

        return SlurmCrew(place, order, threads)
    return Processes(place, order, threads)
