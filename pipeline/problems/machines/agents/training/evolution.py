"""Evolution of a linear network's weights by CMA-ES, one generation per update (`pipeline.learning.evolution`).

Where a few weights make thousands of decisions, and one unlucky decision costs more than all others, the gradient of a
policy that samples its actions is lost in noise. Here every candidate plays greedily, and all of a generation play the
same fresh jobsets. The cost of a candidate is the mean cost of a job relative to a rule's on the same jobsets, plus a
weight times the same ratio of the tail (the 99th percentile and the longest of waits), each averaged over loads. So
starvation is penalised, and no load counts more because its jobs cost more.
"""

from collections.abc import Iterator
from copy import deepcopy

import numpy as np
import torch

from pipeline.core.config import EvolutionRecipe, MachinesEvolution
from pipeline.core.types import CompiledRule, FloatArray, IntArray, Observation, keys
from pipeline.learning.evolution import Evolution
from pipeline.learning.memory import Memory
from pipeline.learning.update import Update
from pipeline.problems.machines.agents.networks.actor_critic import ActorCritic, Linear
from pipeline.problems.machines.agents.networks.features import Features, empty_features, fill_one
from pipeline.problems.machines.agents.training.task import Task
from pipeline.problems.machines.env.evaluation.metrics import measured_part, outcome
from pipeline.problems.machines.env.simulator.batch import Simulator, write_view
from pipeline.problems.machines.env.simulator.dispatch import apply_action
from pipeline.problems.machines.env.simulator.rules import players
from pipeline.problems.machines.env.simulator.state import Rules, State
from pipeline.problems.machines.env.teachers import TEACHERS
from pipeline.simulation.compiled import Span, inlined, threaded
from pipeline.simulation.results import jobset_means, percentile
from pipeline.simulation.rollout import play_compiled


def evolution(
    network: ActorCritic, task: Task, config: MachinesEvolution, memory: Memory | None = None
) -> Iterator[Update]:
    """Move a linear network's weights towards candidates of low cost, one generation per update."""
    memory = memory or Memory()
    recipe = task.recipe_for(EvolutionRecipe)
    if not isinstance(network, Linear):
        raise TypeError(f"expected a linear network, got {type(network).__name__}")
    start = deepcopy(network)
    memory.keep(start=start)  # a resumed search repeats its generations from the first weights
    search = Evolution(weights_in(start), recipe.spread, recipe.population, task.seed, recipe.averaged)
    memory.keep(evolution=search)
    for step in range(memory.done + 1, config.updates + 1):
        jobsets = task.draw(step, config.jobsets)
        base = task.begin(jobsets)
        play_rule(base, TEACHERS[config.base])
        candidates = search.ask()
        tried = task.begin(jobsets * len(candidates))
        play_candidates(network, tried, candidates)
        cost = costs(tried, base, task, config.tail, network.shape.unit)
        search.tell(cost)
        set_weights(network, search.mean)
        yield Update(step, {"cost": float(cost.mean()), "best_cost": float(cost.min())})


def play_rule(simulator: Simulator, rule: CompiledRule) -> None:
    """Play every episode to its end with a compiled rule that uses no random draws."""
    number = np.arange(simulator.jobs.episodes)
    key = keys(0, number, np.zeros_like(number))
    for _ in play_compiled(simulator, players([rule] * len(key), key)):
        pass


LinearWeights = tuple[FloatArray, FloatArray, FloatArray]  # [B] rows each: weights of jobs, of pairs, of void


def play_candidates(network: Linear, simulator: Simulator, candidates: FloatArray) -> None:
    """Let every candidate [C, W] play greedily to the end, each in an equal number of consecutive episodes."""
    each, rows, shape = simulator.jobs.episodes // len(candidates), simulator.rows, network.shape
    expanded = np.repeat(candidates.astype(np.float32), each, axis=0)  # float32, as in the network
    parts = np.split(expanded, np.cumsum([len(network.of_job), len(network.of_pair)]), axis=1)
    weights, view = tuple(np.ascontiguousarray(part) for part in parts), simulator.views(len(rows))
    simulator.run_kernel(_play, rows, view, empty_features(view, shape), weights, shape.unit, shape.void)


