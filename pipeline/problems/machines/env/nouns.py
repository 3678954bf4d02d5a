"""Jobs in continuous time, and the machines that they run on (Deepk8s, section 3).

Letters are those of `core`. Amounts of resources are whole thousandths of a unit (of a CPU, a GiB, a GPU), so that
taking and releasing them is exact. A job may request several nodes: it then holds its demand on each of that many
different machines, for the same time. A machine has a kind (a GPU model, say), and a job runs on certain kinds only.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pipeline.core.types import BoolArray, FloatArray, IntArray, KeyArray

DISPATCH = ("greedy", "blocking", "easy", "easy_within", "easy_dynamic", "easy_shortest")  # docs/systems/deepk8s.md
GREEDY, BLOCKING, EASY, EASY_WITHIN, EASY_DYNAMIC, EASY_SHORTEST = range(len(DISPATCH))
TOGETHER = (GREEDY, EASY_DYNAMIC, EASY_SHORTEST)  # handle simultaneous events at once; revise overrun estimates
SAME_TIME = 1e-12  # relative tolerance: estimated ends are sums of floats


class Machines(NamedTuple):
    """Machines and dispatch of a scenario, as the simulator needs them."""

    capacity: IntArray  # [K, R]  thousandths
    kind: IntArray  # [K]     0 .. 62
    slots: int  # M
    dispatch: int  # place in DISPATCH
    pause: float  # maximum time that passes after void if no event happens
    time_limit: float  # an episode is cut after this time; its unfinished jobs are counted
    stall: float = 0.0  # time without an arrival after which void is refused while nothing runs and a job fits
    # Jobs [first, after) by number that are measured: an episode is over once all of them have started, or when the
    # last of all jobs arrives. None: all are measured, and it is over when all have finished.
    measured: tuple[int, int] | None = None

    def counted(self, jobs: int) -> range:
        """Return the numbers of the measured jobs of an episode."""
        return range(jobs) if self.measured is None else range(*self.measured)


class Jobs(NamedTuple):
    """The jobs of one episode in order of arrival."""

    arrival: FloatArray  # [J]     time units, never falling
    duration: FloatArray  # [J]     run time, above 0
    estimate: FloatArray  # [J]     run time known to policies: exact, or the user's estimate; above 0
    demand: IntArray  # [J, R]  thousandths, on each of its nodes
    nodes: IntArray  # [J]     machines it runs on at once, at least 1
    kinds: KeyArray  # [J]     kinds of machines that it may run on, as bits


class JobsBatch(NamedTuple):
    """The jobs of B episodes end to end; episode b owns the jobs first[b] : first[b + 1]."""

    first: IntArray  # [B + 1]
    arrival: FloatArray  # [J]
    duration: FloatArray  # [J]
    estimate: FloatArray  # [J]
    demand: IntArray  # [J, R]
    nodes: IntArray  # [J]
    kinds: KeyArray  # [J]

    @property
    def episodes(self) -> int:
        """Return B."""
        return len(self.first) - 1

    @property
    def episode(self) -> IntArray:
        """Return the episode [J] that owns each job."""
        return np.repeat(np.arange(self.episodes), np.diff(self.first))


class Placed(NamedTuple):
    """Placement of every job of a batch, and the end of every episode."""

    start: FloatArray  # [J]  time; nan = never started
    finish: FloatArray  # [J]  time; nan = unfinished when the episode was cut
    machine: IntArray  # [J]  first of the job's machines; -1 = never started
    end: FloatArray  # [B]  time at which the episode was over
    busy: FloatArray  # [B]  shares of all capacity in use, mean over resources, summed over time


def end_to_end(jobs: Sequence[Jobs]) -> JobsBatch:
    """Concatenate the jobs of episodes."""
    first = np.concatenate([[0], np.cumsum([len(one.arrival) for one in jobs])]).astype(np.int64)
    kinds = (np.float64, np.float64, np.float64, np.int64, np.int64, np.uint64)
    columns = (
        np.ascontiguousarray(np.concatenate([one[k] for one in jobs]), dtype=kind) for k, kind in enumerate(kinds)
    )
    return JobsBatch._make([first, *columns])


def could_hold(demand: IntArray, kinds: KeyArray, kind: IntArray, free: IntArray) -> BoolArray:
    """Return which machines [K] of a kind and free amounts [K, R] could hold each job [J, K]."""
    can = np.asarray((kinds[:, None] >> kind.astype(np.uint64)[None]) & np.uint64(1) > 0)
    for r in range(free.shape[1]):  # by resource: `all` over so short an axis takes ten times as long
        can &= demand[:, r, None] <= free[None, :, r]
    return can


def check_jobs(jobs: Jobs, machines: Machines) -> None:
    """Refuse jobs that could never run to their end.

    Raises:
        ValueError: a time or an amount is out of range, or too few machines could ever hold a job.
    """
    if (np.diff(jobs.arrival) < 0).any():
        raise ValueError("jobs are not in order of arrival")
    for name, column in (("duration", jobs.duration), ("estimate", jobs.estimate), ("nodes", jobs.nodes)):
        if len(column) and not column.min() > 0:
            raise ValueError(f"job {int(column.argmin())} has {name} {column.min()}; expected more than 0")
    can = could_hold(jobs.demand, jobs.kinds, machines.kind, machines.capacity)
    short = np.flatnonzero(can.sum(axis=1) < jobs.nodes)
    if len(short):
        raise ValueError(
            f"job {short[0]} wants {jobs.demand[short[0]].tolist()} thousandths on {jobs.nodes[short[0]]} machines; "
            f"{can[short[0]].sum()} of {len(machines.kind)} can hold it"
        )
