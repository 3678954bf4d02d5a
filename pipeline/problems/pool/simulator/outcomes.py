"""What a schedule was worth to each job.

Slowdown is DeepRM's (section 3): time from arrival to completion over duration. A job that the step limit cut off is
counted as if it had finished there, a lower bound, and is flagged, so that no policy gains by leaving jobs undone.
"""

from typing import NamedTuple

import numpy as np

from pipeline.core import BoolArray, FloatArray, IntArray
from pipeline.problems.pool.nouns import JobBatch, Schedule


class Outcome(NamedTuple):
    """How every job fared."""

    finish: IntArray  # [J]  step after the last one; of an unfinished job the step limit
    slowdown: FloatArray  # [J]
    unfinished: BoolArray  # [J]


def outcome(batch: JobBatch, schedule: Schedule, step_limit: int) -> Outcome:
    """Return how every job fared, unfinished ones by their lower bound."""
    unfinished = schedule.finish < 0
    cut = np.maximum(step_limit, batch.arrival + 1)  # a job may be due after the cut
    finish = np.where(unfinished, cut, schedule.finish).astype(np.int64)
    slowdown = (finish - batch.arrival) / batch.duration
    return Outcome(finish, np.where(unfinished, np.maximum(slowdown, 1.0), slowdown), unfinished)
