"""Ways in which a network plays on where nothing more comes: as it is, and with its liking of every job stirred.

Where all jobs are known there is one future, and what the network would do in it is one guess at a good end; of several
guesses the best counts (parallel rollout; Chang, Givan, Chong 2004). Each way is a policy of its own: it likes a job so
much more or less whenever it meets it, so that what it has found behind an action it finds again at the next decision.
Where every action is tried and no two jobs are alike, the plan is therefore no worse than the best of its ways.
"""

from typing import NamedTuple

import numpy as np

from pipeline.core import FloatArray, IntArray, Observation, Policy, keys, uniform
from pipeline.lookahead.planner import Liking

FOLDED = 1_000_003  # a prime: of different jobs hardly any two have the same number


class Ways(NamedTuple):
    """A network that is asked, and may be stirred."""

    liking: Liking


def draws_of(ways: int) -> FloatArray:
    """Return the draw in [0, 1) that tells each way; 0, the first's, is the network as it is."""
    number = np.arange(ways)
    return np.where(number > 0, uniform(keys(0, number, np.zeros_like(number)), number), 0.0)


def stirred(liking: Liking) -> Policy:
    """Return the policy that takes the action it likes best, each job liked more or less by a draw that lasts.

    What is added to a job's logit is Gumbel's noise, which makes of the most liked action a draw by the network's own
    chances (Gumbel 1954), but that it lasts, is the same for jobs that are alike, and void has none.
    """

    def policy(view: Observation, draws: FloatArray) -> IntArray:
        liked = liking(view).astype(float)
        if draws.any():
            liked[:, : view.duration.shape[1]] += _more(view, draws)
        return np.asarray(liked.argmax(axis=1))

    return policy


def _more(view: Observation, draws: FloatArray) -> FloatArray:
    """Return how much more each job [D, M] is liked: the same for jobs of the same size and demand."""
    job = view.duration.astype(np.int64)
    for resource in range(view.demand.shape[2]):
        job = job * FOLDED + view.demand[:, :, resource]
    way = np.broadcast_to((draws * (1 << 53)).astype(np.int64)[:, None], job.shape)
    chance = uniform(keys(0, way.ravel(), job.ravel()), np.zeros(job.size, dtype=np.int64)).reshape(job.shape)
    more = -np.log(-np.log(np.clip(chance, 1e-12, 1 - 1e-12)))
    return np.asarray(np.where(draws[:, None] > 0, more, 0.0))
