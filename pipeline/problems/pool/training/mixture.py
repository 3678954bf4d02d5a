"""DeepRM3: REINFORCE over a mixture of short runs and windows of endless streams.

Every update plays fresh jobsets to their end and windows of streams (`windows`), each `episodes` times. The
advantage of a decision is its return less the mean of the jobset's other episodes at the same simulated time, so
scaled that all loads count alike: of short runs as a share of what the jobset costs in all, of a window in units of
its own standard deviation, for what a full queue costs is mostly none of the window's doing; then all by their
standard deviation.

A stream begins empty and is played by the policy as it is, up to a step that is drawn. From there its state is copied;
the copies, with the same jobs to come, are played by chance. The decisions of the first steps, the window, are learned.
What they bring is counted on for more steps, in which the copies are only played: the return of a decision is the sum
of the rewards up to the same step for all copies, and of what the jobs left then are expected to cost, of which the
mean of the others is taken away. Their common average reward falls out of that difference (an average-reward
formulation; Sutton and Barto 2018, 10.3).

What is left is valued by two numbers, in steps of what all jobs that wait cost on average: one for every waiting job,
one for every step of the whole cluster's work. docs/results/deeprm3/future.py of commit 06bbee34 measured them.
"""

from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch

from pipeline.config import Mixture, Recipe, ShortRunsAndStreams, StreamWindows
from pipeline.core import BoolArray, FloatArray, IntArray, keys
from pipeline.errors import UserError
from pipeline.learning.memory import Average, Memory
from pipeline.learning.returns import decision_baseline, discounted, leave_one_out
from pipeline.learning.update import Update
from pipeline.problems.pool.networks.compiled_sets import SetWeights
from pipeline.problems.pool.networks.loss import NOBODY, Loss
from pipeline.problems.pool.networks.sets import Sets
from pipeline.problems.pool.nouns import Cluster, JobBatch, batch, repeat
from pipeline.problems.pool.simulator.compiled.batch import Batched
from pipeline.problems.pool.training.rolling import Roller, Rollout
from pipeline.problems.pool.training.task import JOBSETS, Task

OWN = 1  # place of the episode's key that plays the stream up to the window; the copies have the next ones


class LearningBatch(NamedTuple):
    """Decisions, and the rewards of the steps that count for them."""

    played: Rollout
    rewards: FloatArray  # [B, steps]; of windows, the last is what the jobs left cost
    first: int  # step of the first of them
    apart: bool  # is each jobset's advantage in units of its own standard deviation?


def windows(
    task: Task, config: StreamWindows, weights: SetWeights, update: int, episodes: int, number: int
) -> LearningBatch:
    """Play the stream windows of an update.

    Args:
        task: what is learned.
        config: how many windows, how long, at what loads and with how many slots.
        weights: the network as it is.
        update: its number; start and jobs depend on nothing else.
        episodes: copies of each window.
        number: of the first random key.
    """
    first = int(np.random.default_rng([task.seed, update]).integers(config.latest + 1))
    end = first + config.steps + config.beyond
    numbers = range(update * config.windows, (update + 1) * config.windows)
    jobsets = [task.stream("fresh", config.loads[k % len(config.loads)], k, end) for k in numbers]
    slots = config.slots[update % len(config.slots)]
    cluster: Cluster = task.cluster._replace(slots=slots, arrivals_end=None)
    place = number + np.arange(config.windows)
    simulator = Batched(batch(jobsets), cluster, end + 1, task.objective, skip_forced=True)
    Roller(simulator, weights, keys(task.seed, place, np.zeros_like(place))).play(first)
    copies = simulator.fork(np.repeat(np.arange(config.windows), episodes))
    key = keys(task.seed, np.repeat(place, episodes), np.tile(OWN + np.arange(episodes), config.windows))
    roller = Roller(copies, weights, key)
    played = roller.keep(first + config.steps)
    roller.play(end)
    rewards = copies.rewards[:, first:end]
    by_load = config.left_by_load or (1.0,) * len(config.loads)
    times = [by_load[k % len(config.loads)] for k in numbers]
    rate = (rewards.mean(axis=1).reshape(-1, episodes).mean(axis=1) * times).repeat(episodes)
    after = rate * left(copies.jobs, copies.schedule().start, cluster, end, (config.left_job, config.left_work))
    return LearningBatch(played, np.concatenate([rewards, after[:, None]], axis=1), first, apart=True)


def left(jobs: JobBatch, start: IntArray, cluster: Cluster, now: int, costs: tuple[float, float]) -> FloatArray:
    """Return what the jobs [B] that are left are held to cost, in steps of what a step costs on average.

    Args:
        jobs: of all episodes, J.
        start: of each job [J]; -1 where it is not known yet.
        cluster: says what its whole work is.
        now: the step that is asked about; jobs to come do not count.
        costs: of a job that waits, and of each step of the whole cluster's work, begun or not.
    """
    share = (jobs.demand / np.array(cluster.capacity)).mean(axis=1)
    waits = (start < 0) | (start >= now)
    work = share * np.where(waits, jobs.duration, np.maximum(start + jobs.duration - now, 0))
    each = np.where(jobs.arrival < now, costs[0] * waits + costs[1] * work, 0.0)
    return np.asarray(np.bincount(jobs.episode, weights=each, minlength=jobs.episodes), dtype=np.float64)


MOST_JOBSETS = 100_000  # of an update; keeps the random keys of updates apart
TINY = 1e-9
LEAST = 0.01  # of the deviation that a window's advantages are measured by, so that next to none stay small


