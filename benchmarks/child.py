"""Iterations in a separate process: duration and memory.

One process runs several problems of rising size. The peak memory of a problem is then the peak so far, so it
needs no new process, and a larger problem reuses what the allocator kept from a smaller one.
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

# A server that has imported everything and computed nothing forks a new process for every request. The process has the
# memory of a freshly started one, without seconds of imports.
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["benchmarks.engine"])


class Cost(NamedTuple):
    """Cost of one problem."""

    seconds: tuple[float, ...]  # of each iteration
    decisions: tuple[int, ...]
    peak_mib: float  # of the whole process so far
    above_mib: float  # of that, the part beyond the memory before the first problem


def alone(work: Callable[Given, Found], *given: Given.args, **named: Given.kwargs) -> Found:
    """Call a module-level function in a new process and return its result.

    Raises:
        UserError: the process was killed.
    """
    with ProcessPoolExecutor(1, mp_context=CONTEXT) as process:
        try:
            return process.submit(work, *given, **named).result()
        except BrokenProcessPool as error:
            raise UserError("a measuring process was killed; is there enough memory?") from error


def measured(path: str, problems: Sequence[Problem], iterations: int = 2) -> list[Cost]:
    """Return the costs of problems of rising size, measured in a new process.

    Args:
        path: ours or described.
        problems: in order of rising memory.
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
