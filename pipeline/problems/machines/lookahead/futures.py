"""What may come, as far as a policy can know: consecutive jobs of the past, as they came."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.core import FloatArray, IntArray
from pipeline.problems.machines.lookahead.copying import Coming, shares
from pipeline.problems.machines.nouns import Jobs


@dataclass(frozen=True)
class ArrivalModel:
    """Jobs of the past, jobset behind jobset."""

    coming: Coming
    first: IntArray  # [B + 1]  of each jobset

    def places(self, draws: FloatArray, jobs: int) -> IntArray:
        """Return where in `coming` futures begin, given uniform draws: each has so many jobs of one jobset.

        >>> past = Jobs(np.arange(4.0), *[np.ones(4)] * 2, np.ones((4, 1)), *[np.ones(4)] * 2)
        >>> arrival_model([past, past]).places(np.array([0.0, 0.3, 0.6, 0.9]), jobs=2)
        array([1, 2, 5, 6])
        """
        count = np.maximum(np.diff(self.first) - jobs, 0)  # never the first: nobody knows what came before it
        before = np.concatenate([[0], np.cumsum(count)])
        place = (draws * before[-1]).astype(np.int64)
        jobset = np.searchsorted(before, place, side="right") - 1
        return np.asarray(self.first[jobset] + 1 + place - before[jobset])

    def reaches(self, jobs: int) -> bool:
        """Return whether any future has so many jobs."""
        return bool((np.diff(self.first) > jobs).any())


def arrival_model(past: Sequence[Jobs]) -> ArrivalModel:
    """Return what jobsets of the past show."""
    gap = np.concatenate([np.diff(jobs.arrival, prepend=jobs.arrival[:1]) for jobs in past])
    duration, estimate, demand, nodes, kinds = (np.concatenate([jobs[k] for jobs in past]) for k in range(1, 6))
    first = np.concatenate([[0], np.cumsum([len(jobs.arrival) for jobs in past])])
    return ArrivalModel(Coming(gap, estimate, demand, nodes, kinds, duration, *shares(estimate, duration)), first)
