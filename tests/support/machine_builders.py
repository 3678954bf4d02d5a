"""Random machines and jobs for tests of the event-driven simulators, and functions that run these simulators."""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from pipeline.core.types import Observation
from pipeline.problems.machines.env.nouns import Jobs, Machines, Placed, end_to_end
from pipeline.problems.machines.env.simulator.batch import Simulator
from tests.oracles.machines import PlainSimulator

HALF = 500  # thousandths of a unit: the step in which demands are drawn


class Problem(NamedTuple):
    """Some episodes on the same machines."""

    machines: Machines
    episodes: list[Jobs]
    unit_costs: list[np.ndarray]

    def plain(self) -> list[PlainSimulator]:
        """Every episode in a separate plain simulator."""
        return [
            PlainSimulator(jobs, self.machines, unit_cost)
            for jobs, unit_cost in zip(self.episodes, self.unit_costs, strict=True)
        ]

    def compiled(self, times: int = 1) -> Simulator:
        """All episodes in one compiled batch, `times` in a row."""
        return Simulator(end_to_end(self.episodes * times), self.machines, np.concatenate(self.unit_costs * times))

    def one_at_a_time(self) -> list[Simulator]:
        """Every episode in a separate compiled batch."""
        return [
            self._replace(episodes=self.episodes[b : b + 1], unit_costs=self.unit_costs[b : b + 1]).compiled()
            for b in range(len(self.episodes))
        ]


def random_machines(
    rng: np.random.Generator, dispatch: int, number: int, resources: int, slots: int, time_limit: float
) -> Machines:
    """Machines of any size and of up to three kinds; a quarter of them have none of their last resource."""
    capacity = rng.integers(2, 9, (number, resources)) * HALF
    if resources > 1:
        capacity[rng.random(number) < 1 / 4, -1] = 0
    kind, pause = rng.integers(0, 3, number), float(rng.choice([0.5, 2.0, 7.0]))
    return Machines(capacity, kind, slots, dispatch, pause, time_limit, stall=float(rng.choice([0.0, 3.0, 1e9])))


def random_jobs(rng: np.random.Generator, machines: Machines, count: int, steps: int, whole_times: bool = True) -> Jobs:
    """Jobs that some machines can hold, on up to three at once; with whole times, many events coincide."""
    number, resources = machines.capacity.shape
    demand, nodes = np.empty((count, resources), dtype=np.int64), rng.integers(1, min(number, 3) + 1, count)
    kinds = rng.integers(0, 8, count).astype(np.uint64)
    for j in range(count):
        hosts = rng.permutation(number)[: nodes[j]]
        demand[j] = rng.integers(0, machines.capacity[hosts].min(axis=0) // HALF + 1) * HALF
        kinds[j] |= np.bitwise_or.reduce(np.uint64(1) << machines.kind[hosts].astype(np.uint64))
    times = rng.integers(0, steps, count) if whole_times else rng.uniform(0, steps, count)
    durations = rng.integers(1, 10, count) if whole_times else rng.uniform(0.1, 10, count)
    guesses = rng.integers(1, 12, count) if whole_times else rng.uniform(0.1, 12, count)
    estimate = np.where(rng.random(count) < 0.5, durations, guesses).astype(float)
    return Jobs(np.sort(times).astype(float), durations.astype(float), estimate, demand, nodes, kinds)


def random_problem(rng: np.random.Generator, dispatch: int, number: int, whole_times: bool = True) -> Problem:
    """A random problem with a number of machines; a third are cut before all jobs can end, half measure some jobs."""
    limit = float(rng.choice([np.inf, np.inf, rng.integers(1, 25)]))
    machines = random_machines(rng, dispatch, number, int(rng.integers(1, 4)), int(rng.choice([1, 3, 10])), limit)
    sizes = rng.integers(1, 25, int(rng.integers(1, 4)))
    episodes = [random_jobs(rng, machines, int(count), int(rng.integers(1, 30)), whole_times) for count in sizes]
    unit_costs = [rng.choice([1.0, 1.0 / 3.0, 0.1], count) for count in sizes]
    if sizes.min() > 2 and rng.random() < 1 / 2:
        first = int(rng.integers(0, sizes.min() - 1))
        machines = machines._replace(measured=(first, int(rng.integers(first + 1, sizes.min()))))
    return Problem(machines, episodes, unit_costs)


def roam(view: Observation, rng: np.random.Generator) -> np.ndarray:
    """Arbitrary actions [B]: a legal one, void, an empty slot, or one that does not fit."""
    legal = view.legal.reshape(len(view.now), -1)
    anything = rng.integers(0, legal.shape[1] + 1, len(legal))
    placement = np.where(legal, rng.random(legal.shape), -1.0).argmax(axis=1)
    return np.asarray(np.where(rng.random(len(legal)) < 0.4, anything, placement))


def jobs_of(placed: Placed, rows: slice) -> list[list[float]]:
    """Outcome of some jobs as comparable lists; -1 for what never happened."""
    return [np.nan_to_num(column[rows], nan=-1.0).tolist() for column in (placed.start, placed.finish, placed.machine)]


def parts(jobs: Sequence[Jobs]) -> list[slice]:
    """Slices of the batch, one for each episode."""
    return [slice(begin, after) for begin, after in pairwise(end_to_end(jobs).first.tolist())]
