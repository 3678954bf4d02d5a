"""`python -m benchmarks.offline_table`: slowdown of the offline search and of CP-SAT, by time.

Both start from shortest job first on the same test jobsets of scenario `offline`, with one thread. Seconds are
processor time for the search, and the wall-clock limit for CP-SAT. Prints Markdown.
"""

import argparse
import math
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pipeline.cli.base import read_params
from pipeline.core.config import AtOnce, Params, PoolScenario, Synthetic
from pipeline.core.types import IntArray
from pipeline.errors import UserError
from pipeline.problems.pool.env.nouns import JobBatch, JobSet, batch

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

SCENARIO, SEED = "offline", 1
BUDGETS = (10_000, 50_000, 250_000, 1_000_000)  # evaluations
SHORT_SECONDS = 2.0
WORKERS = 1

Units = tuple[int, ...]  # [R]


class Line(NamedTuple):
    """Results of one method on jobsets of one size."""

    jobs: int
    method: str
    evaluations: int | None  # per jobset
    seconds: float  # per jobset
    slowdown: float  # mean over all jobsets; nan if only some were requested
    solved: float  # mean over the jobsets given to CP-SAT
    worst: float  # largest excess of one of those over CP-SAT's longest run; nan if there is none


class Solved(NamedTuple):
    """Results of CP-SAT within a time limit."""

    slowdown: list[float]
    bound: list[float]
    optimal: int


