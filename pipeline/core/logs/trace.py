"""A log of a real cluster, read and cleaned: its jobs in order of arrival, its machines, and counts of its other rows.

Amounts are whole thousandths of a unit, as in the machines of a scenario; a job that wants anything holds at least one
of them. Every row of a log is a job, or is counted under `dropped` by its first fault. Changes to rows that are jobs
are counted under `repaired`.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline.core.types import ANY_KIND, THOUSANDTHS, BoolArray, FloatArray, IntArray, KeyArray
from pipeline.errors import UserError

DAY_S = 86_400.0
YEAR_S = 365.25 * DAY_S
DECADES_S = 20 * YEAR_S
SHORTEST_S, SHORT = 1.0, "ran less than a second: 1 s taken"
CORES, GIB, GPUS, PERCENT = "cores", "GiB", "GPUs", "percent of a machine"  # units of resources
UNSORTED = "not in order of arrival: sorted"
UNSET = "a time within a day of 0, decades before the others: unknown"

Columns = dict[str, Any]  # arrays by name
# Columns of a log without its demand, as in `Trace`, and values of those that a log may lack.
TYPES: Mapping[str, npt.DTypeLike] = {
    "id": np.int64,
    **dict.fromkeys(("submit_s", "wait_s", "run_s", "estimate_s"), np.float64),
    **{"nodes": np.int64, "user": np.int32, "kinds": np.uint64, "partition": np.int64, "group": np.int64},
}
UNKNOWN: Columns = {
    **{"wait_s": np.nan, "estimate_s": np.nan, "nodes": 1, "user": -1, "kinds": ANY_KIND, "partition": 0, "group": 0},
}


class Dropped(NamedTuple):
    """Rows of a log that were dropped or repaired, for one reason."""

    reason: str
    rows: int
    first_line: int  # of the file; 0 = the reason concerns no single line


class MachineTable(NamedTuple):
    """The machines of a log."""

    capacity: IntArray  # [K, R]  thousandths
    kind: IntArray  # [K]     index in the log's kind_names
    resources: tuple[str, ...]
    names: tuple[str, ...] = ()  # [K]  of a Slurm's nodes


class Trace(NamedTuple):
    """A cleaned log in order of arrival; simultaneous jobs keep their order."""

    id: IntArray  # [J]     the log's own number of the job, else that of its data row, from 1
    submit_s: FloatArray  # [J]
    wait_s: FloatArray  # [J]     in the log's own history; nan = unknown
    run_s: FloatArray  # [J]     above 0
    estimate_s: FloatArray  # [J]     by the user, above 0; the run time where the log has none
    demand: IntArray  # [J, R]  thousandths, on each of its nodes
    nodes: IntArray  # [J]     machines it runs on at once
    user: IntArray  # [J]     -1 = unknown
    kinds: KeyArray  # [J]     bits of the kinds of machines that it may run on
    partition: IntArray  # [J]     index in partition_names
    group: IntArray  # [J]     index in group_names
    resources: tuple[str, ...]
    kind_names: tuple[str, ...]  # of machines; "" = without a GPU
    has_estimates: bool
    machines: MachineTable | None  # None: unknown
    dropped: tuple[Dropped, ...]
    repaired: tuple[Dropped, ...]
    units: tuple[str, ...]  # of the resources
    rows: int  # of the log: jobs and dropped rows
    doubts: tuple[str, ...] = ()  # implausible signs
    partition_names: tuple[str, ...] = ("",)  # "a|b": the job waits in both
    group_names: tuple[tuple[str, str], ...] = (("", ""),)  # account and QOS

    def most_held(self, amount: FloatArray, first: int | None = None) -> float:
        """Return the largest total of an amount [J] held at one time in the log's own schedule; unknown waits are 0.

        `first` limits this to the first jobs.
        """
        start = self.submit_s + np.nan_to_num(self.wait_s)
        return held_at_once(start[:first], (start + self.run_s)[:first], amount[:first])

    @property
    def notes(self) -> list[str]:
        """Return lines about the number of jobs and the log's other rows."""
        days = (self.submit_s[-1] - self.submit_s[0]) / DAY_S
        found = f"{self.rows:,} rows, {len(self.id):,} jobs over {days:.1f} days"
        counted = (f"{what.reason} ({what.rows:,} rows)" for what in (*self.dropped, *self.repaired))
        return [found, *counted, *(f"doubtful: {doubt}" for doubt in self.doubts)]


