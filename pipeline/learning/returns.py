"""Returns, baselines and advantages: pure functions of rewards."""

import numpy as np

from pipeline.core.types import FloatArray, IntArray


def discounted(rewards: FloatArray, gamma: float) -> FloatArray:
    """Return the discounted sum of future rewards along the last axis.

    >>> discounted(np.array([1.0, 0.0, 2.0]), gamma=0.5)
    array([1.5, 1. , 2. ])
    """
    returns = np.array(rewards, dtype=float)
    for t in range(returns.shape[-1] - 2, -1, -1):
        returns[..., t] += gamma * returns[..., t + 1]
    return returns


def leave_one_out(returns: FloatArray, episodes: int) -> FloatArray:
    """Return each episode's return minus the mean of the jobset's other episodes at the same simulated time.

    Finished episodes count as 0 (Kool, van Hoof, Welling 2019, at equal time). In the returns [B, steps], the
    `episodes` episodes of each jobset are adjacent.

    >>> leave_one_out(np.array([[4.0], [2.0], [0.0]]), episodes=3).ravel()
    array([ 3.,  0., -3.])
    """
    grouped = returns.reshape(-1, episodes, returns.shape[-1])
    others = (grouped.sum(axis=1, keepdims=True) - grouped) / (episodes - 1)
    return np.asarray((grouped - others).reshape(returns.shape))


def decision_baseline(returns: FloatArray, jobset: IntArray, index: IntArray) -> FloatArray:
    """Return the mean return [D] at the same decision of the same jobset (DeepRM, Figure 3).

    `jobset` [D] is that of each decision, `index` [D] its place among the decisions of its episode.

    >>> decision_baseline(np.array([4.0, 2.0, 1.0]), np.array([0, 0, 0]), np.array([0, 0, 1]))
    array([3., 3., 1.])
    """
    place = jobset * (int(index.max()) + 1) + index
    total = np.bincount(place, weights=returns)
    return np.asarray((total / np.maximum(np.bincount(place), 1))[place])


def generalised_advantage(
    rewards: FloatArray, value: FloatArray, length: IntArray, gamma: float, trace: float
) -> FloatArray:
    """Return generalised advantage estimates [B, turns] (Schulman et al. 2016, equation 16).

    Rewards [B, turns] are 0 from each episode's length [B] on; values [B, turns + 1] from there on count as 0. `gamma`
    is the discount of one decision. `trace` is lambda: 0 gives the one-step error, 1 the return less the value.

    >>> generalised_advantage(np.array([[1.0, 2.0]]), np.array([[0.5, 1.0, 9.0]]), np.array([2]), 1.0, 1.0)
    array([[2.5, 1. ]])
    """
    turns = rewards.shape[1]
    running = np.arange(turns + 1)[None] < length[:, None]
    value = np.where(running, value, 0.0)
    error = rewards + gamma * value[:, 1:] - value[:, :-1]
    gain = np.zeros_like(rewards)
    last = np.zeros(len(rewards))
    for t in range(turns - 1, -1, -1):
        last = np.where(running[:, t], error[:, t] + gamma * trace * last, 0.0)
        gain[:, t] = last
    return gain
