"""Types of one pooled cluster that is scheduled in steps: cluster, jobs, compact observations, schedules.

Letters are those of `core`.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pipeline.core.config import PoolScenario
from pipeline.core.types import BoolArray, FloatArray, IntArray, Observation, TimeArray, legal_actions


class Cluster(NamedTuple):
    """The cluster of a scenario."""

    capacity: tuple[int, ...]  # [R]  units of each resource
    horizon: int  # T
    slots: int  # M
    backlog: int  # number of jobs that the image of the backlog can show
    place_ahead: bool  # may a job be given a start later than now?
    stall: int | None = None  # steps without an arrival after which a waiting job must start; None: the horizon
    arrivals_end: int | None = None  # step at which arrivals end; None: unknown to policies
    load: float | None = None  # load in percent, for jobsets without their own; None: unknown
    # An episode ends once all jobs that arrive in [first, after) have started; None: once all have finished.
    measured: tuple[int, int] | None = None

    @classmethod
    def of(cls, scenario: PoolScenario, trained: bool = True) -> "Cluster":
        """Return the cluster of a scenario for trained policies, or for heuristics."""
        units, ahead = tuple(scenario.resources.values()), scenario.place_ahead
        size = (scenario.horizon, scenario.slots, scenario.backlog, trained if ahead == "agents" else ahead)
        return cls(units, *size, scenario.stall, scenario.arrivals_end, measured=scenario.measured)

    @property
    def stalled_after(self) -> int:
        """Return the steps without an arrival after which an idle cluster must start a job that fits."""
        return self.horizon if self.stall is None else self.stall


class JobSet(NamedTuple):
    """The jobs of one episode in order of arrival."""

    arrival: IntArray  # [J]     step of arrival, ascending
    duration: IntArray  # [J]     steps, at least 1
    demand: IntArray  # [J, R]  units held while running
    estimate: IntArray | None = None  # [J]     requested steps, at least 1; None: run times are known
    load: float | None = None  # load in percent; None: unknown to policies

    @property
    def requested(self) -> IntArray:
        """Return the run times [J] known to policies, in steps: estimates, if there are any."""
        return self.duration if self.estimate is None else self.estimate


class JobBatch(NamedTuple):
    """The jobsets of B episodes end to end; episode b owns the jobs first[b] : first[b + 1]."""

    first: IntArray  # [B + 1]
    arrival: IntArray  # [J]
    duration: IntArray  # [J]
    demand: IntArray  # [J, R]
    estimate: IntArray | None = None  # [J]  None: run times are known
    load: FloatArray | None = None  # [B]  in percent; nan: unknown to policies

    @property
    def requested(self) -> IntArray:
        """Return the run times [J] known to policies, in steps: estimates, if there are any."""
        return self.duration if self.estimate is None else self.estimate

    @property
    def episodes(self) -> int:
        """Return B."""
        return len(self.first) - 1

    @property
    def episode(self) -> IntArray:
        """Return the episode [J] that owns each job."""
        return np.repeat(np.arange(self.episodes), np.diff(self.first))

    def take(self, episodes: IntArray) -> "JobBatch":
        """Return the batch of some episodes, in that order; repetitions are allowed.

        >>> one, other = (JobSet(np.array([k]), np.array([1]), np.array([[1]])) for k in (4, 7))
        >>> batch([one, other]).take(np.array([1, 1])).arrival
        array([7, 7])
        """
        length = np.diff(self.first)[episodes]
        first = np.concatenate([[0], np.cumsum(length)]).astype(np.int64)
        rows = np.arange(first[-1]) + np.repeat(self.first[episodes] - first[:-1], length)
        estimate = None if self.estimate is None else self.estimate[rows]
        load = None if self.load is None else self.load[episodes]
        return JobBatch(first, self.arrival[rows], self.duration[rows], self.demand[rows], estimate, load)


class CompactObservation(NamedTuple):
    """D observations of one machine, as an image shows them, and the legal actions; compact, for storing millions.

    In the default scenario, each has 70 + 8 + 11 bytes. `cells` have the smallest type that holds capacity and horizon.
    """

    cells: IntArray  # [D, T * R + M * (1 + R)]  free units, row by row; then duration and demand, slot by slot
    rest: IntArray  # [D, 2]       jobs in the backlog; steps since the last arrival
    may: BoolArray  # [D, A]       the legal actions

    def take(self, rows: IntArray | slice) -> "CompactObservation":
        """Return some observations."""
        return CompactObservation(self.cells[rows], self.rest[rows], self.may[rows])


class Schedule(NamedTuple):
    """Outcome of every job of a batch, and of every episode."""

    start: IntArray  # [J]  first step of each job; -1 = never started
    finish: IntArray  # [J]  step after the job's last one; -1 = unfinished when the episode was cut
    withheld: IntArray  # [J]  steps that passed while the job was in a slot and fitted
    steps: IntArray  # [B]  length of each episode: its makespan, unless cut
    withheld_steps: IntArray  # [B]  steps in which at least one job was withheld
    used: FloatArray  # [B]  shares of capacity in use, summed over resources and steps


def batch(jobsets: Sequence[JobSet]) -> JobBatch:
    """Concatenate jobsets.

    >>> one = JobSet(np.array([0]), np.array([2]), np.array([[3, 1]]))
    >>> batch([one, one]).first
    array([0, 1, 2])
    """
    first = np.concatenate([[0], np.cumsum([len(jobs.arrival) for jobs in jobsets])]).astype(np.int64)
    fields = zip(*((jobs.arrival, jobs.duration, jobs.demand, jobs.requested) for jobs in jobsets), strict=True)
    # Always the same memory order: numba would compile kernels again for another one.
    arrival, duration, demand, requested = (
        np.ascontiguousarray(np.concatenate(each), dtype=np.int64) for each in fields
    )
    estimate = requested if any(jobs.estimate is not None for jobs in jobsets) else None
    load = np.array([np.nan if jobs.load is None else jobs.load for jobs in jobsets])
    return JobBatch(first, arrival, duration, demand, estimate, None if np.isnan(load).all() else load)


def repeat(jobsets: Sequence[JobSet], episodes: int) -> list[JobSet]:
    """Return every jobset `episodes` times in a row."""
    return [jobs for jobs in jobsets for _ in range(episodes)]


def cell_type(largest: int) -> type[np.unsignedinteger]:
    """Return the smallest type for cells up to `largest`."""
    return np.uint8 if largest <= np.iinfo(np.uint8).max else np.uint16


def compact(view: Observation) -> CompactObservation:
    """Return observations in compact form; a job longer than the horizon fills its block, as in the image."""
    count, _, steps, resources = view.free.shape
    slots = view.duration.shape[1]
    kind = cell_type(max(steps, int(view.capacity.max(initial=0))))
    cells = np.empty((count, steps * resources + slots * (1 + resources)), dtype=kind)
    cells[:, : steps * resources] = view.free[:, 0].reshape(count, -1)
    blocks = cells[:, steps * resources :].reshape(count, slots, 1 + resources)
    blocks[:, :, 0] = np.minimum(view.duration, steps)
    blocks[:, :, 1:] = view.demand
    cells[:, steps * resources :] = blocks.reshape(count, -1)
    rest = np.stack([view.backlog, view.since_arrival], axis=1).astype(np.int32)
    return CompactObservation(cells, rest, legal_actions(view))


def room(free: IntArray, demand: IntArray, duration: TimeArray) -> BoolArray:
    """Return whether jobs that start in each step of the horizon [B, M, T] fit until they end.

    Args:
        free: units [B, T, R] in each step.
        demand: units [B, M, R].
        duration: steps [B, M]; 0 = no job.
    """
    steps = free.shape[1]
    short = np.asarray((free[:, None] < demand[:, :, None]).any(axis=3))
    short_before = np.concatenate([np.zeros_like(short[:, :, :1], dtype=np.int64), short.cumsum(axis=2)], axis=2)
    end = np.arange(steps) + duration[:, :, None]
    until = np.take_along_axis(short_before, np.minimum(end, steps), axis=2)
    return np.asarray((until == short_before[:, :, :-1]) & (end <= steps) & (duration > 0)[:, :, None])
