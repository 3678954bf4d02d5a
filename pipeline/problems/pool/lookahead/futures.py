"""What may come, as far as a policy can know: training jobsets of the scenario, and which load it looks like."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.core import FloatArray, IntArray
from pipeline.problems.pool.nouns import JobSet, batch
from pipeline.problems.pool.simulator.compiled.trying import Futures

LEAST_RATE = 1e-9  # jobs a step


@dataclass(frozen=True)
class ArrivalModel:
    """Futures of several loads, as many of each."""

    futures: Futures
    count: int  # of each load
    from_now: bool  # streams: they begin with the next step; else they have the clock of the scenario
    span: int  # steps that they cover
    jobs_by_step: FloatArray  # [L, span + 1]  mean number of jobs that arrive before each step
    load: FloatArray  # [L]  percent; nan: not known

    def known(self, slots: int) -> bool:
        """Return whether nothing comes behind the jobs that are there at the start, and slots show them all."""
        most = np.diff(self.futures.first).max(initial=0)
        return bool(not self.from_now and not self.futures.arrival.any() and most <= slots)

    @property
    def loads(self) -> int:
        """Return L."""
        return len(self.jobs_by_step)

    def likely(self, now: IntArray, arrived: FloatArray, known: FloatArray) -> FloatArray:
        """Return how likely each load is [D, L], given how many jobs arrived so far; before that all are equally so.

        Where the load is `known` [D], in percent, it is the nearest. Arrivals are taken to be Poisson: a stream's at
        the same rate for ever, of others what the futures show.
        """
        if self.from_now:
            expected = self.jobs_by_step[:, -1] / self.span * (now[:, None] + 1.0)
        else:
            expected = self.jobs_by_step[:, np.minimum(now + 1, self.span)].T
        expected = np.maximum(expected, LEAST_RATE)
        evidence = arrived[:, None] * np.log(expected) - expected
        weight = np.exp(evidence - evidence.max(axis=1, keepdims=True))
        away = np.abs(known[:, None] - self.load)  # nan where one of them is not known
        nearest = np.arange(self.loads) == np.where(np.isnan(away), np.inf, away).argmin(axis=1)[:, None]
        guessed = np.isnan(away).all(axis=1, keepdims=True)
        return np.asarray(np.where(guessed, weight / weight.sum(axis=1, keepdims=True), nearest))

    def chosen(self, likely: FloatArray, count: int) -> IntArray:
        """Return the futures [D, count] to try actions against: each load has its share of them, spread evenly."""
        place = (np.arange(count) * _GOLDEN) % 1.0
        load = (np.cumsum(likely, axis=1)[:, None, :-1] <= place[None, :, None]).sum(axis=2)
        return np.asarray(load * self.count + np.arange(count) % self.count, dtype=np.int64)


_GOLDEN = (5**0.5 - 1) / 2  # its multiples lie evenly in [0, 1), however many are taken


def arrival_model(by_load: Sequence[Sequence[JobSet]], from_now: bool, span: int) -> ArrivalModel:
    """Return what some jobsets of each load show."""
    flat = batch([jobs for group in by_load for jobs in group])
    means = [_arrived(group, span) for group in by_load]
    futures = Futures(flat.first, flat.arrival, flat.requested, flat.demand)
    load = np.array([np.nan if group[0].load is None else group[0].load for group in by_load])
    return ArrivalModel(futures, len(by_load[0]), from_now, span, np.stack(means), load)


def _arrived(group: Sequence[JobSet], span: int) -> FloatArray:
    count = sum(np.bincount(np.minimum(jobs.arrival, span), minlength=span + 1)[:span] for jobs in group)
    return np.concatenate([[0.0], np.cumsum(count) / len(group)])
