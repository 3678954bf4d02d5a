"""Expert iteration: some decisions are taken in every way there is, and the network learns from all ways at once.

After Anthony, Tian, Barber 2017 (and rollouts: Bertsekas, Tsitsiklis, Wu 1997): the expert is the network itself, which
tries each action and plays on (`branching`). The first updates are those of `mixture`; then an update plays fresh
jobsets and windows of streams once, by chance, and at some decisions, drawn by the seed, tries each action.

With p the chances of a decision's actions and q their returns, the expected return is the sum of p q, and its
derivative by logit j is p_j (q_j - sum of p q): no action is drawn, so that none has to be tried by luck. Returns are
scaled as advantages of `mixture` are: of short runs as shares of what the jobset costs, of a window in units of its own
deviation; then all in units of their deviation. The entropy term is that of `loss`.

Departures from the paper: no tree, but one action and play behind it; a policy gradient, not a copy of the best
action, for what one future shows is mostly chance; the jobs to come are the jobset's own (`branching` says why that is
no leak).
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import torch

from pipeline.config import Expert, Recipe
from pipeline.core import BoolArray, FloatArray, IntArray, keys
from pipeline.learning.memory import Memory
from pipeline.learning.update import Update
from pipeline.problems.pool.networks.loss import Loss
from pipeline.problems.pool.networks.sets import Sets
from pipeline.problems.pool.nouns import Cluster, batch
from pipeline.problems.pool.simulator.compiled.batch import Batched
from pipeline.problems.pool.training.branching import Beyond, Branches, Walk, branches
from pipeline.problems.pool.training.mixture import LEAST, MOST_JOBSETS, TINY, Learned, by_chance, take_step
from pipeline.problems.pool.training.rolling import NEVER, Roller
from pipeline.problems.pool.training.task import JOBSETS, Task

WALK, WAY = 0, 1  # of an episode's keys: what plays it, and what plays a stream up to its window


def expert(network: Sets, task: Task, config: Expert, memory: Memory | None = None) -> Iterator[Update]:
    """Improve a network by what all actions of some decisions would have brought, one update at a time."""
    memory, recipe = memory or Memory(), task.recipe
    optimizer = torch.optim.Adam(network.parameters(), lr=recipe.learning_rate)
    memory.keep(optimizer=optimizer)
    for step in range(memory.done + 1, config.updates + 1):
        optimizer.zero_grad()
        learn = by_chance if step <= config.begins else _by_trying
        learned = learn(network, task, config, step)
        if learned.decisions:
            share = (config.updates - step + 1) / config.updates if recipe.falling else 1.0
            take_step(network, optimizer, learned.decisions, recipe, share, step)
        yield Update(step, learned.metrics)


def _by_trying(network: Sets, task: Task, config: Expert, step: int) -> Learned:
    """Add the gradient of what was tried to the network's."""
    rng, parts = np.random.default_rng([task.seed, step]), dict[str, Branches | None]()
    if config.jobsets:
        parts["short_return"] = _short(network, task, config, step, rng)
    if config.streams is not None:
        parts["stream_return"] = _stream(network, task, config, step, rng)
    entropy, stands_for, returns = 0.0, 0.0, dict[str, float]()
    for kind, found in parts.items():
        returns[kind if len(parts) > 1 else "mean_return"] = 0.0 if found is None else _mean(found)
        if found is not None:
            gain = gains(found, task.recipe, apart=kind == "stream_return")
            entropy += _add_gradient(network, found, gain, task.recipe.entropy)
            stands_for += float(found.weight.sum())
    count = sum(len(found.episode) for found in parts.values() if found is not None)
    metrics = {"entropy": entropy / max(stands_for, TINY), "decisions": float(count), **returns}
    return Learned(stands_for, metrics)


def _mean(found: Branches) -> float:
    """Return what the episodes bring in the mean, as far as their decisions tell."""
    return float(np.average(found.before + (found.chance * found.returns).sum(axis=1), weights=found.weight))


def _short(network: Sets, task: Task, config: Expert, step: int, rng: np.random.Generator) -> Branches | None:
    """Play the short runs of an update, and try."""
    drawn = JOBSETS[task.recipe.jobsets](task, config.jobsets)(step)
    simulator = Batched(batch(drawn), task.cluster, task.step_limit, task.objective, skip_forced=True)
    place = step * MOST_JOBSETS + np.arange(len(drawn))
    walk = Walk(simulator, network, keys(task.seed, place, np.full_like(place, WALK)))
    return _tried(walk, network, config, config.every, NEVER, Beyond(), rng)


