"""A scenario's jobs on many machines, drawn from a recipe or cut from a log.

Every jobset has its own random draws, keyed by (seed, split, load, number).

Recipe: Deepk8s draws jobs from Alibaba's log; ours are drawn to resemble logs. Run times are log-normal, cut at the
longest; each resource's demand is one of a few values, equally often; the first job arrives at 0, then arrivals are
Poisson. Load = arrivals per time unit * E[cut run time] * E[demand] / all machines' capacity, mean over resources.

Blocks are consecutive jobs of some parts of a log (a block bootstrap, Künsch 1989). Even a part that is too short to
learn from yields any number of jobsets, with its bursts and its users' habits. Each job keeps the time since the job
before it, scaled to the load. Parts are ranges of jobs in order of arrival, so that jobs with published results can be
kept out of training.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pipeline.core import storage
from pipeline.core.config import MachinePark, MachinesLog, MachinesScenario, Params, Sampled, Tasks
from pipeline.core.logs.plausible import check_plausible
from pipeline.core.logs.trace import thousandths
from pipeline.core.logs.windows import Origin, periods, random_start, starts
from pipeline.core.types import ANY_KIND, SPLITS, THOUSANDTHS
from pipeline.errors import UserError
from pipeline.problems import parts
from pipeline.problems.machines.env.nouns import Jobs
from pipeline.problems.machines.env.storage import grouped, write_jobsets, write_park
from pipeline.problems.machines.env.workload.windows import Fitted, describe, fitted, read_log
from pipeline.progress import ProgressCallback, no_progress


@dataclass(frozen=True)
class Drawn(Origin[Jobs]):
    """Jobs drawn from a recipe, in the recipe's unit of time."""

    scenario: MachinesScenario
    tasks: Tasks
    park: MachinePark
    notes: tuple[str, ...] = ()

    def draw(self, stream: str, load: int, rng: np.random.Generator) -> Jobs:
        """Return a jobset; splits differ only in their random draws."""
        return draw_jobs(self.tasks, load / load_of_one(self.tasks, self.park), rng)


