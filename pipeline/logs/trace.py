"""A log of a real cluster, read and cleaned: its jobs in order of arrival, its machines, and what became of its rows.

Amounts are whole thousandths of a unit, as in the machines of a scenario: a job that asks for anything holds at least
one of them.
Every row of a log is a job, or is counted under `dropped` by the first thing that is wrong with it. What was changed
in rows that are jobs is counted under `repaired`.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from pipeline.core import THOUSANDTHS, BoolArray, FloatArray, IntArray, KeyArray

DAY_S = 86_400.0
YEAR_S = 365.25 * DAY_S
SHORTEST_S, SHORT = 1.0, "ran less than a second: 1 s taken"
CORES, GIB, GPUS, PERCENT = "cores", "GiB", "GPUs", "percent of a machine"  # units of resources


class Dropped(NamedTuple):
    """Rows of a log that were set aside or repaired, for one reason."""

    reason: str
    rows: int
    first_line: int  # of the file; 0 = not a matter of lines


class MachineTable(NamedTuple):
    """The machines of a log."""

    capacity: IntArray  # [K, R]  thousandths
    kind: IntArray  # [K]     place in the log's kind_names
    resources: tuple[str, ...]


class Trace(NamedTuple):
    """A cleaned log in order of arrival; jobs of one time stay as they were."""

    id: IntArray  # [J]     the log's own number of the job, else that of its data row, from 1
    submit_s: FloatArray  # [J]
    wait_s: FloatArray  # [J]     in the log's own history; nan = unknown
    run_s: FloatArray  # [J]     above 0
    estimate_s: FloatArray  # [J]     its user's, above 0; the run time where the log has none
    demand: IntArray  # [J, R]  thousandths, on each of its nodes
    nodes: IntArray  # [J]     machines it runs on at once
    user: IntArray  # [J]     -1 = unknown
    kinds: KeyArray  # [J]     bits of the kinds of machines that it may run on
    resources: tuple[str, ...]
    kind_names: tuple[str, ...]  # of machines; "" = without a GPU
    has_estimates: bool
    machines: MachineTable | None  # None: the log does not say
    dropped: tuple[Dropped, ...]
    repaired: tuple[Dropped, ...]
    units: tuple[str, ...]  # of the resources, a thousand thousandths each
    rows: int  # of the log: those that are jobs, and those that were dropped
    doubts: tuple[str, ...] = ()  # what is implausible in it

    def most_held(self, amount: FloatArray, first: int | None = None) -> float:
        """Return the most of an amount [J] that jobs held at one time of the log's own history; unknown waits are 0.

        Only the first jobs count, if a number of them is given.
        """
        start = self.submit_s + np.nan_to_num(self.wait_s)
        return held_at_once(start[:first], (start + self.run_s)[:first], amount[:first])

    @property
    def notes(self) -> list[str]:
        """Return, for people, how many jobs there are, and what became of the log's other rows."""
        days = (self.submit_s[-1] - self.submit_s[0]) / DAY_S
        found = f"{self.rows:,} rows, {len(self.id):,} jobs over {days:.1f} days"
        counted = (f"{what.reason} ({what.rows:,} rows)" for what in (*self.dropped, *self.repaired))
        return [found, *counted, *(f"doubtful: {doubt}" for doubt in self.doubts)]


def thousandths(amount: FloatArray) -> IntArray:
    """Return amounts in whole thousandths: the nearest, but at least one of what is above 0.

    >>> thousandths(np.array([0.0, 0.0001, 0.5, 1.2344])).tolist()
    [0, 1, 500, 1234]
    """
    nearest = np.floor(amount * THOUSANDTHS + 0.5).astype(np.int64)
    return np.asarray(np.where(amount > 0, np.maximum(nearest, 1), nearest))


def held_at_once(start: FloatArray, end: FloatArray, amount: FloatArray) -> float:
    """Return the most that was held at one time; what ends at a time is free at that time.

    >>> held_at_once(np.array([0.0, 5.0, 10.0]), np.array([10.0, 7.0, 11.0]), np.array([4.0, 3.0, 6.0]))
    7.0
    """
    began, over = np.argsort(start), np.argsort(end)
    given_back = np.concatenate([[0.0], np.cumsum(amount[over])])
    by_then = given_back[np.searchsorted(end[over], start[began], side="right")]
    return float((np.cumsum(amount[began]) - by_then).max(initial=0.0))


def fits_somewhere(trace: Trace) -> BoolArray:
    """Return which jobs [J] the log's own machines could run, if idle; all of them where it has no machines."""
    if trace.machines is None:
        return np.ones(len(trace.id), dtype=bool)
    return np.asarray(holders(trace.machines, trace.demand, trace.kinds) >= trace.nodes)


def holders(machines: MachineTable, demand: IntArray, kinds: KeyArray) -> IntArray:
    """Return how many machines could hold each job [J], if idle, by what it wants of each [J, R] and its kinds [J]."""
    shapes, count = np.unique(np.column_stack([machines.kind, machines.capacity]), axis=0, return_counts=True)
    able = np.zeros(len(kinds), dtype=np.int64)
    for shape, alike in zip(shapes, count, strict=True):
        holds = (kinds >> np.uint64(shape[0])) & np.uint64(1) > 0
        for r, capacity in enumerate(shape[1:]):
            holds &= demand[:, r] <= capacity
        able += alike * holds
    return able


class Sieve:
    """Counts the rows that are set aside or repaired: each one that is set aside once, for its first cause."""

    def __init__(self) -> None:
        self._dropped: dict[str, tuple[int, int]] = {}
        self._repaired: dict[str, tuple[int, int]] = {}

    def keep(self, line: IntArray, causes: Mapping[str, BoolArray]) -> BoolArray:
        """Return which rows can be used, and count each of the others once.

        Args:
            line: of each row in its file.
            causes: what may be wrong, in the order in which it is told, and of which rows it is true.
        """
        kept = np.ones(len(line), dtype=bool)
        for reason, wrong in causes.items():
            _count(self._dropped, reason, line[kept & wrong])
            kept &= ~wrong
        return kept

    def repair(self, reason: str, line: IntArray) -> None:
        """Count rows that were repaired."""
        _count(self._repaired, reason, line)

    def lasting(self, run_s: FloatArray, line: IntArray) -> FloatArray:
        """Return run times in which 0, which a log writes for less than its clock shows, is the shortest; count it."""
        self.repair(SHORT, line[run_s == 0])
        return np.where(run_s == 0, SHORTEST_S, run_s)

    def forget(self, reason: str) -> None:
        """Take back what turned out to be no matter of repair."""
        self._repaired.pop(reason, None)

    @property
    def dropped(self) -> tuple[Dropped, ...]:
        """Return what was set aside."""
        return _listed(self._dropped)

    @property
    def repaired(self) -> tuple[Dropped, ...]:
        """Return what was repaired."""
        return _listed(self._repaired)


def _count(counted: dict[str, tuple[int, int]], reason: str, line: IntArray) -> None:
    # A cause is entered when it is first looked for, so that causes are told in their order, however rare.
    rows, first = counted.setdefault(reason, (0, 0))
    if len(line):
        counted[reason] = (rows + len(line), first or int(line.min()))


def _listed(counted: Mapping[str, tuple[int, int]]) -> tuple[Dropped, ...]:
    return tuple(Dropped(reason, rows, first) for reason, (rows, first) in counted.items() if rows)
