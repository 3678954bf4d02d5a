"""Windows of endless streams: the state carries on, and what a decision brings beyond the window is not lost.

A stream begins empty and is played by the policy as it is, up to a step that is drawn. From there its state is copied;
the copies, with the same jobs to come, are played by chance. The decisions of the first steps, the window, are learned.
What they bring is counted on for more steps, in which the copies are only played: the return of a decision is the sum
of the rewards up to the same step for all copies, and of what the jobs left then are expected to cost, of which the
mean of the others is taken away. Their common average reward falls out of that difference (an average-reward
formulation; Sutton and Barto 2018, 10.3).

What is left is valued by two numbers, in steps of what all jobs that wait cost on average: one for every waiting job,
one for every step of the whole cluster's work. docs/results/deeprm3/future.py measures them.
"""

from typing import NamedTuple

import numpy as np

from pipeline.config import StreamWindows
from pipeline.core import FloatArray, IntArray, keys
from pipeline.problems.pool.networks.compiled_sets import SetWeights
from pipeline.problems.pool.nouns import Cluster, JobBatch, batch
from pipeline.problems.pool.simulator.compiled.batch import Batched
from pipeline.problems.pool.training.rolling import Roller, Rollout
from pipeline.problems.pool.training.task import Task

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
