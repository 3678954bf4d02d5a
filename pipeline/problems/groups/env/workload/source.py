"""The jobs of user groups, from a recipe or a log, and their cluster.

Every jobset has its own random numbers, keyed by (seed, split, load, number). Training jobsets of a log are windows
that begin at random times. Windows of validation and test belong to disjoint blocks of time, which are the same at all
loads and as long as a window at the highest load. At a lower load, windows are shorter in the log's time, and a block
holds as many as fit. So no two windows of a load share a job, and the blocks are independent at all loads. A block with
an empty window is skipped.

In a recipe, arrivals of each group are a Poisson process whose rate is a sine of time, drawn by thinning one with the
highest rate. Queue, run time and demand of a job are drawn independently of each other and of time; run times are
log-normal and not cut. Load = arrivals per unit of time * E[run time] * E[demand] / capacity, mean over resources,
exact over whole periods; every group has an equal part of it, so that a group with short jobs has more of them.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import numpy as np

from pipeline.core import storage
from pipeline.core.config import GroupsLog, GroupsScenario, Params, Sinusoidal
from pipeline.core.config.groups.learning import GroupsCard
from pipeline.core.logs.plausible import check_plausible
from pipeline.core.logs.registry import read
from pipeline.core.logs.trace import DAY_S
from pipeline.core.logs.windows import Origin
from pipeline.core.types import LOG_NAME, SPLIT_NUMBERS, SPLITS, FloatArray
from pipeline.errors import UserError
from pipeline.problems import parts
from pipeline.problems.groups.env.nouns import Configurations, Jobs, SharedCluster
from pipeline.problems.groups.env.storage import write_jobsets
from pipeline.problems.groups.env.workload.log import Gathered, describe, fits, gathered, random_window, spread, unseen
from pipeline.progress import ProgressCallback, no_progress


def mix_of(workload: Sinusoidal, group: int) -> Mapping[str, float]:
    """Return the share of each queue in a group's jobs; groups cycle through the mixes."""
    return workload.mixes[group % len(workload.mixes)]


def load_of_one(workload: Sinusoidal, scenario: GroupsScenario, group: int) -> float:
    """Return the load in percent of one arrival of a group per unit of time."""
    medians = sum(share * workload.run[queue] for queue, share in mix_of(workload, group).items())
    shares = [float(np.mean(workload.demand[name])) / units for name, units in scenario.resources.items()]
    return 100 * medians * math.exp(workload.spread**2 / 2) * sum(shares) / len(shares)


def mean_rates(workload: Sinusoidal, scenario: GroupsScenario, load: int) -> FloatArray:
    """Return each group's mean arrivals [G] per unit of time at a load in percent."""
    each = load / scenario.groups
    return np.array([each / load_of_one(workload, scenario, group) for group in range(scenario.groups)])


def draw_jobs(workload: Sinusoidal, scenario: GroupsScenario, load: int, rng: np.random.Generator) -> Jobs:
    """Draw one jobset at a load in percent; a jobset without jobs is drawn again."""
    rates = mean_rates(workload, scenario, load)
    while True:
        groups = [_of_one(workload, scenario, group, rate, rng) for group, rate in enumerate(rates)]
        columns = [np.concatenate(column) for column in zip(*groups, strict=True)]
        if len(columns[0]):
            order = np.argsort(columns[0], kind="stable")  # the lower group first at equal times
            return Jobs._make(column[order] for column in columns)


def _of_one(workload: Sinusoidal, scenario: GroupsScenario, group: int, rate: float, rng: np.random.Generator) -> Jobs:
    """Draw the jobs of one group, in order of arrival."""
    span = workload.intervals * scenario.interval
    highest = 1 + workload.amplitude
    often = np.sort(rng.uniform(0, span, rng.poisson(rate * highest * span)))
    turn = often / (workload.period * scenario.interval) + group / scenario.groups
    factor = np.asarray(1 + workload.amplitude * np.sin(2 * np.pi * turn))  # relative to the mean rate
    arrival = often[rng.uniform(0, highest, len(often)) < factor]
    jobs, mix = len(arrival), mix_of(workload, group)
    queue = rng.choice(len(scenario.queues), jobs, p=[mix[name] for name in scenario.queues])
    medians = np.array([workload.run[name] for name in scenario.queues])
    duration = medians[queue] * np.exp(workload.spread * rng.standard_normal(jobs))
    amounts = [np.array(workload.demand[name], dtype=np.int64) for name in scenario.resources]
    demand = np.column_stack([rng.choice(some, jobs) for some in amounts])
    return Jobs(arrival, duration, duration, demand, np.full(jobs, group), queue.astype(np.int64))


EVEN = ("validation", "test")  # splits whose windows are spread evenly


def cluster_of(scenario: GroupsScenario | GroupsCard) -> SharedCluster:
    """Return the cluster of a scenario or, as far as the network needs it, of a stored network's card."""
    return SharedCluster(
        capacity=np.array(list(scenario.resources.values()), dtype=np.int64),
        groups=scenario.groups,
        orders=np.array([[scenario.queues.index(queue) for queue in order] for order in scenario.orders]),
        interval=scenario.interval,
        borrowing=isinstance(scenario, GroupsScenario) and scenario.borrowing,
        time_limit=scenario.time_limit if isinstance(scenario, GroupsScenario) else np.inf,
    )


