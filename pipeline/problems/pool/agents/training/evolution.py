"""Evolution of scores: all candidates of an update play the same fresh jobsets.

The cost of a candidate is its mean slowdown relative to that of `sjf_align`, averaged over loads so that no load
outweighs the others: on short runs, and on streams whose arrivals continue until every measured job has started. So
starved jobs cost as much in training as in evaluation. Policies know the load of half of these jobsets. Streams have
less weight, because one candidate's costs on two streams differ more than two candidates' costs on short runs.

All candidates of a generation are one batch of the compiled simulator.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from typing import NamedTuple

import numpy as np

from pipeline.core.config import EvolutionRecipe, PoolEvolution
from pipeline.core.config.pool.learning import StreamPieces
from pipeline.core.types import CompiledRule, FloatArray, IntArray, keys
from pipeline.learning.evolution import Evolution
from pipeline.learning.memory import Memory
from pipeline.learning.update import Update
from pipeline.problems.pool.agents.networks.scores import Scores, rule_of
from pipeline.problems.pool.agents.training.task import Task
from pipeline.problems.pool.env.evaluation.metrics import outcome
from pipeline.problems.pool.env.nouns import Cluster, JobBatch, JobSet, batch
from pipeline.problems.pool.env.simulator.batch import Batched
from pipeline.problems.pool.env.simulator.rules import players

BASE = CompiledRule("sjf_align")
WHOLE = 1 << 62  # decisions: plays to the end
EXAMINED = 16  # validation streams at each load


def evolution(network: Scores, task: Task, config: PoolEvolution, memory: Memory | None = None) -> Iterator[Update]:
    """Move the weights towards good candidates, one generation per update."""
    memory, recipe = memory or Memory(), task.recipe
    assert isinstance(recipe, EvolutionRecipe)
    start = deepcopy(network)
    memory.keep(start=start)  # a resumed search repeats its generations from the first weights
    search = Evolution(start.weights.numpy(), recipe.spread, recipe.population, task.seed + 1, recipe.averaged)
    memory.keep(search=search)
    short, long = config.jobsets, 0 if config.streams is None else config.streams.jobsets
    for step in range(memory.done + 1, config.updates + 1):
        drawn = search.ask()
        jobsets = {load: [task.fresh(load, k) for k in range(step * short, (step + 1) * short)] for load in task.loads}
        played = groups(task, jobsets, config.streams, "fresh", range(step * long, (step + 1) * long))
        parts = costs([rule_of(weights, network.hidden) for weights in drawn], played)
        cost = together(parts, config.streams)
        search.tell(cost)
        network.weights.copy_(network.weights.new_tensor(search.mean))
        kinds = {name: float(np.mean([each.min() for kind, each in parts if kind == name])) for name, _ in parts}
        yield Update(step, {"cost": float(cost.mean()), "best_cost": float(cost.min()), **kinds})


def validate_scores(network: Scores, task: Task) -> Callable[[], float]:
    """Return a function that computes the network's cost, defined as in training, on validation jobsets."""
    played = groups(task, task.validation, task.streams, "validation", range(EXAMINED))
    return lambda: float(together(costs([network.rule], played), task.streams)[0])


def together(parts: Sequence[tuple[str, FloatArray]], streams: StreamPieces | None) -> FloatArray:
    """Return the weighted mean [C] of the costs of candidates over kinds of jobsets."""
    weights = [1.0 if streams is None or kind == "short" else streams.weight for kind, _ in parts]
    return np.asarray(np.average([each for _, each in parts], axis=0, weights=weights))


class Group(NamedTuple):
    """Jobsets of one load that all candidates play."""

    kind: str
    jobsets: list[JobSet]
    cluster: Cluster
    step_limit: int


def groups(
    task: Task, short: Mapping[int, Sequence[JobSet]], config: StreamPieces | None, split: str, numbers: range
) -> list[Group]:
    """Return short runs of every load, and streams of every load and number of slots.

    Policies do not know when arrivals of streams end. `numbers` are those of the streams of each load.
    """
    found = [Group("short", half_known(load, short[load]), task.cluster, task.step_limit) for load in task.loads]
    if config is None:
        return found
    for place, slots in enumerate(config.slots):
        cluster = task.cluster._replace(slots=slots, arrivals_end=None, measured=config.measured)
        for load in config.loads:
            drawn = [task.stream(split, load, k, config.steps) for k in numbers[place :: len(config.slots)]]
            if drawn:
                found.append(Group("streams", half_known(load, drawn), cluster, config.steps))
    return found


def half_known(load: int, drawn: Sequence[JobSet]) -> list[JobSet]:
    """Return the jobsets; policies know the load of every other one."""
    return [jobs._replace(load=None if place % 2 else float(load)) for place, jobs in enumerate(drawn)]


def costs(rules: Sequence[CompiledRule], played: Sequence[Group]) -> list[tuple[str, FloatArray]]:
    """Return the kind of each group, and the costs of the rules [C] on it, relative to BASE."""
    return [(each.kind, to_base(rules, each.jobsets, each.cluster, each.step_limit)) for each in played]


def to_base(rules: Sequence[CompiledRule], jobsets: list[JobSet], cluster: Cluster, limit: int) -> FloatArray:
    """Return the mean slowdown of rules [C] on jobsets relative to BASE's; 1 where no job is measured."""
    every = [BASE, *rules]
    jobs = batch(jobsets * len(every))
    simulator = Batched(jobs, cluster, limit, skip_forced=True)
    number = np.arange(jobs.episodes)
    who = players([rule for rule in every for _ in jobsets], keys(0, number, 0 * number))
    simulator.play(simulator.rows, who, WHOLE)
    each = outcome(jobs, simulator.schedule(), limit).slowdown
    mean = _means(jobs, each, cluster.measured).reshape(len(every), len(jobsets)).mean(axis=1)
    return np.asarray(mean[1:] / mean[0]) if mean[0] > 0 else np.ones(len(rules))


def _means(jobs: JobBatch, value: FloatArray, measured: tuple[int, int] | None) -> FloatArray:
    """Return the mean over the measured jobs of each episode; 0 where there are none."""
    counted = np.ones(len(value), dtype=bool)
    if measured is not None:
        counted = (jobs.arrival >= measured[0]) & (jobs.arrival < measured[1])
    episode: IntArray = jobs.episode[counted]
    total, count = np.bincount(episode, value[counted], jobs.episodes), np.bincount(episode, minlength=jobs.episodes)
    return np.asarray(total / np.maximum(count, 1))