def _stream(network: Sets, task: Task, config: Expert, step: int, rng: np.random.Generator) -> Branches | None:
    """Play the windows of an update, which begin as those of `mixture` do, and try."""
    asked = config.streams
    assert asked is not None
    first = int(np.random.default_rng([task.seed, step]).integers(asked.latest + 1))
    end, numbers = first + asked.steps + asked.beyond, range(step * asked.windows, (step + 1) * asked.windows)
    jobsets = [task.stream("fresh", asked.loads[k % len(asked.loads)], k, end) for k in numbers]
    cluster: Cluster = task.cluster._replace(slots=asked.slots[step % len(asked.slots)], arrivals_end=None)
    simulator = Batched(batch(jobsets), cluster, end + 1, task.objective, skip_forced=True)
    place = step * MOST_JOBSETS + config.jobsets + np.arange(asked.windows)
    Roller(simulator, network.compiled(), keys(task.seed, place, np.full_like(place, WAY))).play(first)
    by_load = asked.left_by_load or (1.0,) * len(asked.loads)
    times = np.array([by_load[k % len(asked.loads)] for k in numbers])
    beyond = Beyond(asked.beyond, (asked.left_job, asked.left_work), times)
    walk = Walk(simulator, network, keys(task.seed, place, np.full_like(place, WALK)))
    return _tried(walk, network, config, config.every_of_streams, first + asked.steps, beyond, rng)


def _tried(
    walk: Walk, network: Sets, config: Expert, every: int, until: int, beyond: Beyond, rng: np.random.Generator
) -> Branches | None:
    """Go on by 1 to 2 * every - 1 decisions, all equally likely, and try; None where there was nothing to try."""
    parts, decisions = [], int(rng.integers(2 * every - 1))
    while len(rows := walk.go_on(decisions, until)):
        draws = rng.random(len(rows))
        parts.append(branches(walk.simulator, network, rows, draws, config.unsure, config.actions, beyond))
        decisions = int(rng.integers(1, 2 * every))
    if not sum(len(part.episode) for part in parts):
        return None
    found = Branches.of(parts)
    return replace(found, weight=found.weight * every)  # or decisions of windows would count less than of short runs


def gains(found: Branches, recipe: Recipe, apart: bool) -> FloatArray:
    """Return by how much each action [D, A] is better than the network's own play, scaled; 0 of what was not tried.

    Args:
        found: what was tried.
        recipe: says whether gains are divided by their deviation.
        apart: is each episode's gain in units of its own deviation? Then what it cost before does not count.
    """
    mean = (found.chance * found.returns).sum(axis=1)
    cost = np.abs(mean if apart else mean + found.before)
    gain = np.where(found.tried, found.returns - mean[:, None], 0.0) / np.maximum(cost, TINY)[:, None]
    if apart:
        square = np.bincount(found.episode, weights=_square(found, gain))
        count = np.bincount(found.episode, weights=found.weight)
        gain = gain / (np.sqrt(square / np.maximum(count, TINY))[found.episode] + LEAST)[:, None]
    deviation = np.sqrt(_square(found, gain).sum() / found.weight.sum())
    return np.asarray(gain / (deviation + TINY) if recipe.normalise else gain)


def _square(found: Branches, gain: FloatArray) -> FloatArray:
    """Return the mean square of each decision's gains, times its weight."""
    return np.asarray(found.weight * (found.chance * gain**2).sum(axis=1))


def _add_gradient(network: Sets, found: Branches, gain: FloatArray, entropy_weight: float) -> float:
    """Add the gradient of the decisions' summed loss to the network's; return the sum of their entropies."""
    surprise = -np.log(np.where(found.tried, np.maximum(found.chance, TINY), 1.0))
    entropy = (found.chance * surprise).sum(axis=1)
    wanted = found.chance * (gain + entropy_weight * (surprise - entropy[:, None])) * found.weight[:, None]
    decision, action, share = as_taken(wanted, found.chance, found.tried)
    among = found.observed._replace(may=found.tried)
    network.add_gradient(among.take(decision), Loss(action, share, masked=True, weight=0.0))
    return float((found.weight * entropy).sum())


def as_taken(wanted: FloatArray, chance: FloatArray, tried: BoolArray) -> tuple[IntArray, IntArray, FloatArray]:
    """Return decisions that were taken, and their advantages, whose gradients by the logits add up to what is wanted.

    That of action a with advantage g is g (1[j = a] - p_j) by logit j (`loss`). What is wanted adds up to 0 over a
    decision's actions, so g = wanted + x p serves with any x: the one that leaves nothing of the likeliest action.

    Args:
        wanted: [D, A], ascending.
        chance: [D, A], p.
        tried: [D, A], the actions there are.
    """
    row, likeliest = np.arange(len(chance)), chance.argmax(axis=1)
    share = wanted - (wanted[row, likeliest] / chance[row, likeliest])[:, None] * chance
    decision, action = np.nonzero(tried & (np.arange(chance.shape[1]) != likeliest[:, None]))
    return decision, action, share[decision, action]
