"""Local search of known jobs: schedules a second, compared with list scheduling of one order at a time."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from benchmarks.measure import ProgressCallback, in_turns, seconds
from benchmarks.problem import Problem
from benchmarks.record import Row, figure, half_of
from benchmarks.sizes import Sizes
from pipeline.core.types import IntArray, keys
from pipeline.problems.pool.env.evaluation.searching import order_of
from pipeline.problems.pool.env.nouns import JobBatch, batch
from pipeline.problems.pool.env.simulator.list_scheduling import improved

PLAIN = "list scheduling in numpy, one order after the other"
ONE_BY_ONE = "the same compiled decoder on whole orders, called from Python for one order at a time"


class Question(NamedTuple):
    """Jobsets and their trial orders."""

    jobs: JobBatch
    capacity: tuple[int, ...]
    first: IntArray  # [J]  jobs by duration, jobset after jobset


def run(runs: int, sizes: Sizes, on_progress: ProgressCallback) -> Iterator[Row]:
    """Measure schedules a second of the search, and of both ways to compute them one by one."""
    jobsets, count, evaluations, once, plain = sizes.search
    asked = question(jobsets, count)
    one = question(1, count)
    some = swapped(one.first, max(once, plain))
    for name, work, tried, against, ratio in (
        ("a schedule at a time in numpy", lambda: list_plainly(one, some[:plain]), plain, PLAIN, 2810.0),
        ("a compiled one at a time", lambda: list_one_by_one(one, some[:once]), once, ONE_BY_ONE, 65.0),
    ):
        mine, theirs = in_turns(
            runs,
            on_progress,
            lambda: jobsets * evaluations / seconds(lambda: searched(asked, evaluations)) / 1e3,
            lambda: tried / seconds(work) / 1e3,  # noqa: B023
        )
        target, said = half_of(ratio), f"search, {count} jobs, against {name}"
        yield Row(figure(said, mine, "k schedules/s", theirs, more_is_better=True, target=target), against)


def question(jobsets: int, jobs: int) -> Question:
    """Draw jobsets whose jobs all wait at once."""
    problem = Problem(jobsets=jobsets, waiting=jobs)
    drawn = batch(problem.draw())
    return Question(drawn, problem.cluster.capacity, order_of(drawn, drawn.duration))


def searched(asked: Question, evaluations: int) -> IntArray:
    """Return the starts [J] found by the search."""
    number = np.arange(asked.jobs.episodes)
    return improved(asked.jobs, asked.capacity, asked.first, evaluations, keys(1, number, np.zeros_like(number)))


def swapped(order: IntArray, count: int) -> IntArray:
    """Return orders [count, J] like those of the search: in each, two jobs are swapped."""
    rng, orders = np.random.default_rng(1), np.tile(order, (count, 1))
    for row in orders:
        one, other = rng.choice(len(order), size=2, replace=False)
        row[[one, other]] = row[[other, one]]
    return orders


def list_one_by_one(asked: Question, orders: IntArray) -> list[IntArray]:
    """Return the starts [J] of every order, by the compiled decoder."""
    return [improved(asked.jobs, asked.capacity, order, 1) for order in orders]


def list_plainly(asked: Question, orders: IntArray) -> list[IntArray]:
    """Return the starts [J] of every order of one jobset, by numpy."""
    return [listed(asked.jobs, asked.capacity, order) for order in orders]


def listed(jobs: JobBatch, capacity: tuple[int, ...], order: IntArray) -> IntArray:
    """Return the start [J] of every job of one jobset: each in turn, as early as it fits, after any full step."""
    free = np.tile(capacity, (int(jobs.arrival.max() + jobs.duration.sum()), 1))
    start = np.zeros(len(order), dtype=np.int64)
    for job in order:
        begin, duration, demand = int(jobs.arrival[job]), int(jobs.duration[job]), jobs.demand[job]
        while len(full := np.flatnonzero((free[begin : begin + duration] < demand).any(axis=1))):
            begin += int(full[-1]) + 1
        free[begin : begin + duration] -= demand
        start[job] = begin
    return start
