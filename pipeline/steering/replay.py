"""Recorded jobs of a journal, simulated under several policies on the nodes of their queue.

All simulations backfill like EASY, know the time limits, and run each job for as long as it ran. Mode `shadow` asks
whether the queue would have waited less under the policy. Order of arrival takes the place of Slurm's own order,
whatever Slurm's weights are. The jobs of a queue are simulated as one stream and cut by arrival into parts that are
paired: consecutive parts are not wholly independent, so an interval is a little too narrow.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import inf
from operator import attrgetter
from pathlib import Path
from time import monotonic

import numpy as np
from pydantic import BaseModel, ValidationError

from pipeline.comparing.resampling import gap_interval, resample
from pipeline.core.types import THOUSANDTHS, FloatArray, Json, Policy, keys
from pipeline.errors import UserError
from pipeline.problems.machines.env.evaluation.play import Game, played
from pipeline.problems.machines.env.nouns import DISPATCH, Jobs, Machines
from pipeline.problems.machines.heuristics.rules import HEURISTICS
from pipeline.progress import ShareCallback, no_progress
from pipeline.steering.journal import rows
from pipeline.steering.states import ENDLESS_S, KNOWN, LEAST_S

EASY, ARRIVAL = "easy", "fcfs"
BY_ARRIVAL = attrgetter("eligible", "job")  # ties by number, like Slurm
SLOTS = 2000  # most jobs that a policy sees
LOOK = 1000  # decisions between two checks of the time: with large queues each takes milliseconds
PARTS, LEAST_JOBS = 10, 200  # of a queue; fewer jobs give no verdict
MOST_JOBS = 5000  # of a queue, the newest
VERDICT_S = 60.0  # limit of all verdicts together: a user who stops a controller waits for them
BOUND_S = 10.0  # of bounded slowdown
CONFIDENCE, RESAMPLES = 0.95, 4000


class RecordedJob(BaseModel):
    """A row of a journal: a job that ended."""

    job: int = 0
    array: int = 0
    user: str = ""
    partition: str
    submit: float = 0.0
    eligible: float
    start: float
    end: float
    limit_s: float | None
    nodes: int
    units: dict[str, float]
    could_start: bool = True
    open: float | None = None


class RecordedNodes(BaseModel):
    """A row of a journal: the nodes of a queue."""

    partitions: tuple[str, ...]
    machines: dict[str, dict[str, float]]

    def takes(self, job: RecordedJob) -> bool:
        """Return whether a job belongs to this queue and fits on its nodes: others would block the simulation."""
        could = [
            all(job.units.get(name, 0.0) / job.nodes <= units.get(name, 0.0) + 1e-3 for name in KNOWN)
            for units in self.machines.values()
        ]
        there = not set(job.partition.split(",")).isdisjoint(self.partitions)
        return there and sum(could) >= job.nodes and any(job.units.values())


def read_recorded(folder: Path, rows: Iterable[Mapping[str, Json]]) -> tuple[list[RecordedNodes], list[RecordedJob]]:
    """Return the latest nodes of each queue of a folder's journal, and the jobs that ended; UserError for a bad row.

    A job that disappeared between two readings and could have started counts as one that ran for half the time between
    them; without such jobs, the effect of a policy on short jobs would be left out.
    """
    pools: dict[tuple[str, ...], RecordedNodes] = {}
    jobs: list[RecordedJob] = []
    before = inf  # the previous reading
    for row in rows:
        try:
            if row["kind"] == "pool":
                pool = RecordedNodes.model_validate(row)
                pools[pool.partitions] = pool
            elif row["kind"] == "ran":
                jobs.append(RecordedJob.model_validate(row))
            elif row["kind"] == "left" and row.get("could_start", True):
                end = float(str(row["end"]))
                jobs.append(RecordedJob.model_validate(dict(row) | {"start": end - max(end - before, 0.0) / 2}))
            elif row["kind"] == "tick":
                before = float(str(row["time"]))
        except (ValidationError, KeyError, ValueError) as error:
            raise UserError(
                f"{folder}: expected a journal, found a row that is none ({type(error).__name__})"
            ) from None
    return list(pools.values()), jobs


def replay_waits(
    jobs: Sequence[RecordedJob],
    nodes: RecordedNodes,
    policies: Sequence[Policy],
    seed: int,
    resources: Sequence[str] = (),
    slots: int = SLOTS,
    unit_s: float = 1.0,
    on_progress: ShareCallback = no_progress,
) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Yield for each policy the wait of each job [J] in seconds, and its run time.

    Without `resources`, all that the nodes have count. A policy sees `slots` jobs, and times in units of `unit_s`
    seconds. `on_progress` is called regularly, and may raise to end the simulation.
    """
    every = nodes.machines.values()
    resources = resources or [name for name in KNOWN if any(units.get(name, 0.0) > 0 for units in every)]
    capacity = np.array([[units.get(name, 0.0) for name in resources] for units in every])
    machines = Machines(
        capacity=np.round(capacity * THOUSANDTHS).astype(np.int64),
        kind=np.zeros(len(capacity), dtype=np.int64),
        slots=slots if slots < SLOTS else min(len(jobs), SLOTS),
        dispatch=DISPATCH.index(EASY),
        pause=inf,
        time_limit=inf,
    )
    first = min(job.eligible for job in jobs)
    demand = np.array([[job.units.get(name, 0.0) / job.nodes for name in resources] for job in jobs])
    limit = np.array([ENDLESS_S if job.limit_s is None else max(job.limit_s, LEAST_S) for job in jobs])
    given = Jobs(
        arrival=np.array([job.eligible - first for job in jobs]) / unit_s,
        duration=np.array([max(job.end - job.start, LEAST_S) for job in jobs]) / unit_s,
        estimate=limit / unit_s,
        demand=np.minimum(np.round(demand * THOUSANDTHS).astype(np.int64), machines.capacity.max(axis=0)),
        nodes=np.array([job.nodes for job in jobs], dtype=np.int64),
        kinds=np.ones(len(jobs), dtype=np.uint64),
    )
    zero = np.zeros(1, dtype=np.int64)
    for found in played(Game([given], machines, keys(seed, zero, zero), LOOK), policies, on_progress):
        yield (found.start - given.arrival) * unit_s, given.duration * unit_s