def thousandths(amount: FloatArray) -> IntArray:
    """Return amounts in whole thousandths: the nearest, but at least one for amounts above 0.

    >>> thousandths(np.array([0.0, 0.0001, 0.5, 1.2344])).tolist()
    [0, 1, 500, 1234]
    """
    nearest = np.floor(amount * THOUSANDTHS + 0.5).astype(np.int64)
    return np.asarray(np.where(amount > 0, np.maximum(nearest, 1), nearest))


def held_at_once(start: FloatArray, end: FloatArray, amount: FloatArray) -> float:
    """Return the most held at one time; an amount is free at its end.

    >>> held_at_once(np.array([0.0, 5.0, 10.0]), np.array([10.0, 7.0, 11.0]), np.array([4.0, 3.0, 6.0]))
    7.0
    """
    began, over = np.argsort(start), np.argsort(end)
    released = np.concatenate([[0.0], np.cumsum(amount[over])])
    by_then = released[np.searchsorted(end[over], start[began], side="right")]
    return float((np.cumsum(amount[began]) - by_then).max(initial=0.0))


def fits_somewhere(trace: Trace) -> BoolArray:
    """Return which jobs [J] the log's own machines could run, if idle; all if it has no machines."""
    if trace.machines is None:
        return np.ones(len(trace.id), dtype=bool)
    return np.asarray(holders(trace.machines, trace.demand, trace.kinds) >= trace.nodes)


def holders(machines: MachineTable, demand: IntArray, kinds: KeyArray) -> IntArray:
    """Return the number of machines that could hold each job [J], if idle, by demand [J, R] and kinds [J]."""
    shapes, counts = np.unique(np.column_stack([machines.kind, machines.capacity]), axis=0, return_counts=True)
    able = np.zeros(len(kinds), dtype=np.int64)
    for shape, count in zip(shapes, counts, strict=True):
        holds = (kinds >> np.uint64(shape[0])) & np.uint64(1) > 0
        for r, capacity in enumerate(shape[1:]):
            holds &= demand[:, r] <= capacity
        able += count * holds
    return able


class Sieve:
    """Counts of dropped rows (each once, for its first cause) and of repaired rows."""

    def __init__(self) -> None:
        self._dropped: dict[str, Dropped] = {}
        self._repaired: dict[str, Dropped] = {}

    def keep(self, line: IntArray, causes: Mapping[str, BoolArray]) -> BoolArray:
        """Return which rows can be used, and count each of the others once, for the first of its `causes`."""
        kept = np.ones(len(line), dtype=bool)
        for reason, wrong in causes.items():
            _count(self._dropped, reason, line[kept & wrong])
            kept &= ~wrong
        return kept

    def repair(self, reason: str, line: IntArray) -> None:
        """Count repaired rows."""
        _count(self._repaired, reason, line)

    def repair_each(self, line: IntArray, causes: Mapping[str, BoolArray]) -> None:
        """Count rows once for each of the `causes` for which they were repaired."""
        for reason, found in causes.items():
            self.repair(reason, line[found])

    def forget(self, reason: str) -> None:
        """Remove a count of repairs."""
        self._repaired.pop(reason, None)

    @property
    def dropped(self) -> tuple[Dropped, ...]:
        """Return the dropped rows by reason."""
        return tuple(one for one in self._dropped.values() if one.rows)

    @property
    def repaired(self) -> tuple[Dropped, ...]:
        """Return the repaired rows by reason."""
        return tuple(one for one in self._repaired.values() if one.rows)


