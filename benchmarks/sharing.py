"""User groups that share a cluster: intervals a second of the simulator, and a whole decision of a controller."""

import time
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from benchmarks.measure import ProgressCallback, in_turns, seconds
from benchmarks.record import Row, figure, half_of
from benchmarks.sizes import Sizes
from pipeline.core.config import QNetworkConfig
from pipeline.core.types import IntArray
from pipeline.problems.groups.agents.networks.features import past
from pipeline.problems.groups.agents.networks.q_network import build, controller
from pipeline.problems.groups.env.nouns import (
    Configurations,
    Controller,
    Jobs,
    Observation,
    SharedCluster,
    batch,
)
from pipeline.problems.groups.env.simulator.batch import GroupsSimulator
from pipeline.problems.groups.env.teachers import equal
from tests.oracles.groups import PlainGroups

PLAIN = "tests/oracles/groups.py under equal shares, observations included; time per interval of a cluster"
NONE = "no baseline"
UNITS, INTERVAL, LOAD, INTERVALS = 16, 10.0, 0.8, 50
WIDEST, LONGEST = 8, 30.0
LEVELS = np.array([0, 4, 8, 12, 16, 24, 32, 40, 48, 64])
ORDERS: IntArray = np.array([[0, 1, 2], [1, 0, 2], [2, 1, 0]])


class Sharing(NamedTuple):
    """Some clusters of identical groups."""

    episodes: int
    groups: int

    @property
    def cluster(self) -> SharedCluster:
        """Return the cluster."""
        return SharedCluster(np.array([UNITS * self.groups]), self.groups, ORDERS, INTERVAL, False, 1e9)

    def draw(self) -> list[Jobs]:
        """Return the jobs of each episode, Poisson arrivals over INTERVALS intervals."""
        return [self._one(np.random.default_rng([13, k])) for k in range(self.episodes)]

    def _one(self, rng: np.random.Generator) -> Jobs:
        rate = LOAD * UNITS * self.groups / ((1 + WIDEST) / 2 * LONGEST / 2)
        jobs = int(rate * INTERVALS * INTERVAL)
        duration = rng.uniform(0.1, LONGEST, jobs)
        place = [rng.integers(0, high, jobs) for high in (self.groups, ORDERS.shape[1])]
        arrival, demand = np.cumsum(rng.exponential(1 / rate, jobs)), rng.integers(1, WIDEST + 1, (jobs, 1))
        return Jobs(arrival, duration, duration, demand, *place)


def run(runs: int, sizes: Sizes, on_progress: ProgressCallback) -> Iterator[Row]:
    """Measure intervals a second under equal shares, and a decision of a learned controller for many groups."""
    few, many = Sharing(*sizes.sharing), Sharing(1, sizes.shares[0])
    drawn = few.draw()
    rate, plain = in_turns(runs, on_progress, lambda: _compiled(few, drawn) / 1e6, lambda: _plain(few, drawn[0]) / 1e6)
    name = f"sharing, intervals of {few.groups} groups"
    yield Row(figure(name, rate, "M intervals/s", plain, more_is_better=True, target=half_of(ratio=797)), PLAIN)
    control, view = _controlled(many)
    times = [1000 * seconds(lambda: control(view, np.zeros(1))) for _ in range(runs)]
    yield Row(figure(f"sharing, a decision for {many.groups} groups", times, "ms", target=half_of(cost=1.9)), NONE)


def _compiled(sharing: Sharing, drawn: list[Jobs]) -> float:
    """Return intervals a second."""
    jobs, control = batch(drawn), equal(sharing.cluster, 0)
    groups, played = GroupsSimulator(jobs, sharing.cluster, np.ones(len(jobs.arrival))), 0
    begun = time.perf_counter()
    while len(rows := groups.rows):
        groups.step(rows, control(groups.observe(rows), np.zeros(len(rows))))
        played += len(rows)
    return played / (time.perf_counter() - begun)


def _plain(sharing: Sharing, jobs: Jobs) -> float:
    groups, control, played = (
        PlainGroups(jobs, sharing.cluster, np.ones(len(jobs.arrival))),
        equal(sharing.cluster, 0),
        0,
    )
    begun = time.perf_counter()
    while not groups.over:
        groups.step(control(groups.observe(), np.zeros(1)))
        played += 1
    return played / (time.perf_counter() - begun)


def _controlled(sharing: Sharing) -> tuple[Controller, Observation]:
    """Return a controller with an untrained network, and a view in the middle of an episode."""
    cluster, drawn = sharing.cluster, sharing.draw()
    config = QNetworkConfig(name="q_network", hidden=(64, 64), weights="shared")
    network = build(config, cluster, past({1: drawn}, cluster), 1)
    control = controller(network, cluster, Configurations(LEVELS[:, None], len(ORDERS)))
    jobs = batch(drawn)
    groups, rule = GroupsSimulator(jobs, cluster, np.ones(len(jobs.arrival))), equal(cluster, 0)
    for _ in range(INTERVALS // 2):
        groups.step(groups.rows, rule(groups.observe(groups.rows), np.zeros(1)))
    view = groups.observe(groups.rows)
    control(view, np.zeros(1))
    return control, view
