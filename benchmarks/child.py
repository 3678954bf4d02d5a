"""Work in a process of its own: how long iterations take, and how much memory.

One process takes several problems of rising size. The high-water mark of one is then that of all before it, so that it
needs no new process, and what the allocator kept from a smaller one is used again by the larger.
"""

import multiprocessing
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import NamedTuple, ParamSpec, TypeVar

from benchmarks.measure import MIB, forget_high_water, high_water
from benchmarks.problem import Problem
from pipeline.core.config import load_params
from pipeline.errors import UserError

WARM = Problem(jobsets=2, episodes=2)

Given = ParamSpec("Given")
Found = TypeVar("Found")

# A server that has imported everything and computed nothing forks a new process for every order: the same memory as a
# process started by itself, without seconds of imports.
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["benchmarks.engine"])


class Cost(NamedTuple):
    """What one problem cost."""

    seconds: tuple[float, ...]  # of each of the iterations
    decisions: tuple[int, ...]
    peak_mib: float  # of the whole process, so far
    above_mib: float  # of which beyond what it held before the first problem


def alone(work: Callable[Given, Found], *given: Given.args, **named: Given.kwargs) -> Found:
    """Return what a function of a module returns in a new process.

    Raises:
        UserError: the process was killed.
    """
    with ProcessPoolExecutor(1, mp_context=CONTEXT) as process:
        try:
            return process.submit(work, *given, **named).result()
        except BrokenProcessPool as error:
            raise UserError("a measuring process was killed; is there memory enough?") from error


def measured(path: str, problems: Sequence[Problem], iterations: int = 2) -> list[Cost]:
    """Return what problems of rising size cost in a new process.

    Args:
        path: ours or described.
        problems: each of which needs no less memory than the one before.
        iterations: of each problem.
    """
    return alone(measure, path, problems, iterations)


def measure(path: str, problems: Sequence[Problem], iterations: int) -> list[Cost]:
    """Measure in this process."""
    from benchmarks.engine import hold_to
    from benchmarks.engine import iterations as iterate

    hold_to(load_params().threads)
    list(iterate(path, WARM, 2))
    before = high_water()
    forget_high_water()
    level = high_water()
    costs = []
    for problem in problems:
        spent, decisions = [], []
        run = iterate(path, problem, iterations)
        for _ in range(iterations):
            begun = time.perf_counter()
            decisions.append(next(run))
            spent.append(time.perf_counter() - begun)
        mark = high_water()
        costs.append(Cost(tuple(spent), tuple(decisions), max(before, mark) / MIB, (mark - level) / MIB))
    return costs
