"""Jobsets cut from a log: its jobs in steps and units, in windows of consecutive jobs; see docs/workloads.md.

Load and capacity are those of the training period. No policy learns from the future, and no two splits share a job.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from pipeline.core.config import PoolLog
from pipeline.core.logs.trace import GIB, Trace
from pipeline.core.types import THOUSANDTHS, FloatArray, IntArray
from pipeline.errors import UserError
from pipeline.problems.pool.env.nouns import JobSet

CPU, MEMORY = "cpu", "memory"
KB_OF_GIB = 1024.0**2


class Discretised(NamedTuple):
    """A log in steps and units."""

    id: IntArray  # [J]
    arrival: IntArray  # [J]     steps since the first job
    duration: IntArray  # [J]     steps; up to the horizon's maximum of 10,000, which fits into 16 bits
    demand: IntArray  # [J, R]  units; also up to 10,000
    step_s: int
    longest: int  # number of steps at which durations are cut
    capped: int  # jobs whose duration was cut
    oversized: dict[str, int]  # per resource: jobs that requested more than the whole machine
    total: dict[str, float]  # per resource: total amount, in the log's unit
    unit: dict[str, str]  # per resource: unit of the log
    capacity: dict[str, int]  # per resource: number of units
    load: dict[str, tuple[float, float]]  # per resource: in the log and in steps; nan = all jobs arrive at once
    estimate: IntArray | None = None  # [J]  requested steps; None: policies know run times

    @property
    def load_after(self) -> float:
        """Load of the processors, in steps and units."""
        return self.load[CPU if CPU in self.load else next(name for name in self.load if name != MEMORY)][1]

    def window(self, start: int, size: int) -> JobSet:
        """Return consecutive jobs; the first one arrives at step 0."""
        jobs = slice(start, start + size)
        estimate = None if self.estimate is None else self.estimate[jobs]
        return JobSet(self.arrival[jobs] - self.arrival[start], self.duration[jobs], self.demand[jobs], estimate)


def discretise(
    log: Trace,
    workload: PoolLog,
    resources: Mapping[str, int],
    horizon: int,
    estimates: bool = False,
    learned: int | None = None,
) -> Discretised:
    """Return a log in steps and units, by the rules of docs/workloads.md, with estimates if wanted.

    The training period has the first `learned` jobs; None: all. Missing resources or estimates raise a UserError.
    """
    if estimates and not log.has_estimates:
        raise UserError("policies_know: the log has no estimates; expected durations")
    longest = min(workload.max_steps, horizon)
    steps = np.ceil(log.run_s / workload.step_s)
    duration = np.minimum(steps, longest).astype(np.int16)
    jobs = len(log.id) if learned is None else max(learned, 1)
    span_s = float(log.submit_s[min(jobs, len(log.id) - 1)] - log.submit_s[0])
    columns = _columns(log, resources)
    demand = np.zeros((len(duration), len(resources)), dtype=np.int16)
    oversized, totals, load = {}, {}, {}
    for r, (name, column) in enumerate(columns.items()):
        amount, totals[name] = _held(log, workload, column, jobs)
        demand[:, r] = _units(amount, totals[name], resources[name])
        oversized[name] = int((amount > totals[name]).sum())
        work = np.multiply(duration, demand[:, r], dtype=np.int64)
        before, after = totals[name] * span_s, resources[name] * span_s / workload.step_s
        load[name] = _share((log.run_s * amount)[:jobs], before), _share(work[:jobs], after)
    return Discretised(
        id=log.id,
        arrival=((log.submit_s - log.submit_s[0]) // workload.step_s).astype(np.int64),
        duration=duration,
        demand=demand,
        step_s=workload.step_s,
        longest=longest,
        capped=int((steps > longest).sum()),
        oversized=oversized,
        total=totals,
        unit={name: GIB if column is None else log.units[column] for name, column in columns.items()},
        capacity=dict(resources),
        load=load,
        estimate=np.minimum(np.ceil(log.estimate_s / workload.step_s), longest).astype(np.int16) if estimates else None,
    )


def _columns(log: Trace, resources: Mapping[str, int]) -> dict[str, int | None]:
    """Return the column of each resource in the log; None = the log has no memory."""
    known = {name: place for place, name in enumerate(log.resources)}
    others = [name for name in resources if name not in known and name != MEMORY]
    if CPU not in resources and others:
        known[others.pop(0)] = known[CPU]
    elif CPU not in resources:
        raise UserError("resources: the scenario has no resource for processors")
    if others:
        raise UserError(f"resources: the log has no resource '{others[0]}'; there are: {', '.join(log.resources)}")
    return {name: known.get(name) for name in resources}


def _held(log: Trace, workload: PoolLog, column: int | None, learned: int) -> tuple[FloatArray, float]:
    """Return the amount of a resource that each job [J] holds (0 = none or unknown), and that of the whole cluster."""
    if column is None:
        return np.zeros(len(log.id)), 0.0
    amount = log.demand[:, column] * (log.nodes / THOUSANDTHS)
    if log.resources[column] == MEMORY and workload.memory_kb is not None:
        if log.units[column] != GIB:
            raise UserError(f"workload.memory_kb: the memory of this log is in {log.units[column]}")
        return amount, workload.memory_kb / KB_OF_GIB
    if log.machines is not None:
        return amount, float(log.machines.capacity[:, column].sum()) / THOUSANDTHS
    return amount, log.most_held(amount, learned)


def _units(amount: FloatArray, total: float, capacity: int) -> IntArray:
    """Return the units of each job.

    >>> _units(np.array([0.0, 1.0, 5.9, 6.0, 99.0]), total=40.0, capacity=10)
    array([ 0,  1,  1,  2, 10], dtype=int16)
    """
    nearest = np.floor(amount * capacity / (total or 1.0) + 0.5)
    return np.where(amount > 0, np.clip(nearest, 1, capacity), 0).astype(np.int16)


def _share(held: FloatArray | IntArray, offered: float) -> float:
    # Jobs that all arrive at once offer no load: there is no span of time to spread their work over.
    return 0.0 if not held.any() else float(held.sum()) / offered if offered > 0 else float("nan")


def describe(log: Trace, steps: Discretised) -> list[str]:
    """Return notes on a log for users."""
    longer = f"{steps.capped} jobs ({steps.capped / len(log.id):.1%}) run longer than {steps.longest} and are cut"
    over = []
    if steps.estimate is not None:
        counts = int((log.run_s > log.estimate_s).sum()), int((steps.duration > steps.estimate).sum())
        exact, rounded = (f"{count} ({count / len(log.id):.1%})" for count in counts)
        over = [f"run times known to policies: {exact.replace(' (', ' jobs (')} run longer, {rounded} in steps"]
    unused = [name for name in log.resources if name not in (CPU, *steps.total)]
    return [
        *log.notes,
        f"durations: steps of {steps.step_s} s, rounded up; {longer}",
        *over,
        *([f"ignored, as the cluster has no such resource: {', '.join(unused)}"] if unused else []),
        *(_describe_resource(name, steps) for name in steps.total),
    ]


def _describe_resource(name: str, steps: Discretised) -> str:
    unit, (before, after) = steps.total[name] / steps.capacity[name], steps.load[name]
    parts = [f"{steps.capacity[name]} units of {unit:.3g} {steps.unit[name]}"]
    if steps.oversized[name]:
        parts.append(f"{steps.oversized[name]} jobs request more than the whole machine and get all of it")
    return f"{name}: {'; '.join(parts)}; load {_percent(before)} in the log, {_percent(after)} in steps"


def _percent(load: float) -> str:
    return "undefined (all jobs arrive at once)" if np.isnan(load) else f"{load:.1%}"