def check_replayable(policy: str) -> None:
    """Refuse policies other than heuristics; compile now, so that the end of the run need not wait for that."""
    if policy not in HEURISTICS:
        raise UserError(f"--mode shadow: expected a heuristic, as models are not replayed here, got '{policy}'")
    units = {"cpu": 1.0}
    job = RecordedJob(partition="", eligible=0.0, start=0.0, end=1.0, limit_s=1.0, nodes=1, units=units)
    nodes = RecordedNodes(partitions=("",), machines={"": units})
    list(replay_waits([job], nodes, [HEURISTICS[policy], HEURISTICS[ARRIVAL]], 0))


def verdicts(folder: Path, policy: str, seed: int, most_s: float = VERDICT_S) -> Iterator[str]:
    """Yield lines on each queue of a journal: would it have waited less under the policy? Ends after `most_s`."""
    check_replayable(policy)
    until = monotonic() + most_s

    def in_time(share: float = 0.0) -> None:
        if monotonic() > until:
            raise TimeoutError

    pools, jobs = read_recorded(folder, rows(folder))
    if not jobs:
        yield "cannot tell: no job of the journal has ended"
        return
    for pool in pools:
        name = ", ".join(pool.partitions)
        held = sorted((job for job in jobs if pool.takes(job)), key=BY_ARRIVAL)[-MOST_JOBS:]
        if len(held) < LEAST_JOBS:
            yield f"{name}: cannot tell: {len(held)} jobs that its nodes hold have ended; expected {LEAST_JOBS}"
            continue
        real = float(np.mean([max(job.start - job.eligible, 0.0) for job in held]))
        yield f"{name}: {len(held)} jobs waited {real:.0f} s in the mean"
        try:
            in_time()
            rules = [HEURISTICS[policy], HEURISTICS[ARRIVAL]]
            plays = list(replay_waits(held, pool, rules, seed, on_progress=in_time))
        except TimeoutError:
            yield f"{name}: cannot tell: {len(held)} jobs could not be played within {most_s:g} s"
            continue
        (own, _), (arrival, _) = plays
        yield f"{name}: {_compare('mean wait, s', policy, own, arrival, seed)}"
        ours, theirs = (np.maximum(1.0, (wait + run) / np.maximum(run, BOUND_S)) for wait, run in plays)
        yield f"{name}: {_compare('bounded slowdown', policy, ours, theirs, seed)}"


def _compare(measure: str, policy: str, ours: FloatArray, arrival: FloatArray, seed: int) -> str:
    """Return a verdict on a measure: its means, and the interval of their relative difference over parts [N]."""
    means = np.array([[part.mean() for part in np.array_split(values, PARTS)] for values in (ours, arrival)])  # [2, N]
    weights = resample(PARTS, RESAMPLES, np.random.default_rng(seed))
    drawn = weights @ means.T  # [1 + S, 2]
    relative = (drawn[:, 0] - drawn[:, 1]) / np.maximum(drawn[:, 1], 1e-9)
    low, high = gap_interval(relative[1:], CONFIDENCE, PARTS)
    says = "better" if high < 0 else "worse" if low > 0 else "cannot tell"
    both = f"{policy} {float(ours.mean()):.3g}, by arrival {float(arrival.mean()):.3g}"
    return f"{measure}: {both} ({100 * float(low):+.1f} to {100 * float(high):+.1f} %): {says}"
