"""A small event-driven problem to learn, for tests."""

from functools import partial

import numpy as np

from pipeline.core.config import EvolutionRecipe
from pipeline.core.config.machines.learning import A3cRecipe, DaggerRecipe, MachinesRecipe, PpoRecipe
from pipeline.core.types import ANY_KIND, keys
from pipeline.problems.machines.agents.networks.actor_critic import ActorCritic, DeepSets, Linear, Vector
from pipeline.problems.machines.agents.networks.features import Shape
from pipeline.problems.machines.agents.networks.loading import greedy
from pipeline.problems.machines.agents.training.task import Task
from pipeline.problems.machines.env.nouns import GREEDY, Jobs, Machines
from pipeline.problems.machines.env.simulator.batch import costed
from pipeline.simulation.rollout import play

MACHINES = Machines(np.array([[4000, 8000], [2000, 4000]]), np.array([0, 0]), 4, GREEDY, 4.0, 1e6)
SHAPE = Shape(slots=4, machines=2, resources=2, unit=1.0, void=True)
COMMON = {"play": "greedy", "optimizer": "adam", "learning_rate": 0.01, "falling": False, "clip": 1.0, "entropy": 0.01}

RECIPES: dict[str, MachinesRecipe | EvolutionRecipe] = {
    "ppo": PpoRecipe(
        algorithm="ppo",
        epochs=2,
        minibatches=2,
        ratio=0.2,
        gamma=1.0,
        trace=0.95,
        critic=0.5,
        advantage="critic",
        **COMMON,
    ),
    "a3c": A3cRecipe(algorithm="a3c", gamma=1.0, trace=0.95, critic=0.5, **COMMON),
    "evolution": EvolutionRecipe(algorithm="evolution", population=8, spread=0.3),
    "dagger": DaggerRecipe(algorithm="dagger", pool=500, batch=64, steps=4, **COMMON),
}


def some_jobs(load: int, number: int, count: int = 20) -> Jobs:
    """Jobs that fit on one machine, a quarter of them long."""
    rng = np.random.default_rng([load, number])
    duration = np.where(rng.random(count) < 0.25, 20.0, 1.0) * rng.uniform(0.5, 1.5, count)
    arrival = np.cumsum(rng.exponential(1.0, count))
    demand = np.column_stack([rng.integers(1, 5, count) * 500, rng.integers(1, 5, count) * 1000])
    return Jobs(arrival - arrival[0], duration, duration, demand, np.ones(count, dtype=int), np.full(count, ANY_KIND))


# One machine, and jobs that each fill it and all wait from the start. The mean slowdown is then least with the shortest
# job first (Smith's rule, 1956, with weights 1 / duration), so that the optimum of learning is known.
ONE = Machines(np.array([[4000, 8000]]), np.array([0]), 4, GREEDY, 4.0, 1e6)
ONE_SHAPE = Shape(slots=4, machines=1, resources=2, unit=1.0, void=True)


def jobs_at_once(load: int, number: int) -> Jobs:
    """Four jobs of 1 to 20 time units, each of which needs the whole machine."""
    duration = np.exp(np.random.default_rng([load, number, 7]).uniform(0, np.log(20), 4))
    demand = np.tile(ONE.capacity, (4, 1))
    return Jobs(np.zeros(4), duration, duration, demand, np.ones(4, dtype=int), np.full(4, ANY_KIND))


def least_slowdown(jobs: Jobs) -> float:
    """Least possible mean slowdown of jobs that wait from the start and fill the machine: the shortest first."""
    duration = np.sort(jobs.duration)
    return float((np.cumsum(duration) / duration).mean())


def solvable_task(recipe: MachinesRecipe | EvolutionRecipe, seed: int = 3) -> Task:
    """A task with a known optimum; learning uses only its fresh jobsets, those below 1,000."""
    return Task(partial(costed, ONE, "slowdown"), recipe, seed, [100], {}, {}, jobs_at_once)


def distance(network: ActorCritic) -> float:
    """Excess of a network over the least slowdown on 200 jobsets not used for learning, as a fraction."""
    jobsets = [jobs_at_once(100, 1_000_000 + k) for k in range(200)]
    simulator = solvable_task(RECIPES["ppo"]).begin(jobsets)
    play(simulator, greedy(network), keys(1, np.arange(200), np.zeros(200, dtype=np.int64)))
    least = float(np.mean([least_slowdown(jobs) for jobs in jobsets]))
    return float((-simulator.gained / 4).mean()) / least - 1


def tiny_task(recipe: MachinesRecipe | EvolutionRecipe, objective: str = "slowdown", seed: int = 3) -> Task:
    """A task of one load, with a few jobsets of each split."""
    train, validation = ([some_jobs(100, 1000 + k + base) for k in range(4)] for base in (0, 500))
    return Task(partial(costed, MACHINES, objective), recipe, seed, [100], {100: train}, {100: validation}, some_jobs)


def longest_first() -> ActorCritic:
    """A small network for `solvable_task` whose seed makes it begin with the longest job: the worst policy."""
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(17)
        return DeepSets(ONE_SHAPE, 8)


def untrained(kind: str = "deepsets", seed: int = 2) -> ActorCritic:
    """A small network."""
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return {"deepsets": DeepSets(SHAPE, 8), "vector": Vector(SHAPE, (16, 8)), "linear": Linear(SHAPE)}[kind]
