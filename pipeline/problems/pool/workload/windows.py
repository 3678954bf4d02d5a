"""Jobsets cut from a log: its jobs in steps and units, in windows of consecutive jobs.

Steps: arrival = whole steps since the first job; duration = run time rounded up to steps, cut to
min(max_steps, horizon) and counted. Estimates of users, where policies know no more, likewise; of a job without
one, its duration.

Units: the resource called `memory` is memory, the other one is processors, whatever its name. Demand = what the job
holds, to the nearest unit (half up), at least 1; a job that wants more than the whole machine gets all of it and is
counted. Unknown memory is 0 units: a made-up unit would invent contention that nobody measured.

All memory = `memory_kb`, else the most that the log's own jobs held at once (each from arrival + wait, for its run
time), but no more than all processors times the most that one is known to have held. The machine had at least the
first. The second alone is too large where few jobs are greedy: memory would never be short (HPC2N: 1.7 times as much).

Load = what jobs hold times how long, over what the cluster offers from first to last arrival. It is given before and
after: rounding up adds to it, cutting takes away.

Periods: the log is cut in order of arrival, training first, then validation, then test, so that no policy learns from
the future and no two splits share a job.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from pipeline.config import Counts, Swf
from pipeline.core import FloatArray, IntArray
from pipeline.errors import UserError
from pipeline.logs.step_log import Log
from pipeline.logs.windows import periods, random_start, starts
from pipeline.problems.pool.nouns import JobSet
from pipeline.problems.pool.workload.estimates import describe_estimates, estimated_steps

MEMORY = "memory"


class Discretised(NamedTuple):
    """A log in steps and units."""

    id: IntArray  # [J]
    arrival: IntArray  # [J]     steps since the first job
    duration: IntArray  # [J]     steps; at most the horizon's 10,000, so that 16 bits hold them
    demand: IntArray  # [J, R]  units; at most 10,000, too
    step_s: int
    longest: int  # steps at which durations are cut
    capped: int  # jobs whose duration was cut
    oversized: dict[str, int]  # per resource: jobs that wanted more than the whole machine
    total: dict[str, float]  # per resource: what all its units stand for, in processors or KB
    capacity: dict[str, int]  # per resource: its units
    load: dict[str, tuple[float, float]]  # per resource: before and after; nan = all jobs arrive at once
    estimate: IntArray | None = None  # [J]  steps that users ask for; None: policies know run times

    @property
    def load_before(self) -> float:
        """Load of the processors in the log."""
        return self.load[_processors_among(self.load)][0]

    @property
    def load_after(self) -> float:
        """Load of the processors in steps and units."""
        return self.load[_processors_among(self.load)][1]


class SplitWindows(NamedTuple):
    """The jobsets of each split."""

    train: list[JobSet]
    validation: list[JobSet]
    test: list[JobSet]


def discretise(log: Log, swf: Swf, resources: Mapping[str, int], horizon: int, estimates: bool = False) -> Discretised:
    """Return a log in steps and units, by the rules above; with its estimates, if policies know no more.

    Raises:
        UserError: a log has no such resource.
    """
    longest = min(swf.max_steps, horizon)
    steps = -(-log.run_s // swf.step_s)
    duration = np.minimum(steps, longest).astype(np.int16)
    span_s = float(log.submit_s[-1] - log.submit_s[0])
    names = _known(resources)
    demand = np.zeros((len(duration), len(names)), dtype=np.int16)
    oversized, totals, load = {}, {}, {}
    for r, name in enumerate(names):
        amount, totals[name] = _held(log, swf, name == MEMORY)
        demand[:, r] = _units(amount, totals[name], resources[name])
        oversized[name] = int((amount > totals[name]).sum())
        work = np.multiply(duration, demand[:, r], dtype=np.int64)
        before, after = totals[name] * span_s, resources[name] * span_s / swf.step_s
        load[name] = _share(log.run_s * amount, before), _share(work, after)
    return Discretised(
        id=log.id,
        arrival=(log.submit_s - log.submit_s[0]) // swf.step_s,
        duration=duration,
        demand=demand,
        step_s=swf.step_s,
        longest=longest,
        capped=int((steps > longest).sum()),
        oversized=oversized,
        total=totals,
        capacity=dict(resources),
        load=load,
        estimate=estimated_steps(log, swf.step_s, longest) if estimates else None,
    )


def _processors_among(names: Iterable[str]) -> str:
    return next(name for name in names if name != MEMORY)


def _known(resources: Mapping[str, int]) -> list[str]:
    others = [name for name in resources if name != MEMORY]
    if len(others) != 1:
        wrong = f"resource '{others[1]}' is not in it" if others else "the scenario has no resource for processors"
        raise UserError(f"a log knows processors and '{MEMORY}' only; {wrong}")
    return list(resources)


def _held(log: Log, swf: Swf, memory: bool) -> tuple[FloatArray, float]:
    """Return what each job [J] holds of a resource (0 = unknown), and all there is of it."""
    if not memory:
        return log.processors.astype(float), float(log.max_processors)
    most = float(log.max_processors) * max(int(log.memory_kb.max()), 0)
    return np.maximum(log.memory_kb, 0) * log.processors.astype(float), swf.memory_kb or min(log.peak_memory_kb, most)


def _units(amount: FloatArray, total: float, capacity: int) -> IntArray:
    """Return the units of each job.

    >>> _units(np.array([0.0, 1.0, 5.9, 6.0, 99.0]), total=40.0, capacity=10)
    array([ 0,  1,  1,  2, 10], dtype=int16)
    """
    nearest = np.floor(amount * capacity / max(total, 1.0) + 0.5)
    return np.where(amount > 0, np.clip(nearest, 1, capacity), 0).astype(np.int16)


def _share(held: FloatArray | IntArray, offered: float) -> float:
    # Jobs that all arrive at once offer no load: there is no span of time to spread their work over.
    return 0.0 if not held.any() else float(held.sum()) / offered if offered > 0 else float("nan")


def describe(log: Log, steps: Discretised) -> list[str]:
    """Return, for people, what became of a log."""
    jobs, days = len(log.id), (log.submit_s[-1] - log.submit_s[0]) / 86_400
    longer = f"{steps.capped} jobs ({steps.capped / jobs:.1%}) run longer than {steps.longest} and are cut"
    return [
        f"{jobs} jobs over {days:.1f} days on {log.max_processors} processors",
        *(f"{what} ({count} lines)" if count else what for what, count in log.repaired.items()),
        f"durations: steps of {steps.step_s} s, rounded up; {longer}",
        *([] if steps.estimate is None else [describe_estimates(log, steps.duration, steps.estimate)]),
        *(_describe_resource(name, log, steps) for name in steps.total),
    ]


def _describe_resource(name: str, log: Log, steps: Discretised) -> str:
    unit, (before, after) = steps.total[name] / steps.capacity[name], steps.load[name]
    parts = [f"{steps.capacity[name]} units of {unit:g} processors"]
    if name == MEMORY:
        unknown = int((log.memory_kb < 0).sum())
        parts = [
            f"{steps.capacity[name]} units of {unit / 1024**2:.2f} GiB",
            f"{unknown} jobs of unknown memory hold none",
        ]
    if steps.oversized[name]:
        parts.append(f"{steps.oversized[name]} jobs want more than the whole machine and get all of it")
    return f"{name}: {'; '.join(parts)}; load {_percent(before)} in the log, {_percent(after)} in steps"


def _percent(load: float) -> str:
    return "undefined (all jobs arrive at once)" if np.isnan(load) else f"{load:.1%}"


def cut(steps: Discretised, swf: Swf, size: int, most: Counts) -> SplitWindows:
    """Cut every split's jobsets of `size` jobs from its own period.

    Raises:
        UserError: a period is too short for one window.
    """
    spans = periods(len(steps.arrival), swf)
    return SplitWindows(
        **{split: consecutive(steps, span, size, getattr(most, split)) for split, span in spans.items()}
    )


def consecutive(steps: Discretised, span: tuple[int, int], size: int, most: int) -> list[JobSet]:
    """Return as many windows as fit side by side, at most `most`, spread evenly from a period's first job to its last.

    Raises:
        UserError: the period is too short for one window.
    """
    return [_window(steps, start, size) for start in starts(span, size, most)]


def random_window(steps: Discretised, span: tuple[int, int], size: int, rng: np.random.Generator) -> JobSet:
    """Return a window that starts at any job of a period which leaves room for it.

    Raises:
        UserError: the period is too short for one window.
    """
    return _window(steps, random_start(span, size, rng), size)


def at_once(jobs: JobSet) -> JobSet:
    """Return the same jobs, all waiting at step 0."""
    return jobs._replace(arrival=np.zeros_like(jobs.arrival))


def _window(steps: Discretised, start: int, size: int) -> JobSet:
    jobs = slice(start, start + size)
    estimate = None if steps.estimate is None else steps.estimate[jobs]
    return JobSet(steps.arrival[jobs] - steps.arrival[start], steps.duration[jobs], steps.demand[jobs], estimate)
