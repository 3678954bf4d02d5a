"""The event-driven simulator under heuristics: decisions a second, a large cluster, and growth of a decision's time."""

import time
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from benchmarks.measure import ProgressCallback, exponent, in_turns
from benchmarks.record import Row, Target, figure, half_of
from benchmarks.sizes import Sizes
from pipeline.core.types import ANY_KIND, CompiledRule
from pipeline.problems.machines.env.nouns import GREEDY, Jobs, Machines, end_to_end
from pipeline.problems.machines.env.simulator.batch import Simulator
from pipeline.problems.machines.env.simulator.rules import players
from pipeline.problems.machines.heuristics.rules import HEURISTICS
from pipeline.simulation.rollout import play
from tests.oracles.machines import PlainSimulator

PLAIN = "tests/oracles/machines.py under SJF on observations; time per decision"
OURS = "no baseline: our own points, under Tetris"
CPU, MEMORY = 10_000, 64_000  # thousandths of a machine of Deepk8s
BUSY = 1.2  # arrivals relative to capacity: there is always a queue
FOREVER = 1e12


class Crowd(NamedTuple):
    """Some episodes on identical machines."""

    episodes: int
    jobs: int
    machines: int
    slots: int

    def cluster(self) -> Machines:
        """Return the machines."""
        capacity = np.tile([[CPU, MEMORY]], (self.machines, 1))
        return Machines(capacity, np.zeros(self.machines, dtype=np.int64), self.slots, GREEDY, 16.0, FOREVER)

    def draw(self) -> list[Jobs]:
        """Return the jobs of each episode: log-normal run times, Poisson arrivals."""
        return [self._one(np.random.default_rng([7, k])) for k in range(self.episodes)]

    def _one(self, rng: np.random.Generator) -> Jobs:
        demand = np.column_stack([rng.choice([500, 1000, 2000, 4000], self.jobs), rng.integers(500, 16_000, self.jobs)])
        duration = np.exp(rng.normal(1.0, 1.0, self.jobs))
        rate = BUSY * self.machines * MEMORY / (8_250 * np.exp(1.5))
        arrival = np.cumsum(rng.exponential(1 / rate, self.jobs))
        nodes = np.ones(self.jobs, dtype=np.int64)
        return Jobs(arrival, duration, duration, demand, nodes, np.full(self.jobs, ANY_KIND))


def run(runs: int, sizes: Sizes, on_progress: ProgressCallback) -> Iterator[Row]:
    """Measure SJF's decisions a second, a cluster of many machines, and growth with machines and slots."""
    small, large = Crowd(*sizes.crowd), Crowd(*sizes.cluster)
    on_progress("draw the jobs")
    drawn, many = small.draw(), large.draw()
    rate, plain = in_turns(
        runs,
        on_progress,
        lambda: len(drawn) * small.jobs / _seconds(small, drawn, "sjf") / 1e6,
        lambda: sizes.plain_jobs / _plain_seconds(small, drawn[0], sizes.plain_jobs) / 1e6,
    )
    target = half_of(ratio=4310)
    yield Row(figure("machines, SJF", rate, "M decisions/s", plain, more_is_better=True, target=target), PLAIN)
    whole, by_job = in_turns(
        runs,
        on_progress,
        lambda: _seconds(large, many, "sjf"),
        lambda: _plain_seconds(large, many[0], sizes.plain_jobs) * large.jobs / sizes.plain_jobs,
    )
    name = f"machines, {large.machines:,} machines, {large.jobs:,} jobs"
    yield Row(figure(name, whole, "s", by_job, target=half_of(ratio=748)), PLAIN)
    yield from _growth(runs, sizes, small, on_progress)


def _growth(runs: int, sizes: Sizes, base: Crowd, on_progress: ProgressCallback) -> Iterator[Row]:
    for axis, values in sizes.pairs.items():
        slopes = []
        for number in range(runs):
            on_progress(f"{axis}, run {number + 1} of {runs}")
            crowds = [base._replace(**{axis: value}) for value in values]
            each = [_seconds(crowd, crowd.draw(), "tetris_fair") / crowd.jobs / crowd.episodes for crowd in crowds]
            slopes.append(exponent(values, each))
        name = f"growth of a decision's time, {axis} {values[0]} to {values[-1]}"
        yield Row(figure(name, slopes, "exponent", target=Target(most=1.1)), OURS)


def _seconds(crowd: Crowd, drawn: list[Jobs], rule: str) -> float:
    jobs = end_to_end(drawn)
    begun = time.perf_counter()
    simulator = Simulator(jobs, crowd.cluster(), np.ones(len(jobs.arrival)))
    who = players([CompiledRule(rule)] * jobs.episodes, np.zeros(jobs.episodes, dtype=np.uint64))
    simulator.play(simulator.rows, who, crowd.jobs * crowd.jobs)
    return time.perf_counter() - begun


def _plain_seconds(crowd: Crowd, jobs: Jobs, count: int) -> float:
    some = Jobs._make(column[:count] for column in jobs)
    begun = time.perf_counter()
    play(PlainSimulator(some, crowd.cluster(), np.ones(count)), HEURISTICS["sjf"], np.zeros(1, dtype=np.uint64))
    return time.perf_counter() - begun
