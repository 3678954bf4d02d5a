"""Windows of endless streams: the state carries on, and what a decision brings beyond the window is not lost.

A stream begins empty and is played by the policy as it is, up to a step that is drawn. From there its state is copied;
the copies, with the same jobs to come, are played by chance. The decisions of the first steps, the window, are learned.
What they bring is counted on for more steps, in which the copies are only played: the return of a decision is the sum
of the rewards up to the same step for all copies, of which the mean of the others is taken away. Their common average
reward falls out of that difference (an average-reward formulation with a finite horizon; Sutton and Barto 2018, 10.3).
"""

from typing import NamedTuple

import numpy as np

from pipeline.config import StreamWindows
from pipeline.core import Cluster, FloatArray, JobSet, batch, keys
from pipeline.policies.compiled_sets import Weights
from pipeline.simulator.batched import Batched
from pipeline.training.rolling import Played, Roller
from pipeline.training.task import Task

OWN = 1  # place of the episode's key that plays the stream up to the window; the copies have the next ones


class Lesson(NamedTuple):
    """Decisions, and the rewards of the steps that count for them."""

    played: Played
    rewards: FloatArray  # [B, steps]
    first: int  # step of the first of them


def windows(task: Task, config: StreamWindows, weights: Weights, update: int, episodes: int, number: int) -> Lesson:
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
    jobsets = [_draw(task, config, update * config.windows + k, end) for k in range(config.windows)]
    slots = config.slots[update % len(config.slots)]
    cluster: Cluster = task.cluster._replace(slots=slots)
    place = number + np.arange(config.windows)
    simulator = Batched(batch(jobsets), cluster, end + 1, task.objective, skip_forced=True)
    Roller(simulator, weights, keys(task.seed, place, np.zeros_like(place))).play(first)
    copies = simulator.fork(np.repeat(np.arange(config.windows), episodes))
    key = keys(task.seed, np.repeat(place, episodes), np.tile(OWN + np.arange(episodes), config.windows))
    roller = Roller(copies, weights, key)
    played = roller.keep(first + config.steps)
    roller.play(end)
    return Lesson(played, copies.rewards[:, first:end], first)


def _draw(task: Task, config: StreamWindows, number: int, steps: int) -> JobSet:
    return task.stream("fresh", config.loads[number % len(config.loads)], number, steps)
