"""Look-ahead: quality, and time of a decision, at several limits of simulated decisions."""

import time
from collections.abc import Iterator

import numba
import numpy as np

from benchmarks.measure import ProgressCallback
from benchmarks.problem import Problem
from benchmarks.record import NOTHING, Row, Target, figure
from benchmarks.sizes import Sizes
from pipeline.core.types import Observation, Policy, keys
from pipeline.lookahead.planner import Base, SearchBudget
from pipeline.problems.pool.env.evaluation.play import score
from pipeline.problems.pool.env.nouns import Cluster, batch
from pipeline.problems.pool.env.simulator.batch import Batched
from pipeline.problems.pool.heuristics.scores import HEURISTICS
from pipeline.problems.pool.lookahead.futures import ArrivalModel, arrival_model
from pipeline.problems.pool.lookahead.naming import WHOLE, plain_base
from pipeline.problems.pool.lookahead.search import Player, PoolPlanner, PoolSearch
from pipeline.simulation.rollout import play

SHORT = 50  # steps in which jobs arrive
LOAD, FUTURES, MOST_MS = 130, 64, 50.0
ALONE, OWN_LIMIT = "the base without look-ahead", "no baseline: cost of each limit, in processor time on one thread"


def run(runs: int, sizes: Sizes, on_progress: ProgressCallback) -> Iterator[Row]:
    """Measure mean slowdown on short runs of 10 slots, and the 99th percentile of decisions where 64 jobs wait."""
    jobsets, decisions = sizes.planned
    for name, base, budget, limits in bases():
        for limit in limits:
            on_progress(f"{name}, {limit} decisions")
            tried, last = budget._replace(decisions=limit), limit == budget.decisions
            said = f"looking ahead, {name}, {limit:,} decisions"
            ours, alone = slowdowns(base, tried, jobsets)
            yield Row(figure(f"{said}: mean slowdown", [ours], "", [alone]), ALONE)
            views = crowded(base, decisions)
            spent = [percentile(base, tried, views) for _ in range(runs)]
            target = Target(most=MOST_MS) if last else NOTHING
            yield Row(figure(f"{said}: p99 where 64 jobs wait", spent, "ms", target=target), OWN_LIMIT)


def bases() -> Iterator[tuple[str, Base[Player], SearchBudget, tuple[int, ...]]]:
    """Yield a heuristic, its default search budget, and the measured limits."""
    yield "hold", plain_base(HEURISTICS["hold"]), WHOLE, (2_000, 20_000, WHOLE.decisions)


def cluster(slots: int) -> Cluster:
    """Return the cluster; it knows when arrivals end."""
    return Problem(slots=slots).cluster._replace(arrivals_end=SHORT)


def futures() -> ArrivalModel:
    """Return the arrival model: short runs of one load."""
    drawn = [Problem(load=LOAD, arrivals="poisson", seed=3).one(number) for number in range(FUTURES)]
    return arrival_model([drawn], from_now=False, span=SHORT)


def planner(base: Base[Player], budget: SearchBudget, slots: int) -> PoolPlanner:
    """Return the policy with look-ahead."""
    return PoolPlanner(PoolSearch(base, cluster(slots), futures(), budget))


def slowdowns(base: Base[Player], budget: SearchBudget, jobsets: int) -> tuple[float, float]:
    """Return the mean slowdown of short runs, with and without look-ahead."""
    problem = Problem(load=LOAD, arrivals="poisson", seed=4)
    drawn = {LOAD: [problem.one(number) for number in range(jobsets)]}
    policies: dict[str, Policy] = {"plan": planner(base, budget, 10), "alone": base.policy}
    found = score(policies, drawn, cluster(10), problem.step_limit, seed=1)
    return found["plan"].by_load[LOAD], found["alone"].by_load[LOAD]


def crowded(base: Base[Player], decisions: int) -> list[Observation]:
    """Return the base's first observations after 200 simultaneous arrivals, with 64 jobs in slots, one view each."""
    views: list[Observation] = []
    number = 0
    while len(views) < decisions:
        problem = Problem(jobsets=1, slots=64, waiting=200, steps=20, seed=number)
        simulator = Batched(batch(problem.draw()), cluster(64), problem.step_limit, skip_forced=True)
        one = np.array([number])
        play(simulator, base.policy, keys(0, one, one), lambda rows, view, actions: views.append(view))
        number += 1
    return views[:decisions]


def percentile(base: Base[Player], budget: SearchBudget, views: list[Observation]) -> float:
    """Return the 99th percentile [ms of processor time] of a decision on one thread; the machine may be busy."""
    plan, draws = planner(base, budget, 64), np.zeros(1)
    threads = numba.get_num_threads()
    numba.set_num_threads(1)
    try:
        plan(views[0], draws)
        spent = np.empty(len(views))
        for k, view in enumerate(views):
            begun = time.process_time_ns()
            plan(view, draws)
            spent[k] = time.process_time_ns() - begun
    finally:
        numba.set_num_threads(threads)
    return float(np.percentile(spent, 99) / 1e6)
