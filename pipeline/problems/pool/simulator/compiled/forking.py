"""The state of copies of episodes, each to be played on by itself."""

import numpy as np

from pipeline.core import FloatArray, IntArray
from pipeline.problems.pool.nouns import JobBatch
from pipeline.problems.pool.simulator.compiled.state import State

OF_JOBS = ("arrival", "duration", "requested", "demand", "start", "withheld")
NUMBERS = ("slot_job", "queue", "to_come")  # of jobs, which are numbered anew


def forked(s: State, episodes: IntArray, jobs: JobBatch) -> State:
    """Return copies of some episodes, in that order; one may be named often.

    Args:
        s: of all episodes.
        episodes: their numbers.
        jobs: theirs.
    """
    moved = jobs.first[:-1] - s.first[episodes]
    each = np.repeat(moved, np.diff(jobs.first))
    rows = np.arange(jobs.first[-1]) - each
    fields = {name: value[episodes] for name, value in s._asdict().items() if value.shape[:1] == s.now.shape}
    fields |= {name: getattr(s, name)[rows] for name in OF_JOBS}
    for name in NUMBERS:
        number = fields[name]
        shift = moved.reshape(-1, *[1] * (number.ndim - 1))
        fields[name] = np.where(number >= 0, number + shift, number)
    fields |= {"first": jobs.first, "capacity": s.capacity, "arrived": _again(s.arrived, rows)}
    fields["running"] = s.running[rows] + each if len(s.running) else s.running
    fields |= {"legal": fields["fits_now"]} if s.legal is s.fits_now else {}
    fields |= {"requested": fields["duration"]} if s.requested is s.duration else {}
    return State(**fields)


def _again(arrived: FloatArray, rows: IntArray) -> FloatArray:
    """Return the sums over the jobs before each, of other jobs."""
    each = np.diff(arrived, axis=0)[rows]
    return np.concatenate([np.zeros((1, each.shape[1])), each.cumsum(axis=0)])
