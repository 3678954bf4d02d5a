"""Where the jobs of user groups come from, a recipe or a log, and the cluster they share: the same questions to both.

Every jobset has its own random numbers, keyed by (seed, split, load, number). Of a log, training
jobsets are windows that begin at any time. Those of validation and test are of blocks of time: as many as fit side by
side, as long as a window at the highest load, the same ones at all loads. At a lower load windows are shorter by the
log's clock, and a block holds as many as fit side by side. So no two windows of a load share a job, and those of all
loads are independent block by block. A block with a window in which no job arrives is skipped.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import numpy as np

from pipeline.config import GroupsLog, GroupsScenario, Params, Sinusoidal
from pipeline.config.groups.learning import GroupsCard
from pipeline.core import LOG_NAME, SPLIT_NUMBERS
from pipeline.errors import UserError
from pipeline.logs.registry import read
from pipeline.logs.trace import DAY_S
from pipeline.problems.groups.nouns import Configurations, Jobs, SharedCluster
from pipeline.problems.groups.workload.log import Gathered, describe, fits, gathered, random_window, spread, unseen
from pipeline.problems.groups.workload.sinusoidal import draw_jobs
from pipeline.progress import ProgressCallback, no_progress

EVEN = ("validation", "test")  # splits whose windows are spread evenly


def cluster_of(scenario: GroupsScenario | GroupsCard) -> SharedCluster:
    """Return what the simulator must know of a scenario; of a stored network's card, what the network must."""
    return SharedCluster(
        capacity=np.array(list(scenario.resources.values()), dtype=np.int64),
        groups=scenario.groups,
        orders=np.array([[scenario.queues.index(queue) for queue in order] for order in scenario.orders]),
        interval=scenario.interval,
        borrowing=isinstance(scenario, GroupsScenario) and scenario.borrowing,
        time_limit=scenario.time_limit if isinstance(scenario, GroupsScenario) else np.inf,
    )


def configurations_of(scenario: GroupsScenario | GroupsCard) -> Configurations:
    """Return what one group may be given.

    A level is a number of equal shares: of the first resource rounded up to whole units, of the others down, and of
    none more than there is. So whatever levels fit together by the first resource fit by the others: without a cut, for
    they then sum to at most G; and where the first is cut, all other groups have nothing.

    Raises:
        UserError: two levels are as many units of the first resource.
    """
    capacity = np.array(list(scenario.resources.values()), dtype=np.int64)
    # Fractions of what params.yaml says: 0.7 of 10 units must not become 7.000000000000001 and then 8.
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
class Drawn:
    """Jobs drawn from a recipe; the unit of time is its own."""

    seed: int
    scenario: GroupsScenario
    workload: Sinusoidal
    notes: tuple[str, ...] = ()

    def split(self, name: str) -> dict[int, list[Jobs]]:
        """Return the jobsets of a split, by load."""
        count = getattr(self.scenario.jobsets, name)
        return {load: [self._draw(name, load, k) for k in range(count)] for load in self.scenario.loads}

    def fresh(self, load: int, number: int) -> Jobs:
        """Return a training jobset that `generate` did not write."""
        return self._draw("fresh", load, number)

    def _draw(self, stream: str, load: int, number: int) -> Jobs:
        rng = np.random.default_rng([self.seed, SPLIT_NUMBERS[stream], load, number])
        return draw_jobs(self.workload, self.scenario, load, rng)


@dataclass(frozen=True)
class Cut:
    """Jobs cut from a log; its times are seconds."""

    seed: int
    scenario: GroupsScenario
    workload: GroupsLog
    log: Gathered
    notes: tuple[str, ...] = ()

    def split(self, name: str) -> dict[int, list[Jobs]]:
        """Return the windows of a split, by load.

        Raises:
            UserError: the period is shorter than a window, or no job arrives in any.
        """
        if name in EVEN:
            return self._even(name)
        return {load: self._random(name, load) for load in self.scenario.loads}

    def fresh(self, load: int, number: int) -> Jobs:
        """Return a window that begins at any time of the training period.

        Raises:
            UserError: the period is shorter than a window at this load.
        """
        return self._at_random("fresh", load, number)

    def length(self, load: int) -> float:
        """Return how long a window is at a load in percent, by the log's clock."""
        return self.workload.window * self.scenario.interval / self.log.stretch(load)

    def _random(self, name: str, load: int) -> list[Jobs]:
        return [self._at_random(name, load, k) for k in range(getattr(self.scenario.jobsets, name))]

    def _at_random(self, stream: str, load: int, number: int) -> Jobs:
        rng = np.random.default_rng([self.seed, SPLIT_NUMBERS[stream], load, number])
        return random_window(self.log, self.length(load), load, rng)

    def _even(self, name: str) -> dict[int, list[Jobs]]:
        longest, wanted = self.length(max(self.scenario.loads)), getattr(self.scenario.jobsets, name)
        begins = spread(self.log.periods[name], longest, wanted)
        blocks = [self._block(name, begin, longest, wanted // len(begins)) for begin in begins]
        kept = [block for block in blocks if all(len(jobs.arrival) for some in block.values() for jobs in some)]
        if not kept:
            raise UserError(f"workload: expected jobs in the {name} period, found a window without one in every block")
        return {load: [jobs for block in kept for jobs in block[load]] for load in self.scenario.loads}

    def _block(self, name: str, begin: float, longest: float, most: int) -> dict[int, list[Jobs]]:
        """Return the windows of a block of time at each load, side by side."""
        lengths = {load: self.length(load) for load in self.scenario.loads}
        return {
            load: [
                self.log.window(name, begin + k * length, length, load) for k in range(min(fits(longest, length), most))
            ]
            for load, length in lengths.items()
        }


def source(params: Params, name: str, folder: Path, on_progress: ProgressCallback = no_progress) -> Drawn | Cut:
    """Return where the jobs of a scenario of user groups come from.

    The folder holds its log, or is the log itself; it is not read for a recipe.

    Raises:
        UserError: the log cannot be read, or does not go with the scenario.
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


@contextmanager
def _naming(name: str) -> Iterator[None]:
    """Say of which scenario a problem is."""
    try:
        yield
    except UserError as error:
        raise type(error)(f"params.yaml: scenarios.{name}.{error}") from error


def _describe_windows(origin: Cut) -> list[str]:
    """Return, for people, the windows of each split; all that training may want are cut to see that they can be."""
    splits = {name: origin.split(name) for name in SPLIT_NUMBERS if name != "fresh"}
    return [
        f"load {load}: gaps between arrivals are {origin.log.stretch(load):.3g} times as long; a window is "
        f"{origin.length(load) / DAY_S:.1f} days of the log; "
        + "; ".join(_describe_split(origin, name, jobsets[load]) for name, jobsets in splits.items())
        for load in origin.scenario.loads
    ]


def _describe_split(origin: Cut, name: str, jobsets: Sequence[Jobs]) -> str:
    jobs = [len(one.arrival) for one in jobsets]
    wanted = getattr(origin.scenario.jobsets, name)
    short = f" ({wanted} asked for)" if len(jobs) < wanted else ""
    return f"{name} {len(jobs)}{short} of {min(jobs):,} to {max(jobs):,} jobs"
