"""Jobsets of a scenario, drawn from a recipe or cut from a log.

Every jobset of a recipe has its own random sequence, keyed by (seed, split, load, number): training, validation and
test never share one. `fresh` jobsets are training jobsets in addition to those that `generate` writes; they may mix
demands that their scenario does not have. Estimates have their own sequences.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pipeline.core import storage
from pipeline.core.config import AtOnce, Params, PoolLog, PoolScenario, Streaming, Synthetic
from pipeline.core.logs.plausible import check_plausible, unconfirmed
from pipeline.core.logs.predictions import with_predictions
from pipeline.core.logs.registry import read
from pipeline.core.logs.trace import Trace
from pipeline.core.logs.windows import periods, random_start, starts
from pipeline.core.types import LOG_NAME, NODES_NAME, SPLIT_NUMBERS, SPLITS
from pipeline.errors import UserError
from pipeline.problems import parts
from pipeline.problems.pool.env.nouns import JobSet
from pipeline.problems.pool.env.storage import write_jobsets
from pipeline.problems.pool.env.workload.synthetic import check_estimates, draw_jobset, estimated
from pipeline.problems.pool.env.workload.windows import Discretised, describe, discretise
from pipeline.progress import ProgressCallback, no_progress

ESTIMATE, DEMAND = 1, 2  # last part of the key of a jobset's estimates, and of its choice of mixed demands


@dataclass(frozen=True)
class DrawnSource:
    """Jobsets drawn from the synthetic workload."""

    params: Params
    scenario: PoolScenario
    workload: Synthetic
    fresh_seed: int  # of fresh jobsets and streams
    mix: tuple[str, ...] = ()  # demands of fresh jobsets, equally often; empty: the scenario's
    notes: tuple[str, ...] = ()

    def loads(self, wanted: Sequence[int]) -> Sequence[int]:
        """Return the loads to train on."""
        return wanted

    def split(self, name: str) -> dict[int, list[JobSet]]:
        """Return the jobsets of a split, by load."""
        count = getattr(self.scenario.jobsets, name)
        keys = {
            load: [[self.params.seed, SPLIT_NUMBERS[name], load, k] for k in range(count)]
            for load in self.scenario.loads
        }
        return {load: [self._drawn(key, self.scenario, load) for key in mine] for load, mine in keys.items()}

    def fresh(self, load: int, number: int) -> JobSet:
        """Return a training jobset that `generate` did not write."""
        key = [self.fresh_seed, SPLIT_NUMBERS["fresh"], load, number]
        return self._drawn(key, self._mixed(key, self.scenario), load)

    def piece(self, split: str, load: int, number: int, steps: int) -> JobSet:
        """Return the first steps of an endless stream, which shares no random draws with any jobset."""
        own = self.scenario.arrivals
        size = None if isinstance(own, AtOnce) else own.size
        arrivals = Streaming(name="poisson" if size is None else "bursts", steps=steps, size=size)
        endless = self.scenario.model_copy(update={"arrivals": arrivals})
        seed = self.fresh_seed if split == "fresh" else self.params.seed
        key = [seed, len(SPLIT_NUMBERS) + SPLIT_NUMBERS[split], load, number]
        return self._drawn(key, self._mixed(key, endless) if split == "fresh" else endless, load)

    def _mixed(self, key: list[int], scenario: PoolScenario) -> PoolScenario:
        if not self.mix:
            return scenario
        demand = self.mix[np.random.default_rng([*key, DEMAND]).integers(len(self.mix))]
        if demand == scenario.demand:
            return scenario
        arrivals = scenario.arrivals
        if arrivals.name == "bernoulli":  # up to one job per step, which is hardly any load if jobs are small
            arrivals = arrivals.model_copy(update={"name": "poisson"})
        return scenario.model_copy(update={"demand": demand, "arrivals": arrivals})

    def _drawn(self, key: list[int], scenario: PoolScenario, load: int) -> JobSet:
        rng = np.random.default_rng(key)
        jobs = draw_jobset(self.workload, self.params.demands[scenario.demand], scenario, load, rng)
        jobs = jobs._replace(load=self.scenario.known_load(load))
        if scenario.policies_know == "durations":
            return jobs
        return estimated(jobs, self.workload.estimate_noise, scenario.horizon, np.random.default_rng([*key, ESTIMATE]))


@dataclass(frozen=True)
class LogSource:
    """Jobsets cut from a log; its own load is the only one."""

    seed: int
    fresh_seed: int  # of fresh jobsets and streams
    scenario: PoolScenario
    workload: PoolLog
    log: Trace
    steps: Discretised

    @property
    def load(self) -> int:
        """Return the training period's load, rounded to steps and units, in whole percent; 100 if it is undefined."""
        load = self.steps.load_after
        return 100 if np.isnan(load) else max(1, round(100 * load))

    @property
    def notes(self) -> tuple[str, ...]:
        """Return notes on the log for users."""
        return tuple(describe(self.log, self.steps))

    @property
    def size(self) -> int:
        """Return the number of jobs of a window."""
        arrivals = self.scenario.arrivals
        return arrivals.jobs if isinstance(arrivals, AtOnce) else self.workload.window

    def loads(self, wanted: Sequence[int]) -> Sequence[int]:
        """Return the log's own load, whatever an agent's row lists."""
        return (self.load,)

    def split(self, name: str) -> dict[int, list[JobSet]]:
        """Return the windows of a split, evenly spread; raise a UserError if a period is too short for one."""
        most, spans = self.scenario.jobsets, periods(len(self.steps.arrival), self.workload)
        first = {split: starts(span, self.size, getattr(most, split)) for split, span in spans.items()}
        return {self.load: [self._window(start) for start in first[name]]}

    def fresh(self, load: int, number: int) -> JobSet:
        """Return a window from a random job of the training period on; raise a UserError if the period is too short."""
        rng = np.random.default_rng([self.fresh_seed, SPLIT_NUMBERS["fresh"], number])
        span = periods(len(self.steps.arrival), self.workload)["train"]
        return self._window(random_start(span, self.size, rng))

    def piece(self, split: str, load: int, number: int, steps: int) -> JobSet:
        """Return the jobs of `steps` steps from a random job of a split's period on, fewer where the period ends."""
        period = "train" if split == "fresh" else split
        first, after = periods(len(self.steps.arrival), self.workload)[period]
        seed = self.fresh_seed if split == "fresh" else self.seed
        rng = np.random.default_rng([seed, len(SPLIT_NUMBERS) + SPLIT_NUMBERS[split], number])
        end = self.steps.arrival[after - 1] - steps
        start = first + int(rng.integers(max(1, np.searchsorted(self.steps.arrival[first:after], end, side="right"))))
        jobs = int(np.searchsorted(self.steps.arrival[start:after], self.steps.arrival[start] + steps))
        return self.steps.window(start, jobs)

    def _window(self, start: int) -> JobSet:
        jobs = self.steps.window(start, self.size)
        at_once = isinstance(self.scenario.arrivals, AtOnce)
        return jobs._replace(arrival=np.zeros_like(jobs.arrival)) if at_once else jobs


