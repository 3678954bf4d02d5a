"""Evolution of scores: all candidates of an update play the same fresh jobsets.

The cost of a candidate is its mean slowdown relative to that of `sjf_align`, averaged over loads so that no load
outweighs the others: on short runs, and on streams whose arrivals continue until every measured job has started. So
starved jobs cost as much in training as in evaluation. Policies know the load of half of these jobsets. Streams have
less weight, because one candidate's costs on two streams differ more than two candidates' costs on short runs.

All candidates of a generation are one batch of the compiled simulator.
"""

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy

import numpy as np

from pipeline.core.config import EvolutionRecipe, PoolEvolution, StreamPieces
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
    for step in range(memory.done + 1, config.updates + 1):
        drawn = search.ask()
        parts = list(costs([rule_of(weights, network.hidden) for weights in drawn], task, *fresh(task, config, step)))
        cost = together(parts, config.streams)
        search.tell(cost)
        network.weights.copy_(network.weights.new_tensor(search.mean))
        kinds = {name: float(np.mean([each.min() for kind, each in parts if kind == name])) for name, _ in parts}
        yield Update(step, {"cost": float(cost.mean()), "best_cost": float(cost.min()), **kinds})


def validate_scores(network: Scores, task: Task) -> Callable[[], float]:
    """Return a function that computes the network's cost, defined as in training, on validation jobsets."""
    jobsets = [(load, list(task.validation[load])) for load in task.loads]
    asked = task.streams
    pieces = streams(task, asked, "validation", range(EXAMINED)) if asked is not None else []

    def cost() -> float:
        found = costs([network.rule], task, jobsets, pieces)
        return float(together(list(found), asked)[0])

    return cost


def together(parts: Sequence[tuple[str, FloatArray]], streams: StreamPieces | None) -> FloatArray:
    """Return the weighted mean [C] of the costs of candidates over kinds of jobsets."""
    weights = [1.0 if streams is None or kind == "short" else streams.weight for kind, _ in parts]
    return np.asarray(np.average([each for _, each in parts], axis=0, weights=weights))


Drawn = Sequence[tuple[int, list[JobSet]]]  # jobsets by load


def fresh(task: Task, config: PoolEvolution, step: int) -> tuple[Drawn, "Pieces"]:
    """Return the short runs and the streams of an update."""
    numbers = range(step * config.jobsets, (step + 1) * config.jobsets)
    jobsets = [(load, [task.fresh(load, k) for k in numbers]) for load in task.loads]
    if config.streams is None:
        return jobsets, []
    each = config.streams.jobsets
    return jobsets, streams(task, config.streams, "fresh", range(step * each, (step + 1) * each))


Pieces = Sequence[tuple[int, Cluster, int, list[JobSet]]]  # load, cluster, step limit, and jobsets


def streams(task: Task, config: StreamPieces, split: str, numbers: range) -> Pieces:
    """Return streams of every load and number of slots; policies do not know when their arrivals end."""
    found = []
    for place, slots in enumerate(config.slots):
        cluster = task.cluster._replace(slots=slots, arrivals_end=None, measured=config.measured)
        for load in config.loads:
            drawn = [task.stream(split, load, k, config.steps) for k in numbers[place :: len(config.slots)]]
            if drawn:
                found.append((load, cluster, config.steps, drawn))
    return found


def costs(
    rules: Sequence[CompiledRule], task: Task, jobsets: Drawn, pieces: Pieces
) -> Iterator[tuple[str, FloatArray]]:
    """Yield each kind of jobsets with the costs of the rules [C] on it, relative to BASE."""
    for load, drawn in jobsets:
        yield "short", to_base(rules, half_known(load, drawn), task.cluster, task.step_limit)
    for load, cluster, limit, drawn in pieces:
        yield "streams", to_base(rules, half_known(load, drawn), cluster, limit)


def half_known(load: int, drawn: Sequence[JobSet]) -> list[JobSet]:
    """Return the jobsets; policies know the load of every other one."""
    return [jobs._replace(load=None if place % 2 else float(load)) for place, jobs in enumerate(drawn)]


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
