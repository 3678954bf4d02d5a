"""Advantages of recorded play."""

import numpy as np

from pipeline.core import FloatArray
from pipeline.learning.returns import generalised_advantage
from pipeline.problems.machines.training.task import Played


def by_critic(played: Played, gamma: float, trace: float, scale: float) -> tuple[FloatArray, FloatArray]:
    """Return advantages and the critic's targets [D], both in units of `scale`."""
    episodes, turns = len(played.cost), int(played.turn.max()) + 1
    length = np.bincount(played.episode, minlength=episodes)
    place = played.episode, played.turn
    spent, value = np.zeros((episodes, turns + 1)), np.zeros((episodes, turns + 1))
    spent[place] = played.spent
    spent[np.arange(episodes), length] = played.cost
    value[place] = played.value
    rewards = -np.diff(spent, axis=1) / scale
    rewards[np.arange(turns)[None] >= length[:, None]] = 0.0
    gain = generalised_advantage(rewards, value, length, gamma, trace)[place]
    return gain, gain + played.value


def by_others(played: Played, episodes: int) -> FloatArray:
    """Return how much less each decision's cost to come is than that of the jobset's other episodes at its time [D].

    The others' costs between their decisions are interpolated; an episode that is over has none to come (Kool, van
    Hoof, Welling 2019, at equal time: decision numbers of two episodes mean different times).
    """
    order = np.lexsort((played.turn, played.episode))
    first = np.concatenate([[0], np.cumsum(np.bincount(played.episode, minlength=len(played.cost)))])
    gain = np.empty(len(order))
    paths = []
    for b in range(len(played.cost)):
        mine = order[first[b] : first[b + 1]]
        times = np.concatenate([played.now[mine], [played.end[b]]])
        paths.append((times, np.concatenate([played.spent[mine], [played.cost[b]]])))
    for b in range(len(played.cost)):
        mine = order[first[b] : first[b + 1]]
        group = b - b % episodes
        others = [k for k in range(group, group + episodes) if k != b]
        to_come = np.mean([played.cost[k] - np.interp(played.now[mine], *paths[k]) for k in others], axis=0)
        gain[mine] = to_come - (played.cost[b] - played.spent[mine])
    return gain