def main() -> None:
    """Measure, and print the table."""
    asked = parser().parse_args()
    params = read_params()
    capacity = tuple(params.scenarios_of(PoolScenario)[SCENARIO].resources.values())
    print("| jobs | method | evaluations | seconds | slowdown, all | those of CP-SAT | above CP-SAT | worst |")
    print("| ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    notes = []
    for count in asked.jobs:
        jobsets = drawn(params, count, asked.jobsets)
        some, limits = jobsets[: asked.solved], (SHORT_SECONDS, asked.seconds_solver)
        solved = {seconds: solve(some, capacity, seconds) for seconds in limits}
        best = solved[asked.seconds_solver]
        for line in searched(jobsets, capacity, best, asked.evaluations) + rows(count, solved, best):
            print(written(line, best), flush=True)
        notes.append(
            f"{count} jobs, {asked.seconds_solver:g} s: bound {np.mean(best.bound):.4f}, optimal in {best.optimal} of "
            f"{len(best.bound)}"
        )
    print("\n" + "; ".join(notes) + ".")


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    line = argparse.ArgumentParser(prog="python -m benchmarks.offline_table", description="Offline search and CP-SAT.")
    line.add_argument("--jobs", type=int, nargs="+", default=[30, 50], help="jobs of a jobset")
    line.add_argument("--jobsets", type=int, default=10, help="jobsets of each size (default: %(default)s)")
    line.add_argument("--solved", type=int, default=4, help="jobsets that CP-SAT solves, too (default: %(default)s)")
    line.add_argument(
        "--seconds-solver", type=float, default=60.0, help="time limit of CP-SAT per jobset (default: %(default)s)"
    )
    line.add_argument(
        "--evaluations", type=int, nargs="+", default=list(BUDGETS), help="evaluations of the search per jobset"
    )
    return line


def drawn(params: Params, jobs: int, count: int) -> list[JobSet]:
    """Return test jobsets of the scenario, with another number of jobs."""
    from pipeline.problems.pool.env.workload.source import DrawnSource

    scenario = params.scenarios_of(PoolScenario)[SCENARIO]
    if not isinstance(params.workload, Synthetic):
        raise UserError("params.yaml: workload: expected a recipe, because jobsets of other sizes are drawn from it")
    sizes = scenario.jobsets.model_copy(update={"test": count})
    arrivals = AtOnce(name="at_once", jobs=jobs)
    changed = scenario.model_copy(update={"arrivals": arrivals, "jobsets": sizes, "slots": jobs})
    (jobsets,) = DrawnSource(params, changed, params.workload, params.seed).split("test").values()
    return jobsets


def shortest_first(jobs: JobBatch) -> IntArray:
    """Return the jobs of each jobset by duration."""
    from pipeline.problems.pool.env.evaluation.searching import order_of

    return order_of(jobs, jobs.duration)


def searched(jobsets: Sequence[JobSet], capacity: Units, best: Solved, budgets: Sequence[int]) -> list[Line]:
    """Return the results of the search within each budget; the first line is its initial order."""
    import numba

    from pipeline.problems.pool.env.evaluation.searching import mean_slowdown, search

    numba.set_num_threads(1)
    jobs, some = batch(jobsets), len(best.slowdown)
    orders = shortest_first(jobs)
    search(jobs, capacity, orders, 1, SEED)  # compiles
    lines = []
    for budget in (1, *budgets):
        begun = time.process_time()
        start = search(jobs, capacity, orders, budget, SEED)
        seconds = (time.process_time() - begun) / len(jobsets)
        ours = mean_slowdown(jobs, start)
        worst = float((ours[:some] / best.slowdown).max() - 1.0)
        name = "search" if budget > 1 else "shortest first"
        lines.append(
            Line(len(jobsets[0].arrival), name, budget, seconds, float(ours.mean()), float(ours[:some].mean()), worst)
        )
    return lines


def rows(jobs: int, solved: dict[float, Solved], best: Solved) -> list[Line]:
    """Return the results of CP-SAT within each limit."""
    lines = []
    for seconds, found in solved.items():
        worst = float((np.array(found.slowdown) / best.slowdown).max() - 1.0)
        lines.append(Line(jobs, "CP-SAT", None, seconds, math.nan, float(np.mean(found.slowdown)), worst))
    return lines


def solve(jobsets: Sequence[JobSet], capacity: Units, seconds: float) -> Solved:
    """Return the result of CP-SAT with one worker, starting from the schedule of shortest job first."""
    from ortools.sat.python import cp_model

    slowdown, bound, optimal = [], [], 0
    for jobs in jobsets:
        model, scale = modelled(jobs, capacity)
        solver = cp_model.CpSolver()
        solver.parameters.num_workers, solver.parameters.max_time_in_seconds = WORKERS, seconds
        solver.parameters.interleave_search = True  # strategies take turns; a single one finds almost no solutions
        optimal += solver.solve(model) == cp_model.OPTIMAL
        slowdown.append(1.0 + solver.objective_value / scale)
        bound.append(1.0 + solver.best_objective_bound / scale)
    return Solved(slowdown, bound, optimal)


def modelled(jobs: JobSet, capacity: Units) -> "tuple[cp_model.CpModel, int]":
    """Return the model and the divisor of its objective, which is in whole numbers to avoid rounding."""
    from ortools.sat.python import cp_model

    from pipeline.problems.pool.env.simulator.list_scheduling import improved

    only = batch([jobs])
    hint = improved(only, capacity, shortest_first(only), 1)
    latest = int((hint + jobs.duration).max()) + int(jobs.duration.max())
    scale = math.lcm(*(int(steps) for steps in jobs.duration))
    model = cp_model.CpModel()
    starts = [model.new_int_var(int(at), latest, f"start {j}") for j, at in enumerate(jobs.arrival)]
    spans = [model.new_fixed_size_interval_var(starts[j], int(d), f"job {j}") for j, d in enumerate(jobs.duration)]
    for r, units in enumerate(capacity):
        model.add_cumulative(spans, [int(wanted) for wanted in jobs.demand[:, r]], units)
    waits = (
        (start - int(at)) * (scale // int(d)) for start, at, d in zip(starts, jobs.arrival, jobs.duration, strict=True)
    )
    model.minimize(sum(waits))
    for start, at in zip(starts, hint, strict=True):
        model.add_hint(start, int(at))
    return model, scale * len(starts)


def written(line: Line, best: Solved) -> str:
    """Return a row of the table."""
    above = line.solved / float(np.mean(best.slowdown)) - 1.0
    everywhere = "" if math.isnan(line.slowdown) else f"{line.slowdown:.4f}"
    evaluations = "" if line.evaluations is None else f"{line.evaluations:,}"
    return (
        f"| {line.jobs} | {line.method} | {evaluations} | {line.seconds:.2g} | {everywhere} | {line.solved:.4f} | "
        f"{100 * above:+.2f} % | {100 * line.worst:+.2f} % |"
    )


if __name__ == "__main__":
    main()
