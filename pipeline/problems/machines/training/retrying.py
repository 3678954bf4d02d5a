"""What other actions of recorded episodes would have cost: an episode is played again up to a decision, and on from it.

A simulator plays the same moves to the same state, so that a copy of an episode is its jobs and the actions until then.
All copies of a decision meet the jobset's own jobs. That is no leak: the network is shown none of them, before or
after, and nothing is chosen by them. They are one draw of the future that it must expect.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.core import BoolArray, FloatArray, IntArray
from pipeline.learning.doubt import chances, doubt, likeliest
from pipeline.learning.sampling import best
from pipeline.problems.machines.networks.acting import forward
from pipeline.problems.machines.networks.actor_critic import ActorCritic
from pipeline.problems.machines.networks.features import PLACE, Features, features
from pipeline.problems.machines.nouns import Jobs
from pipeline.problems.machines.training.task import Played, Task

LEAST = 1e-9  # chance below which an action is not counted with


@dataclass(frozen=True)
class Retried:
    """D decisions, and what their actions cost."""

    observed: Features  # of D observations
    tried: BoolArray  # [D, A]  actions that have a cost: tried, or as good as one that was; two or more
    chance: FloatArray  # [D, A]  of each among those, by the network as it was; 0 of others
    cost: FloatArray  # [D, A]  of the whole episode, if the network goes on greedily; 0 of others
    weight: FloatArray  # [D]  decisions that it stands for: 1 / the chance that it was tried


def retried(
    network: ActorCritic,
    task: Task,
    jobsets: Sequence[Jobs],
    played: Played,
    share: float,
    unsure: float,
    most: int,
    draws: FloatArray,
) -> Retried | None:
    """Return what the actions of some decisions cost; None where none of them is worth trying.

    A decision is tried by the chance share * (1 - sum of its actions' squared chances) / unsure, and counts for so many
    more: where the network is sure, the gradient is next to nothing.

    Args:
        network: plays on, greedily.
        task: of the jobsets.
        jobsets: of the episodes.
        played: the episodes, as they were recorded.
        share: of the decisions of which the network is as unsure as `unsure`, that are tried.
        unsure: from which on no more are tried.
        most: actions that are tried of a decision.
        draws: [D] in [0, 1) of all decisions: which are tried.
    """
    logits = forward(network, played.observed).astype(np.float64)
    like = alike(played.observed)
    tried = likeliest(logits, like, played.observed.may, most)
    chance = chances(logits, tried)
    kept = share * np.minimum(1.0, doubt(chance, like, LEAST) / unsure)
    some = np.flatnonzero(draws < kept)
    if not len(some):
        return None
    tried, like = tried[some], like[some]
    decision, action = np.nonzero(tried & (like == np.arange(like.shape[1])))
    table = np.zeros(tried.shape)
    table[decision, action] = _cost(network, task, jobsets, played, some[decision], action)
    cost = np.where(tried, np.take_along_axis(table, like, axis=1), 0.0)
    return Retried(played.observed.take(some), tried, chance[some], cost, 1.0 / kept[some])


def alike(observed: Features) -> IntArray:
    """Return for every action [D, A] the first legal one whose job and machine look the same; of illegal ones, itself.

    In which slot a job waits makes no difference. Of jobs that look the same it does not matter which starts. Machines
    that have as much free may differ in when they will have more; that is let go, or most of what is tried would be the
    same job on one machine after the other.
    """
    count, slots, machines = observed.pair.shape[:3]
    seen_of_job = np.delete(observed.job, PLACE, axis=2)
    job = np.broadcast_to(seen_of_job[:, :, None], (count, slots, machines, seen_of_job.shape[2]))
    machine = np.broadcast_to(observed.machine[:, None], (count, slots, machines, observed.machine.shape[2]))
    seen = np.concatenate([job, machine, observed.pair], axis=3).reshape(count, slots * machines, -1)
    found = np.tile(np.arange(slots * machines + 1), (count, 1))
    for d in range(count):
        legal = np.flatnonzero(observed.may[d, :-1])
        _, first, group = np.unique(seen[d, legal], axis=0, return_index=True, return_inverse=True)
        found[d, legal] = legal[first[group.ravel()]]
    return found


def _cost(
    network: ActorCritic, task: Task, jobsets: Sequence[Jobs], played: Played, decision: IntArray, action: IntArray
) -> FloatArray:
    """Return what C episodes cost [C] that are as recorded up to a decision, take an action, and go on greedily."""
    episode, turn = played.episode[decision], played.turn[decision]
    recorded = np.zeros((len(jobsets), played.turn.max() + 1), dtype=np.int64)
    recorded[played.episode, played.turn] = played.action
    copies, done = task.begin([jobsets[e] for e in episode]), np.zeros(len(decision), dtype=np.int64)
    while len(rows := copies.rows):
        move = recorded[episode[rows], np.minimum(done[rows], turn[rows])]
        move = np.where(done[rows] == turn[rows], action[rows], move)
        if len(on := np.flatnonzero(done[rows] > turn[rows])):
            observed = features(copies.observe(rows[on]), network.shape)
            move[on] = best(forward(network, observed), observed.may, True)
        copies.step(rows, move)
        done[rows] += 1
    return copies.cost.copy()