@threaded(lambda s, rules, rows, *_: len(rows))
def _play(
    span: Span, s: State, rules: Rules, rows: IntArray, view: Observation, to: Features, weights: LinearWeights,
    unit: float, void: bool,
) -> int:  # fmt: skip
    for i in range(*span):
        _play_one(s, rules, rows[i], view, to, weights, unit, void, i)
    return span[1] - span[0]


@inlined
def _play_one(
    s: State, rules: Rules, b: int, view: Observation, to: Features, weights: LinearWeights, unit: float, void: bool,
    i: int,
) -> None:  # fmt: skip
    while not s.done[b]:
        write_view(s, rules, b, view, i)
        fill_one(view, to, i, unit, void)
        apply_action(s, rules, b, _best(view, to, weights, b, i))


@inlined
def _best(view: Observation, to: Features, weights: LinearWeights, b: int, i: int) -> int:
    """Return the legal action with the highest score; of equals, the lowest."""
    of_job, of_pair, of_void = weights
    machines, chosen, best = view.legal.shape[2], -1, -np.inf
    for m in range(view.legal.shape[1]):
        score = _sum(to.job[i, m], of_job[b]) if view.nodes[i, m] else 0.0
        for k in range(machines):
            if view.legal[i, m, k]:
                of_both = score + _sum(to.pair[i, m, k], of_pair[b])
                if of_both > best:
                    chosen, best = m * machines + k, of_both
    last = view.legal.shape[1] * machines
    return int(last if to.may[i, last] and of_void[b, 0] > best else chosen)


@inlined
def _sum(features: FloatArray, weights: FloatArray) -> float:
    total = 0.0
    for f in range(weights.shape[0]):
        total += features[f] * weights[f]
    return total


def costs(tried: Simulator, base: Simulator, task: Task, tail: float, unit: float) -> FloatArray:
    """Return the cost of each candidate [C], as defined above.

    Args:
        tried: finished episodes of all candidates; each candidate played the jobsets of `base` in a row.
        base: finished episodes of the rule.
        task: for its loads, through which the jobsets cycle, and its objective.
        tail: weight of the tail.
        unit: time that is added to both waits, so that their ratio is 1 where both are 0.
    """
    found, usual = _measures(tried, task.objective), _measures(base, task.objective)
    loads, count = len(task.loads), len(usual[0])
    ratios = []
    for value, other, more in zip(found, usual, (0.0, unit, unit), strict=True):
        mine = value.reshape(-1, count)
        by_load = [(mine[:, k::loads].mean(axis=1) + more) / (other[k::loads].mean() + more) for k in range(loads)]
        ratios.append(np.mean(by_load, axis=0))
    return np.asarray(ratios[0] + tail * (ratios[1] + ratios[2]) / 2)


def _measures(simulator: Simulator, objective: str) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return mean cost, 99th percentile of waits and longest wait of the measured jobs of each episode [B]."""
    jobs, placed = measured_part(simulator.jobs, simulator.placed(), simulator.machines)
    found = outcome(jobs, placed)
    value = found.finish - jobs.arrival if objective == "completion_time" else getattr(found, objective)
    wait = found.wait[np.lexsort((found.wait, jobs.episode))]
    return jobset_means(jobs, value), percentile(wait, jobs.first, 0.99), wait[jobs.first[1:] - 1]


def weights_in(network: Linear) -> FloatArray:
    """Return the weights of jobs, pairs and void, concatenated."""
    parts = (network.of_job, network.of_pair, network.void)
    return np.concatenate([part.detach().numpy() for part in parts]).astype(np.float64)


def set_weights(network: Linear, value: FloatArray) -> None:
    """Set the weights of jobs, pairs and void."""
    parts = (network.of_job, network.of_pair, network.void)
    edges = np.cumsum([len(part) for part in parts])[:-1]
    with torch.no_grad():
        for part, new in zip(parts, np.split(value.astype(np.float32), edges), strict=True):
            part.copy_(torch.from_numpy(new))