@dataclass(frozen=True)
class Cut(Origin[Jobs]):
    """Jobs cut from a log, or resampled from its parts; times are in seconds."""

    scenario: MachinesScenario
    workload: MachinesLog
    fit: Fitted
    notes: tuple[str, ...]

    @property
    def park(self) -> MachinePark:
        """Return the machines and the unit of time."""
        return self.fit.park

    def split(self, name: str) -> dict[int, list[Jobs]]:
        """Return the windows of a split, the same at every load; with parts, blocks, drawn for each load."""
        if self.workload.parts is not None:
            return super().split(name)
        size = self.workload.window
        first = starts(self._period(name), size, getattr(self.scenario.jobsets, name))
        return {load: [self.fit.window(start, size, load) for start in first] for load in self.scenario.loads}

    def draw(self, stream: str, load: int, rng: np.random.Generator) -> Jobs:
        """Return a window that begins at any job of the training period or, with parts, blocks of the split's parts."""
        if self.workload.parts is None:
            size = self.workload.window
            return self.fit.window(random_start(self._period("train"), size, rng), size, load)
        spans: Sequence[tuple[int, int]] = getattr(self.workload.parts, "train" if stream == "fresh" else stream)
        places = np.concatenate([np.arange(first, after) for first, after in spans])
        last = len(places) - self.workload.block
        begins = rng.integers(last + 1, size=-(-self.workload.window // self.workload.block))
        chosen = places[(begins[:, None] + np.arange(self.workload.block)).ravel()[: self.workload.window]]
        arrival = self.fit.jobs.arrival
        gap = np.diff(arrival, prepend=arrival[0])[chosen] * self.fit.stretch(load)
        gap[np.isin(chosen, [first for first, _ in spans])] = 0.0  # the job before it belongs to another part
        jobs = Jobs._make(column[chosen] for column in self.fit.jobs)
        return jobs._replace(arrival=np.cumsum(gap) - gap[0])

    def _period(self, split: str) -> tuple[int, int]:
        return periods(len(self.fit.jobs.arrival), self.workload)[split]


def source(params: Params, name: str, folder: Path, on_progress: ProgressCallback = no_progress) -> Drawn | Cut:
    """Return the source of a scenario's jobs.

    `folder` holds the log and the log's file of machines, or is the log itself; it is not read for a recipe.

    Raises:
        UserError: the log cannot be read, or contradicts the scenario.
    """
    scenario = params.machines_scenario(name)
    workload = scenario.workload
    if isinstance(workload, Tasks):
        if isinstance(scenario.machines, Sampled):  # already refused by the check of params.yaml
            raise TypeError("tasks have no file of machines")
        return Drawn(params.seed, scenario, workload, grouped(scenario.machines, unit=1.0))
    trace = read_log(workload, folder, on_progress)
    try:
        fit = fitted(trace, workload, scenario)
        _check_length(workload, len(fit.jobs.arrival))
    except UserError as error:
        raise type(error)(f"params.yaml: scenarios.{name}.{error}") from error
    notes = tuple(describe(trace, fit, {load: fit.stretch(load) for load in scenario.loads}))
    return Cut(params.seed, scenario, workload, fit, notes)


def draw(params: Params, scenario: str, on_progress: ProgressCallback) -> parts.Drawn[Jobs]:
    """Draw all jobsets of a scenario, or cut them from its log."""
    origin = source(params, scenario, storage.scenario_log(scenario), on_progress)
    splits = {split: origin.split(split) for split in SPLITS}
    if isinstance(origin, Cut):
        check_plausible(origin.fit.doubts, f"params.yaml: scenarios.{scenario}.workload")

    def write(folder: Path) -> None:
        write_park(folder, origin.park)
        for split, jobsets in splits.items():
            write_jobsets(folder, split, jobsets, origin.park)

    return parts.Drawn(splits, origin.notes, write)


def _check_length(workload: MachinesLog, jobs: int) -> None:
    """Refuse a log that is too short for its parts or for a window of each period."""
    for split, spans in workload.parts or ():
        for first, after in spans:
            if after > jobs:
                span = f"[{first}, {after}]"
                raise UserError(f"workload.parts.{split}: expected at most {jobs}, the log's jobs, got {span}")
        if sum(after - first for first, after in spans) < workload.block:
            raise UserError(f"workload.parts.{split}: fewer jobs than a block of {workload.block}")
    for split in SPLITS if workload.parts is None else ():
        starts(periods(jobs, workload)[split], workload.window, 1)


def mean_run(tasks: Tasks) -> float:
    """Return the expected run time of a log-normal distribution that is cut at the longest.

    >>> round(mean_run(Tasks(name="tasks", median=1.0, spread=1.0, longest=1e9, demand={}, jobs=1)), 6)  # e ** (1 / 2)
    1.648721
    """
    place = math.log(tasks.longest / tasks.median) / tasks.spread

    def below(place: float) -> float:  # cumulative standard normal distribution
        return math.erfc(-place / math.sqrt(2)) / 2

    whole = tasks.median * math.exp(tasks.spread**2 / 2) * below(place - tasks.spread)
    return whole + tasks.longest * below(-place)


def load_of_one(tasks: Tasks, park: MachinePark) -> float:
    """Return the load, in percent, of one arrival per time unit."""
    total = np.array(park.capacity, dtype=np.int64).sum(axis=0) / THOUSANDTHS
    shares = [float(np.mean(tasks.demand[name]) / total[r]) for r, name in enumerate(park.resources)]
    return 100.0 * mean_run(tasks) * sum(shares) / len(shares)


def draw_jobs(tasks: Tasks, rate: float, rng: np.random.Generator) -> Jobs:
    """Draw one jobset with `rate` arrivals per time unit."""
    arrival = np.concatenate([[0.0], np.cumsum(rng.exponential(1 / rate, tasks.jobs - 1))])
    duration = np.minimum(tasks.median * np.exp(tasks.spread * rng.standard_normal(tasks.jobs)), tasks.longest)
    demand = np.column_stack(
        [thousandths(rng.choice(np.array(amounts), tasks.jobs)) for amounts in tasks.demand.values()]
    )
    nodes = np.ones(tasks.jobs, dtype=np.int64)
    return Jobs(arrival, duration, duration, demand, nodes, np.full(tasks.jobs, ANY_KIND))
