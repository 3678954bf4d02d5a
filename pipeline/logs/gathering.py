"""The jobs of a log, gathered a chunk at a time and put in order of arrival, without being held twice."""

from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from pipeline.core import ANY_KIND, FloatArray, IntArray, KeyArray
from pipeline.errors import UserError
from pipeline.logs.trace import DAY_S, YEAR_S, MachineTable, Sieve, Trace

MOST_JOBS = 50_000_000  # some 4 GiB of them
UNSORTED = "not in order of arrival: sorted"
UNSET = "a time within a day of 0, decades before the others: unknown"
DECADES_S = 20 * YEAR_S

Number = TypeVar("Number", bound=np.number)


class Part(NamedTuple):
    """Some jobs of a log."""

    id: IntArray  # [J]
    submit_s: FloatArray  # [J]
    wait_s: FloatArray  # [J]
    run_s: FloatArray  # [J]
    estimate_s: FloatArray  # [J]
    demand: IntArray  # [J, R]  thousandths
    nodes: IntArray  # [J]
    user: IntArray  # [J]
    kinds: KeyArray  # [J]


class Facts(NamedTuple):
    """What holds for all jobs of a log."""

    resources: tuple[str, ...]
    units: tuple[str, ...]
    kind_names: tuple[str, ...] = ("",)
    has_estimates: bool = False
    machines: MachineTable | None = None


def jobs(
    id: IntArray,
    submit_s: FloatArray,
    run_s: FloatArray,
    demand: IntArray,
    *,
    nodes: IntArray | int = 1,
    wait_s: FloatArray | float = np.nan,
    estimate_s: FloatArray | None = None,
    user: IntArray | int = -1,
    kinds: KeyArray | np.uint64 = ANY_KIND,
) -> Part:
    """Return jobs; what a log never says has the value that stands for it."""
    return Part(
        id=np.asarray(id, dtype=np.int64),
        submit_s=np.asarray(submit_s, dtype=np.float64),
        wait_s=_spread(wait_s, np.float64, len(id)),
        run_s=np.asarray(run_s, dtype=np.float64),
        estimate_s=np.asarray(run_s if estimate_s is None else estimate_s, dtype=np.float64),
        demand=np.asarray(demand, dtype=np.int64),
        nodes=_spread(nodes, np.int64, len(id)),
        user=_spread(user, np.int32, len(id)),
        kinds=_spread(kinds, np.uint64, len(id)),
    )


def _spread(value: npt.ArrayLike, kind: type[Number], jobs: int) -> npt.NDArray[Number]:
    return np.broadcast_to(np.asarray(value, dtype=kind), jobs)


def repeated(part: Part, instances: IntArray, before: int, path: Path) -> Part:
    """Return each task as often as it has instances.

    Raises:
        UserError: there would be too many jobs.
    """
    if before + int(instances.sum()) > MOST_JOBS:
        raise UserError(f"{path}: expected at most {MOST_JOBS:,} instances, found more: read one job a task")
    return Part._make(np.repeat(column, instances, axis=0) for column in part)


def together(parts: list[Any]) -> list[npt.NDArray[Any]]:
    """Return the columns of all parts, and let go of the parts, a column at a time."""
    columns = [list(column) for column in zip(*parts, strict=True)]
    parts.clear()
    return [np.concatenate(columns.pop(0)) for _ in range(len(columns))]


def in_order(parts: list[Part], sieve: Sieve, facts: Facts, rows: int, path: Path) -> Trace:
    """Return all jobs as a log, and let go of the parts.

    Raises:
        UserError: no job is left.
    """
    if not any(len(part.id) for part in parts):
        raise UserError(f"{path}: {_nothing(sieve, rows)}")
    joined = together(parts)
    at, ran = Part._fields.index("submit_s"), Part._fields.index("run_s")
    unset = (np.median(joined[at]) > DECADES_S) & ((joined[at] < DAY_S) | (joined[ran] > DECADES_S))
    if unset.any():  # 0 stands for unknown, as 1970 does for clocks of Unix
        kept = sieve.keep(np.zeros(len(unset), dtype=np.int64), {UNSET: unset})
        for k in range(len(joined)):
            joined[k] = joined[k][kept]
    submit = joined[at]
    falls = int((np.diff(submit) < 0).sum())
    if falls:
        sieve.repair(UNSORTED, np.zeros(falls, dtype=np.int64))
        order = np.argsort(submit, kind="stable")
        for k in range(len(joined)):
            joined[k] = joined[k][order]
    fixed = (facts.resources, facts.kind_names, facts.has_estimates, facts.machines)
    return Trace._make((*joined, *fixed, sieve.dropped, sieve.repaired, facts.units, rows, ()))


def _nothing(sieve: Sieve, rows: int) -> str:
    if not rows:
        return "expected jobs, found an empty log"
    causes = "; ".join(f"{reason} ({count:,}, first in line {first})" for reason, count, first in sieve.dropped)
    return f"expected jobs, found none in {rows:,} rows: {causes}"
