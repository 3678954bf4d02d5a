"""Tasks of a stage in workers: cost of the first task, cost of each further task, and gain of a second worker."""

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.measure import ProgressCallback, seconds
from benchmarks.problem import Problem
from benchmarks.record import Row, figure
from benchmarks.sizes import Sizes
from benchmarks.slurm.configuration import Cluster
from benchmarks.slurm.loopback import slurm, why_not
from pipeline.execution.commands import Backend, Setting
from pipeline.execution.executor import Executor
from pipeline.problems.pool.env.evaluation.hindsight_model import Work, solve_work
from pipeline.problems.pool.env.evaluation.searching import order_of, search
from pipeline.problems.pool.env.nouns import batch

NONE = "no baseline: time until the first task of a stage, which does no work, has returned"
ALONE = "the same jobsets in this process, one after the other"
ONE = "one worker of the same kind, including its start"
JOBS, SEED, MS = 30, 1, 1000


class Times(NamedTuple):
    """Seconds of one run."""

    begin: float  # one task without work, one worker
    task: float  # each further such task
    alone: float  # hindsight of some jobsets, serially
    one: float  # by one worker
    two: float  # by two


def nothing(number: int) -> int:
    """Do nothing."""
    return number


def run(runs: int, sizes: Sizes, on_progress: ProgressCallback) -> Iterator[Row]:
    """Measure tasks without work, and hindsight, on each available engine."""
    count, jobsets, limit = sizes.tasks
    problem = Problem(jobsets=jobsets, waiting=JOBS)
    solving = partial(solve_work, cluster=problem.cluster, limit=limit, seed=SEED)
    works = warm(problem)
    for backend in ("processes", "ray", "slurm"):
        if not there(backend):
            on_progress(f"no {backend} here")
            continue
        with engine(backend), tempfile.TemporaryDirectory() as folder:
            measured = []
            for number in range(runs):
                on_progress(f"{backend}, run {number + 1} of {runs}")
                measured.append(_once(partial(_seconds, Path(folder)), backend, count, solving, works))
        yield from _rows(backend, jobsets, measured)


def warm(problem: Problem) -> list[Work]:
    """Return jobsets whose jobs all wait at once, with the initial schedules of hindsight."""
    drawn = problem.draw()
    jobs = batch(drawn)
    found = search(jobs, problem.cluster.capacity, order_of(jobs, jobs.duration), 100, SEED)
    starts = np.split(found, jobs.first[1:-1])
    return [Work(one, start) for one, start in zip(drawn, starts, strict=True)]


def there(backend: str) -> bool:
    """Return whether an engine can be measured here."""
    if backend == "slurm":
        return not why_not()
    return backend == "processes" or find_spec("ray") is not None


@contextmanager
def engine(backend: str) -> Iterator[None]:
    """Provide an engine: Slurm on loopback, whose two nodes share this machine; the others need no preparation."""
    with ExitStack() as open_, slurm(Cluster(nodes=2)) if backend == "slurm" else nullcontext() as running:
        if running is not None:
            before = os.environ.get("SLURM_CONF")
            os.environ["SLURM_CONF"] = str(running.folder / "slurm.conf")
            open_.callback(_put_back, before)
        yield


def _put_back(before: str | None) -> None:
    os.environ.pop("SLURM_CONF")
    if before is not None:
        os.environ["SLURM_CONF"] = before


def _seconds(
    folder: Path, backend: Backend, workers: int, function: Callable[[Any], Any], tasks: Sequence[Any]
) -> float:
    executor = Executor(Setting(backend=backend, workers=workers, folder=folder / "tasks"), 1, folder)
    try:
        return seconds(lambda: executor.map(function, tasks))
    finally:
        executor.forget()


def _once(
    took: Callable[..., float], backend: Backend, count: int, solving: Callable[[Work], Any], works: Sequence[Work]
) -> Times:
    begin = took(backend, 1, nothing, [0])
    many = took(backend, 1, nothing, list(range(count)))
    solved = [took(*place, solving, works) for place in (("serial", 1), (backend, 1), (backend, 2))]
    return Times(begin, (many - begin) / (count - 1), *solved)


def _rows(backend: str, jobsets: int, measured: Sequence[Times]) -> Iterator[Row]:
    begin, task, alone, one, two = (list(column) for column in zip(*measured, strict=True))
    yield Row(figure(f"executor, {backend}: the first task", begin, "s"), NONE)
    yield Row(figure(f"executor, {backend}: each further task", [MS * value for value in task], "ms"), NONE)
    yield Row(figure(f"executor, {backend}: hindsight of {jobsets}, one worker", one, "s", alone), ALONE)
    yield Row(figure(f"executor, {backend}: hindsight of {jobsets}, two workers", two, "s", one), ONE)
