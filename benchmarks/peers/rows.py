"""Rows of the comparison: the raw file, medians, and whether simulators agree."""

from typing import NamedTuple

import pandas as pd

from benchmarks.peers.simulators import OURS, SIMULATORS

COLUMNS = (
    "rule", "jobs", "machines", "simulator", "run", "finished", "done", "decisions",
    "wall_s", "cpu_s", "mean", "peak_mib",
)  # fmt: skip
EXACT = "compiled"  # the simulator that others are compared with; of environments, `OURS`
WINDOWED = "fcfs_vector"  # plays windows of the queue, so its mean is another one
SAME = 0.005  # relative difference of means that counts as agreement


class Cell(NamedTuple):
    """Medians of a simulator's runs of one size."""

    finished: bool
    jobs_per_s: float  # of processor time
    decisions_per_s: float
    mean: float
    peak_mib: float


def cells(rows: pd.DataFrame) -> dict[tuple[str, int, int, str], Cell]:
    """Return medians by rule, jobs, machines and simulator."""
    found = {}
    for key, part in rows.groupby(["rule", "jobs", "machines", "simulator"], sort=False):
        rule, jobs, machines, name = key
        middle = part[["done", "decisions", "cpu_s", "mean", "peak_mib"]].median()
        found[str(rule), int(str(jobs)), int(str(machines)), str(name)] = Cell(
            bool(part["finished"].all()),
            float(middle["done"] / middle["cpu_s"]),
            float(middle["decisions"] / middle["cpu_s"]),
            float(middle["mean"]),
            float(middle["peak_mib"]),
        )
    return found


def difference(mean: float, exact: float) -> str:
    """Return how a mean differs from ours.

    >>> difference(29.03, 29.026), difference(8.2, 8.0)
    ('same', '+2.5 %')
    """
    relative = mean / exact - 1 if exact else float(mean != exact)
    return "same" if abs(relative) <= SAME else f"{100 * relative:+.1f} %"


def disagreements(rows: pd.DataFrame) -> list[str]:
    """Return a line for each size at which a simulator's mean differs from ours."""
    lines, found = [], cells(rows)
    for (rule, jobs, machines, name), cell in found.items():
        exact = found.get((rule, jobs, machines, OURS.get(rule, EXACT)))
        if exact is None or name == WINDOWED or not (cell.finished and exact.finished):
            continue
        word = difference(cell.mean, exact.mean)
        if word != "same":
            of = f"{rule}, {jobs:,} jobs, {machines:,} machines"
            lines.append(f"{SIMULATORS[name].words}: {of}: mean {cell.mean:.3g}, ours {exact.mean:.3g} ({word})")
    return lines