def configurations_of(scenario: GroupsScenario | GroupsCard) -> Configurations:
    """Return all settings of one group.

    A level is a number of equal shares, rounded up to whole units of the first resource and down for the others, and
    limited to the capacity. So levels that fit in the first resource also fit in the others: their sum is up to G
    shares, unless one group has all of the first resource; then the other groups have no units.

    Raises:
        UserError: two levels have the same units of the first resource.
    """
    capacity = np.array(list(scenario.resources.values()), dtype=np.int64)
    # Exact fractions: 0.7 of 10 units must not become 7.000000000000001 and then 8.
    shares = [Fraction(str(level)) / scenario.groups for level in scenario.levels]
    rows = [
        [-(-share * int(capacity[0]) // 1), *(share * int(units) // 1 for units in capacity[1:])] for share in shares
    ]
    units = np.minimum(np.array(rows, dtype=np.int64), capacity)
    for k in np.flatnonzero(np.diff(units[:, 0]) == 0):
        low, high = scenario.levels[k], scenario.levels[k + 1]
        name = next(iter(scenario.resources))
        raise UserError(f"levels: expected more {name} at {high:g} than at {low:g}, found {units[k, 0]} units at both")
    return Configurations(units, len(scenario.orders))


@dataclass(frozen=True)
class Drawn(Origin[Jobs]):
    """Jobs drawn from a recipe, in the recipe's unit of time."""

    scenario: GroupsScenario
    workload: Sinusoidal
    notes: tuple[str, ...] = ()

    def draw(self, stream: str, load: int, rng: np.random.Generator) -> Jobs:
        """Return a jobset; splits differ only in their random draws."""
        return draw_jobs(self.workload, self.scenario, load, rng)


@dataclass(frozen=True)
class Cut(Origin[Jobs]):
    """Jobs cut from a log; times are in seconds."""

    scenario: GroupsScenario
    workload: GroupsLog
    log: Gathered
    notes: tuple[str, ...] = ()

    def split(self, name: str) -> dict[int, list[Jobs]]:
        """Return the windows of a split, by load.

        Raises:
            UserError: the period is shorter than a window, or no job arrives in any.
        """
        if name not in EVEN:
            return super().split(name)
        lengths = {load: self.length(load) for load in self.scenario.loads}
        wanted = getattr(self.scenario.jobsets, name)
        longest = self.length(max(self.scenario.loads))
        begins = spread(self.log.periods[name], longest, wanted)
        found: dict[int, list[Jobs]] = {load: [] for load in lengths}
        for begin in begins:
            block = {
                load: [
                    self.log.window(name, begin + k * length, length, load)
                    for k in range(min(fits(longest, length), wanted // len(begins)))
                ]
                for load, length in lengths.items()
            }
            if all(len(jobs.arrival) for windows in block.values() for jobs in windows):
                for load, windows in block.items():
                    found[load] += windows
        if not any(found.values()):
            raise UserError(f"workload: expected jobs in the {name} period, found a window without one in every block")
        return found

    def draw(self, stream: str, load: int, rng: np.random.Generator) -> Jobs:
        """Return a window that begins at a random time of the training period.

        Raises:
            UserError: the period is shorter than a window at this load.
        """
        return random_window(self.log, self.length(load), load, rng)

    def length(self, load: int) -> float:
        """Return the length of a window at a load in percent, in the log's time."""
        return self.workload.window * self.scenario.interval / self.log.stretch(load)


def source(params: Params, name: str, folder: Path, on_progress: ProgressCallback = no_progress) -> Drawn | Cut:
    """Return the source of jobs of a scenario of user groups.

    `folder` contains the log, or is the log itself; it is not read for a recipe.

    Raises:
        UserError: the log cannot be read, or does not match the scenario.
    """
    scenario = params.groups_scenario(name)
    workload = scenario.workload
    with _naming(name):
        configurations_of(scenario)
    if isinstance(workload, Sinusoidal):
        return Drawn(params.seed, scenario, workload)
    place = folder / LOG_NAME if folder.is_dir() else folder
    trace = read(place.resolve(), workload.format, on_progress)
    with _naming(name):
        origin = Cut(params.seed, scenario, workload, gathered(trace, workload, scenario))
        new = (unseen(origin.log, split) for split in EVEN)
        return replace(origin, notes=(*describe(trace, origin.log, scenario), *new, *_describe_windows(origin)))


def draw(params: Params, scenario: str, on_progress: ProgressCallback) -> parts.Drawn[Jobs]:
    """Draw all jobsets of a scenario, or cut them from its log."""
    origin = source(params, scenario, storage.scenario_log(scenario), on_progress)
    splits = {split: origin.split(split) for split in SPLITS}
    if isinstance(origin, Cut):
        check_plausible(origin.log.doubts, f"params.yaml: scenarios.{scenario}.workload")
    resources = params.groups_scenario(scenario).resources

    def write(folder: Path) -> None:
        for split, jobsets in splits.items():
            write_jobsets(folder, split, jobsets, resources)

    return parts.Drawn(splits, origin.notes, write)


@contextmanager
def _naming(name: str) -> Iterator[None]:
    """Add the scenario to errors."""
    try:
        yield
    except UserError as error:
        raise type(error)(f"params.yaml: scenarios.{name}.{error}") from error


def _describe_windows(origin: Cut) -> list[str]:
    """Return notes on the windows of each split; all those of training are cut too, to check that they can be."""

    def described(name: str, jobsets: Sequence[Jobs]) -> str:
        jobs, wanted = [len(one.arrival) for one in jobsets], getattr(origin.scenario.jobsets, name)
        short = f" ({wanted} asked for)" if len(jobs) < wanted else ""
        return f"{name} {len(jobs)}{short} of {min(jobs):,} to {max(jobs):,} jobs"

    splits = {name: origin.split(name) for name in SPLIT_NUMBERS if name != "fresh"}
    return [
        f"load {load}: gaps between arrivals are {origin.log.stretch(load):.3g} times as long; a window is "
        f"{origin.length(load) / DAY_S:.1f} days of the log; "
        + "; ".join(described(name, jobsets[load]) for name, jobsets in splits.items())
        for load in origin.scenario.loads
    ]
