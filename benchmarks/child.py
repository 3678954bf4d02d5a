"""Iterations in a process of their own: how long they take, and how much memory.

One process takes several problems of rising size. The high-water mark of one is then that of all before it, so that it
needs no new process, and what the allocator kept from a smaller one is used again by the larger.
"""

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from pydantic import TypeAdapter

from benchmarks.measure import MIB, forget_high_water, high_water
from benchmarks.problem import Problem
from pipeline.config import Frozen, load_params
from pipeline.errors import UserError

WARM = Problem(jobsets=2, episodes=2)
ROOT = Path(__file__).parents[1]


class Cost(Frozen):
    """What one problem cost."""

    seconds: tuple[float, ...]  # of each of the iterations, which are all the first one of a new network
    decisions: int  # of one
    peak_mib: float  # of the whole process, so far
    above_mib: float  # of which beyond what it held before the first problem


class Order(Frozen):
    """What a process shall measure."""

    path: str
    problems: tuple[Problem, ...]
    iterations: int


def measured(path: str, problems: Sequence[Problem], iterations: int = 2) -> list[Cost]:
    """Return what problems of rising size cost in a new process."""
    order = json.dumps({"path": path, "problems": [asdict(one) for one in problems], "iterations": iterations})
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.child", order], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise UserError(f"a measuring process failed: {(done.stderr.strip().splitlines() or ['it was killed'])[-1]}")
    return TypeAdapter(list[Cost]).validate_json(done.stdout)


def measure(order: Order) -> list[Cost]:
    """Measure in this process."""
    from benchmarks.engine import hold_to, iteration

    hold_to(load_params().threads)
    for _ in range(2):
        iteration(order.path, WARM)()
    before = high_water()
    forget_high_water()
    level = high_water()
    costs = []
    for problem in order.problems:
        spent, decisions = [], 0
        for _ in range(order.iterations):
            work = iteration(order.path, problem)
            begun = time.perf_counter()
            decisions = work()
            spent.append(time.perf_counter() - begun)
        mark = high_water()
        peak, above = max(before, mark) / MIB, (mark - level) / MIB
        costs.append(Cost(seconds=tuple(spent), decisions=decisions, peak_mib=peak, above_mib=above))
    return costs


if __name__ == "__main__":
    answer = measure(Order.model_validate_json(sys.argv[1]))
    sys.stdout.write(TypeAdapter(list[Cost]).dump_json(answer).decode())
