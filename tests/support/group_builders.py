"""User groups that share a small cluster, and a small problem to learn, for tests."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from pipeline.core.config import DqnRecipe, EvolutionRecipe, QNetworkConfig, Replay
from pipeline.core.types import FloatArray
from pipeline.problems.groups.agents.networks import q_network
from pipeline.problems.groups.agents.networks.features import past, shape_of
from pipeline.problems.groups.agents.networks.q_network import Worth
from pipeline.problems.groups.agents.training.task import Task
from pipeline.problems.groups.env.nouns import (
    Configurations,
    Jobs,
    Observation,
    Setting,
    SharedCluster,
    equal_shares,
)

CLUSTER = SharedCluster(np.array([4]), 2, np.array([[0, 1], [1, 0]]), 10.0, False, 100.0)
CONFIGURATIONS = Configurations(np.array([[0], [2], [4]]), orders=2)
RECIPE = DqnRecipe(
    algorithm="dqn",
    learning_rate=0.1,
    falling=False,
    clip=None,
    gamma=0.5,
    against="zero",
    batch=4,
    memory=200,
    target=3,
    double=False,
    huber=False,
    bootstrap="joint",
    conservative=0.0,
)
REPLAY = Replay(name="replay", loads=(100,), jobsets=4, updates=3, steps=2, random=0.5, noise=0.2)


class Job(NamedTuple):
    """One job; a whole number as its demand is that of a single resource."""

    arrival: float
    duration: float
    demand: int | tuple[int, ...]
    group: int
    queue: int = 0
    estimate: float | None = None


def jobset(*rows: Job) -> Jobs:
    """Jobs by hand, in order of arrival."""
    return Jobs(
        arrival=np.array([row.arrival for row in rows], dtype=float),
        duration=np.array([row.duration for row in rows], dtype=float),
        estimate=np.array([row.duration if row.estimate is None else row.estimate for row in rows], dtype=float),
        demand=np.array([row.demand for row in rows], dtype=np.int64).reshape(len(rows), -1),
        group=np.array([row.group for row in rows], dtype=np.int64),
        queue=np.array([row.queue for row in rows], dtype=np.int64),
    )


def give(*shares: int, order: Sequence[int] | None = None, episodes: int = 1) -> Setting:
    """Units of one resource for each group, and the index of its order; the same in all episodes."""
    share = np.array(shares, dtype=np.int64)[None, :, None]
    orders = np.array([[0] * len(shares) if order is None else order], dtype=np.int64)
    return Setting(share.repeat(episodes, axis=0), orders.repeat(episodes, axis=0))


def observed(cluster: SharedCluster, **fields: Any) -> Observation:
    """An observation of one episode: given fields, equal shares, and 0 elsewhere."""
    groups, queues, resources = cluster.groups, cluster.queues, len(cluster.capacity)
    of_group, of_queue = (1, groups), (1, groups, queues)
    count, time = np.int64, float
    empty = Observation(
        now=np.zeros(1),
        waiting=np.zeros(of_queue, count),
        waiting_demand=np.zeros((*of_queue, resources), count),
        waiting_work=np.zeros(of_queue, time),
        waited=np.zeros(of_queue, time),
        head_waited=np.zeros(of_queue, time),
        head_demand=np.zeros((*of_queue, resources), count),
        head_estimate=np.zeros(of_queue, time),
        running=np.zeros(of_group, count),
        used=np.zeros((*of_group, resources), count),
        left=np.zeros(of_group, time),
        releasing=np.zeros((*of_group, resources), count),
        recent_jobs=np.zeros(of_queue, time),
        recent_work=np.zeros(of_queue, time),
        share=equal_shares(cluster)[None],
        order=np.zeros(of_group, count),
    )
    told = {name: np.array([value], dtype=getattr(empty, name).dtype) for name, value in fields.items()}
    wrong = [name for name, value in told.items() if value.shape != getattr(empty, name).shape]
    assert not wrong, f"of another shape: {wrong}"
    return empty._replace(**told)


def drawn_jobs(load: int, number: int, count: int = 16, cluster: SharedCluster = CLUSTER) -> Jobs:
    """Random jobs of any group and queue; those of queue 1 run longer."""
    rng = np.random.default_rng([load, number])
    queue = rng.integers(0, cluster.queues, count)
    duration = rng.uniform(2, 8, count) * np.where(queue == 0, 1, 3)
    demand = rng.integers(1, cluster.capacity // 2 + 1, (count, len(cluster.capacity)))
    arrival = np.sort(rng.uniform(0, 6 * count, count)) * 100 / load
    return Jobs(arrival, duration, duration, demand, rng.integers(0, cluster.groups, count), queue)


def tiny_task(recipe: DqnRecipe | EvolutionRecipe = RECIPE, seed: int = 3, generator: Replay | None = REPLAY) -> Task:
    """A task of one load, with a few jobsets of each split."""
    train, validation = ([drawn_jobs(100, 1000 + k + base) for k in range(4)] for base in (0, 500))
    loads = {"train": {100: train}, "validation": {100: validation}}
    return Task(CLUSTER, CONFIGURATIONS, "delay", recipe, generator, seed, [100], **loads, fresh=drawn_jobs)


def untrained(kind: str = "shared", seed: int = 2, cluster: SharedCluster = CLUSTER) -> q_network.QNetwork:
    """A small network with drawn jobs as its past."""
    known = past({100: [drawn_jobs(100, k, cluster=cluster) for k in range(4)]}, cluster)
    return built(kind, seed, cluster, known)


def written(cluster: SharedCluster = CLUSTER) -> Worth:
    """An explicit value function with its first weights, and with drawn jobs as its past."""
    known = past({100: [drawn_jobs(100, k, cluster=cluster) for k in range(4)]}, cluster)
    return Worth(shape_of(cluster), known, cluster.capacity / cluster.groups)


def built(kind: str, seed: int, cluster: SharedCluster, known: FloatArray) -> q_network.QNetwork:
    """A small network with a given past."""
    return q_network.build(QNetworkConfig(name="q_network", hidden=(8, 6), weights=kind), cluster, known, seed)