def source(
    params: Params,
    scenario: str,
    log: Path,
    on_progress: ProgressCallback = no_progress,
    mix: Sequence[str] = (),
    fresh: int | None = None,
) -> DrawnSource | LogSource:
    """Return the source of a scenario's jobsets; raise a UserError if estimates are missing or a log is unreadable.

    `log` is the log file, or a folder with it and its file of machines; it is not read for a recipe. `mix` lists the
    demands of a recipe's fresh jobsets. `fresh` is the seed of fresh jobsets and streams; None: that of params.yaml.
    """
    check_estimates(params)
    chosen = params.pool_scenario(scenario)
    workload, seed = params.workload_of(chosen), params.seed if fresh is None else fresh
    if isinstance(workload, Synthetic):
        return DrawnSource(params, chosen, workload, seed, tuple(mix))
    nodes = None if workload.nodes is None else (log / NODES_NAME).resolve()
    place = (log / LOG_NAME).resolve() if log.is_dir() else log
    trace = read(place, workload.format, on_progress, nodes=nodes, instances=workload.instances)
    try:
        learned = periods(len(trace.id), workload)["train"][1]
        if chosen.policies_know == "predictions":
            trace = with_predictions(trace, np.arange(max(1, learned)))
        estimates = chosen.policies_know != "durations"
        steps = discretise(trace, workload, chosen.resources, chosen.horizon, estimates, learned)
    except UserError as error:
        raise type(error)(f"params.yaml: scenarios.{scenario}: {error}") from error
    return LogSource(params.seed, seed, chosen, workload, trace, steps)


def draw(params: Params, scenario: str, on_progress: ProgressCallback) -> parts.Drawn[JobSet]:
    """Draw all jobsets of a scenario, or cut them from its log."""
    origin = source(params, scenario, storage.LOG.resolve(), on_progress)
    splits = {split: origin.split(split) for split in SPLITS}
    if isinstance(origin, LogSource):
        check_plausible(unconfirmed(origin.log, origin.workload.accept), "params.yaml: workload")
    resources = params.pool_scenario(scenario).resources

    def write(folder: Path) -> None:
        for split, jobsets in splits.items():
            write_jobsets(folder, split, jobsets, resources)

    return parts.Drawn(splits, origin.notes, write)