def mixture(network: Sets, task: Task, config: Mixture, memory: Memory | None = None) -> Iterator[Update]:
    """Improve a network by its own play, one update at a time."""
    memory, recipe = memory or Memory(), task.gradient
    optimizer = torch.optim.Adam(network.parameters(), lr=recipe.learning_rate)
    memory.keep(optimizer=optimizer)
    average, start = Average(network, recipe.average, memory), deepcopy(network)
    memory.keep(start=start)
    for step in range(memory.done + 1, config.updates + 1):
        average.begin()
        optimizer.zero_grad()
        left = (config.updates - step + 1) / config.updates
        learned = by_chance(network, task, config, step, recipe.entropy * (left if recipe.annealed else 1.0), start)
        if learned.decisions:  # else no job had to wait for another: nothing to learn from
            take_step(network, optimizer, learned.decisions, recipe, left if recipe.falling else 1.0, step)
        average.end()
        yield Update(step, learned.metrics)


@dataclass(frozen=True)
class Learned:
    """What an update has learned from, its gradient added to the network's."""

    decisions: float  # whose losses were summed
    metrics: dict[str, float]


def by_chance(
    network: Sets, task: Task, config: ShortRunsAndStreams, step: int, entropy_weight: float, start: Sets
) -> Learned:
    """Play the jobsets of an update by chance, and add the gradient of all decisions."""
    near, frozen = task.gradient.near, start.frozen()
    batches = list(_short(network, task, config, step))
    if config.streams is not None:
        number = step * MOST_JOBSETS + config.jobsets
        batches.append(windows(task, config.streams, network.compiled(), step, config.episodes, number))
    gains = [advantages(part, config.episodes, task.gradient) for part in batches]
    entropy = 0.0
    for part, gain in zip(batches, gains, strict=True):
        seen = part.played.observed
        first = chances(frozen(seen), seen.may) if near else NOBODY
        entropy += network.add_gradient(seen, Loss(part.played.action, gain, True, entropy_weight, near, first))
    decisions = sum(len(gain) for gain in gains)
    return Learned(decisions, _report(batches, decisions, entropy))


def chances(logits: FloatArray, may: BoolArray) -> FloatArray:
    """Return the chances [D, A] of the legal actions."""
    share = np.where(may, np.exp(logits - np.where(may, logits, -np.inf).max(axis=1, keepdims=True)), 0.0)
    return np.asarray(share / share.sum(axis=1, keepdims=True), dtype=np.float64)


def _short(network: Sets, task: Task, config: ShortRunsAndStreams, step: int) -> Iterator[LearningBatch]:
    """Play the short runs of an update."""
    if config.jobsets:
        drawn = JOBSETS[task.gradient.jobsets](task, config.jobsets)(step)
        simulator = Batched(
            batch(repeat(drawn, config.episodes)), task.cluster, task.step_limit, task.objective, skip_forced=True
        )
        place = np.repeat(step * MOST_JOBSETS + np.arange(len(drawn)), config.episodes)
        key = keys(task.seed, place, np.tile(np.arange(config.episodes), len(drawn)))
        played = Roller(simulator, network.compiled(), key).keep()
        yield LearningBatch(played, simulator.rewards[:, : int(simulator.now.max())], 0, apart=False)


def advantages(part: LearningBatch, episodes: int, recipe: Recipe) -> FloatArray:
    """Return the advantage [D] of each decision, in units of their standard deviation."""
    played, rewards = part.played, part.rewards
    if not len(played.action):
        return np.empty(0)
    returns = discounted(rewards, recipe.gamma)
    place = played.episode, played.now - part.first
    if recipe.baseline == "leave_one_out":
        gain = leave_one_out(returns, episodes)[place]
    else:
        index = played.turn if recipe.baseline == "decision" else place[1]
        gain = returns[place] - decision_baseline(returns[place], played.episode // episodes, index)
    jobset = played.episode // episodes
    cost = np.abs(rewards.sum(axis=1)).reshape(-1, episodes).mean(axis=1)
    gain = gain / np.maximum(cost[jobset], TINY)
    if part.apart:
        square = np.bincount(jobset, weights=gain**2) / np.maximum(np.bincount(jobset), 1)
        gain = gain / (np.sqrt(square)[jobset] + LEAST)
    return np.asarray(gain / (gain.std() + TINY) if recipe.normalise else gain)


def take_step(
    network: Sets, optimizer: torch.optim.Optimizer, decisions: float, recipe: Recipe, left: float, number: int
) -> None:
    """Follow the gradient of the mean over decisions; `left` is the share of the learning rate.

    Raises:
        UserError: it is not finite.
    """
    for weight in network.parameters():
        if weight.grad is not None:
            weight.grad /= decisions
    limit = float("inf") if recipe.clip is None else recipe.clip
    if not bool(torch.nn.utils.clip_grad_norm_(network.parameters(), limit).isfinite()):
        raise UserError(f"update {number}: the gradient is not finite; lower learning_rate, or set clip")
    for group in optimizer.param_groups:
        group["lr"] = recipe.learning_rate * left
    optimizer.step()


def _report(batches: Sequence[LearningBatch], decisions: int, entropy: float) -> dict[str, float]:
    kinds = ("short_return", "stream_return") if len(batches) > 1 else ("mean_return",)
    returns = {kind: float(part.rewards.sum(axis=1).mean()) for kind, part in zip(kinds, batches, strict=True)}
    return {"entropy": entropy / max(decisions, 1), "decisions": float(decisions), **returns}
