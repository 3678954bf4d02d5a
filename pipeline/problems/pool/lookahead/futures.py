"""Futures for looking ahead: training jobsets, by likely load, and several ways in which a network plays them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pipeline.core.types import FloatArray, IntArray, Observation, Policy, keys, uniform
from pipeline.lookahead.planner import Liking
from pipeline.problems.pool.env.nouns import JobSet, batch
from pipeline.problems.pool.env.simulator.trying import Futures

LEAST_RATE = 1e-9  # jobs per step
FOLDED = 1_000_003  # a prime: hardly any two different jobs get the same number


@dataclass(frozen=True)
class ArrivalModel:
    """Futures of several loads, equally many of each."""

    futures: Futures
    count: int  # number of futures of each load
    from_now: bool  # streams: arrivals count from the next step; else from the start of the episode
    span: int  # steps covered
    jobs_by_step: FloatArray  # [L, span + 1]  mean number of jobs that arrive before each step
    load: FloatArray  # [L]  percent; nan: unknown

    def known(self, slots: int) -> bool:
        """Return whether all jobs arrive at the start and fit into the slots, so that policies see them."""
        most = np.diff(self.futures.first).max(initial=0)
        return bool(not self.from_now and not self.futures.arrival.any() and most <= slots)

    def likely(self, now: IntArray, arrived: FloatArray, known: FloatArray) -> FloatArray:
        """Return the probability of each load [D, L] given the number of jobs so far, with equal priors.

        If the load is `known` [D], in percent, the nearest one is certain. Arrivals are modelled as Poisson: at a
        constant rate in a stream, else at the mean rates of the futures.
        """
        if self.from_now:
            expected = self.jobs_by_step[:, -1] / self.span * (now[:, None] + 1.0)
        else:
            expected = self.jobs_by_step[:, np.minimum(now + 1, self.span)].T
        expected = np.maximum(expected, LEAST_RATE)
        evidence = arrived[:, None] * np.log(expected) - expected
        weight = np.exp(evidence - evidence.max(axis=1, keepdims=True))
        away = np.abs(known[:, None] - self.load)  # nan where one of them is unknown
        nearest = np.arange(len(self.jobs_by_step)) == np.where(np.isnan(away), np.inf, away).argmin(axis=1)[:, None]
        guessed = np.isnan(away).all(axis=1, keepdims=True)
        return np.asarray(np.where(guessed, weight / weight.sum(axis=1, keepdims=True), nearest))

    def chosen(self, likely: FloatArray, count: int) -> IntArray:
        """Return the numbers [D, count] of futures for trials: each load has its share of them, spread evenly."""
        place = (np.arange(count) * _GOLDEN) % 1.0
        load = (np.cumsum(likely, axis=1)[:, None, :-1] <= place[None, :, None]).sum(axis=2)
        return np.asarray(load * self.count + np.arange(count) % self.count, dtype=np.int64)


_GOLDEN = (5**0.5 - 1) / 2  # its multiples modulo 1 are evenly spread, however many are taken


def arrival_model(by_load: Sequence[Sequence[JobSet]], from_now: bool, span: int) -> ArrivalModel:
    """Return the arrival model of some jobsets of each load."""
    flat = batch([jobs for group in by_load for jobs in group])
    means = [_arrived(group, span) for group in by_load]
    futures = Futures(flat.first, flat.arrival, flat.requested, flat.demand)
    load = np.array([np.nan if group[0].load is None else group[0].load for group in by_load])
    return ArrivalModel(futures, len(by_load[0]), from_now, span, np.stack(means), load)


def _arrived(group: Sequence[JobSet], span: int) -> FloatArray:
    count = sum(np.bincount(np.minimum(jobs.arrival, span), minlength=span + 1)[:span] for jobs in group)
    return np.concatenate([[0.0], np.cumsum(count) / len(group)])


class Ways(NamedTuple):
    """A network that continues in several ways if all jobs are known: unchanged, and with perturbed preferences.

    With all jobs known there is only one future, and the network's play is one guess at a good schedule; the best of
    several guesses counts (parallel rollout; Chang, Givan, Chong 2004). A way always changes the preference for a job
    by the same amount, so that it can repeat its play at the next decision. If every action is tried and no two jobs
    are equal, the plan is therefore no worse than the best of its ways.
    """

    liking: Liking


def draws_of(ways: int) -> FloatArray:
    """Return the draw in [0, 1) of each way; the first is 0, the unchanged network."""
    number = np.arange(ways)
    return np.where(number > 0, uniform(keys(0, number, np.zeros_like(number)), number), 0.0)


def stirred(liking: Liking) -> Policy:
    """Return the policy that takes the preferred action, with noise on the preference for each job.

    Gumbel noise on logits makes the preferred action a draw by the network's probabilities (Gumbel 1954). Here a job
    keeps its noise as long as `draws` stay the same; equal jobs have equal noise, and void has none.
    """

    def policy(view: Observation, draws: FloatArray) -> IntArray:
        liked = liking(view).astype(float)
        if draws.any():
            liked[:, : view.duration.shape[1]] += _more(view, draws)
        return np.asarray(liked.argmax(axis=1))

    return policy


def _more(view: Observation, draws: FloatArray) -> FloatArray:
    """Return the noise of each job [D, M], the same for jobs of equal duration and demand."""
    job = view.duration.astype(np.int64)
    for resource in range(view.demand.shape[2]):
        job = job * FOLDED + view.demand[:, :, resource]
    way = np.broadcast_to((draws * (1 << 53)).astype(np.int64)[:, None], job.shape)
    chance = uniform(keys(0, way.ravel(), job.ravel()), np.zeros(job.size, dtype=np.int64)).reshape(job.shape)
    more = -np.log(-np.log(np.clip(chance, 1e-12, 1 - 1e-12)))
    return np.asarray(np.where(draws[:, None] > 0, more, 0.0))