def _count(counted: dict[str, Dropped], reason: str, line: IntArray) -> None:
    # A cause is entered at its first check, so that the order of reports does not depend on the rows.
    _, rows, first = counted.setdefault(reason, Dropped(reason, 0, 0))
    if len(line):
        counted[reason] = Dropped(reason, rows + len(line), first or int(line.min()))


class Facts(NamedTuple):
    """Properties of a whole log."""

    resources: tuple[str, ...]
    units: tuple[str, ...]
    kind_names: tuple[str, ...] = ("",)
    has_estimates: bool = False
    machines: MachineTable | None = None
    partition_names: tuple[str, ...] = ("",)
    group_names: tuple[tuple[str, str], ...] = (("", ""),)


WITH_GPUS = Facts(("cpu", "memory", "gpu"), (CORES, GIB, GPUS))
OF_TASKS = Facts(("cpu", "memory"), (CORES, PERCENT))


def jobs(sieve: Sieve, line: IntArray, kept: BoolArray, amount: FloatArray, **others: Any) -> Columns:
    """Return the kept rows as jobs; a run time of 0 stands for less than the resolution of the clock, and is repaired.

    Args:
        sieve: counts repairs.
        line: [L] of each row.
        kept: [L] which rows are jobs.
        amount: [L, R] in units of the resources, on each node.
        others: columns [L] of `TYPES`; a log need not have those of `UNKNOWN`. An estimate of nan is unknown.
    """
    some = {name: value[kept] if np.ndim(value) else value for name, value in (UNKNOWN | others).items()}
    short = some["run_s"] == 0
    sieve.repair(SHORT, line[kept][short])
    run = np.where(short, SHORTEST_S, some["run_s"])
    some |= {"run_s": run, "estimate_s": np.where(np.isnan(some["estimate_s"]), run, some["estimate_s"])}
    columns = {name: np.broadcast_to(np.asarray(some[name], dtype=kind), len(run)) for name, kind in TYPES.items()}
    return columns | {"demand": thousandths(amount[kept])}


def together(parts: list[Columns]) -> Columns:
    """Return the joined columns of all parts; the parts are released one column at a time."""
    columns = {name: [part[name] for part in parts] for name in parts[0]}
    parts.clear()
    return {name: np.concatenate(columns.pop(name)) for name in list(columns)}


def in_order(parts: list[Columns], sieve: Sieve, facts: Facts, rows: int, path: Path) -> Trace:
    """Return all jobs as a log, and release the parts; a UserError if no job is left."""
    if not any(len(part["id"]) for part in parts):
        causes = "; ".join(f"{reason} ({count:,}, first in line {first})" for reason, count, first in sieve.dropped)
        found = f"none in {rows:,} rows: {causes}" if rows else "an empty log"
        raise UserError(f"{path}: expected jobs, found {found}")
    columns = together(parts)
    early, long = columns["submit_s"] < DAY_S, columns["run_s"] > DECADES_S
    unset = (np.median(columns["submit_s"]) > DECADES_S) & (early | long)
    if unset.any():  # 0 stands for unknown, as 1970 does for clocks of Unix
        select(columns, sieve.keep(np.zeros(len(unset), dtype=np.int64), {UNSET: unset}))
    if falls := int((np.diff(columns["submit_s"]) < 0).sum()):
        sieve.repair(UNSORTED, np.zeros(falls, dtype=np.int64))
        select(columns, np.argsort(columns["submit_s"], kind="stable"))
    return Trace(**columns, **facts._asdict(), dropped=sieve.dropped, repaired=sieve.repaired, rows=rows, doubts=())


def select(columns: Columns, rows: IntArray | BoolArray) -> None:
    """Select rows of columns, one column at a time, because a log may have many."""
    for name in columns:
        columns[name] = columns[name][rows]
