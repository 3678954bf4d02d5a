"""Would the queue have waited less under the policy? The jobs of a journal, played by the simulator in both orders.

Both plays backfill as EASY does, are told time limits, and run each job for as long as it ran: Slurm's own order is
taken for order of arrival, whatever its weights are. The jobs of a queue are played as one stream, and cut by arrival
into parts that are paired: consecutive parts are not wholly independent, so an interval is a little too narrow.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path

import numpy as np
from pydantic import BaseModel, ValidationError

from pipeline.comparing.resampling import gap_interval, resample
from pipeline.core import THOUSANDTHS, FloatArray, Policy, keys
from pipeline.errors import UserError
from pipeline.problems.machines.evaluation.play import Game, played
from pipeline.problems.machines.heuristics.rules import HEURISTICS
from pipeline.problems.machines.nouns import DISPATCH, Jobs, Machines
from pipeline.progress import no_progress
from pipeline.steering.journal import rows
from pipeline.steering.states import ENDLESS_S, KNOWN, LEAST_S

PARTS, LEAST_JOBS = 10, 200  # of a queue; with fewer jobs nothing is said
BOUND_S = 10.0  # of bounded slowdown
CONFIDENCE, RESAMPLES = 0.95, 4000
EASY, ARRIVAL = "easy", "fcfs"


class _Ran(BaseModel):
    partition: str
    eligible: float
    start: float
    end: float
    limit_s: float | None
    nodes: int
    units: dict[str, float]


class _Pool(BaseModel):
    partitions: tuple[str, ...]
    machines: dict[str, dict[str, float]]


@dataclass(frozen=True)
class Verdict:
    """A measure of a queue under both orders, as the simulator plays it."""

    measure: str
    policy: float
    arrival: float
    low: float  # of the relative difference
    high: float

    @property
    def says(self) -> str:
        """Return whether the policy would have been better."""
        return "better" if self.high < 0 else "worse" if self.low > 0 else "cannot tell"


def must_be_replayed(policy: str) -> None:
    """Refuse what is not replayed.

    Raises:
        UserError: the policy is no heuristic.
    """
    if policy not in HEURISTICS:
        raise UserError(f"--mode shadow: expected a heuristic, as models are not replayed here, got '{policy}'")


def verdicts(folder: Path, policy: str, seed: int) -> Iterator[str]:
    """Yield what to say of each queue of a journal.

    Args:
        folder: of the journal.
        policy: a heuristic.
        seed: of what is drawn again for the intervals.

    Raises:
        UserError: there is no journal, or the policy is no heuristic.
    """
    must_be_replayed(policy)
    pools, jobs = _recorded(folder)
    if not jobs:
        yield "cannot tell: no job of the journal has ended"
        return
    for pool in pools:
        own = sorted((job for job in jobs if set(job.partition.split(",")) & set(pool.partitions)), key=_eligible)
        name = ", ".join(pool.partitions)
        held = [job for job in own if _fits(job, pool)]
        if len(held) < LEAST_JOBS:
            yield f"{name}: cannot tell: {len(held)} jobs that its nodes hold have ended; expected {LEAST_JOBS}"
            continue
        real = float(np.mean([max(job.start - job.eligible, 0.0) for job in held]))
        yield f"{name}: {len(held)} jobs waited {real:.0f} s in the mean"
        for one in _replayed(held, pool, HEURISTICS[policy], seed):
            change = f"{100 * one.low:+.1f} to {100 * one.high:+.1f} %"
            both = f"{policy} {one.policy:.3g}, by arrival {one.arrival:.3g}"
            yield f"{name}: {one.measure}: {both} ({change}): {one.says}"


def _eligible(job: _Ran) -> float:
    return job.eligible


def _recorded(folder: Path) -> tuple[list[_Pool], list[_Ran]]:
    """Return the queues as they were seen last, and the jobs that ended."""
    pools: dict[tuple[str, ...], _Pool] = {}
    jobs: list[_Ran] = []
    for row in rows(folder):
        try:
            if row["kind"] == "pool":
                pool = _Pool.model_validate(row)
                pools[pool.partitions] = pool
            elif row["kind"] == "ran":
                jobs.append(_Ran.model_validate(row))
        except (ValidationError, KeyError) as error:
            raise UserError(
                f"{folder}: expected a journal, found a row that is none ({type(error).__name__})"
            ) from None
    return list(pools.values()), jobs


def _resources(pool: _Pool) -> list[str]:
    return [name for name in KNOWN if any(units.get(name, 0.0) > 0 for units in pool.machines.values())]


def _fits(job: _Ran, pool: _Pool) -> bool:
    """Return whether the queue's nodes could hold a job: others would stop the play."""
    could = [
        all(job.units.get(name, 0.0) / job.nodes <= units.get(name, 0.0) + 1e-3 for name in KNOWN)
        for units in pool.machines.values()
    ]
    return sum(could) >= job.nodes and any(job.units.values())


def _replayed(jobs: Sequence[_Ran], pool: _Pool, policy: Policy, seed: int) -> Iterator[Verdict]:
    resources = _resources(pool)
    capacity = np.array([[units.get(name, 0.0) for name in resources] for units in pool.machines.values()])
    machines = Machines(
        capacity=np.round(capacity * THOUSANDTHS).astype(np.int64),
        kind=np.zeros(len(capacity), dtype=np.int64),
        slots=min(len(jobs), 2000),
        dispatch=DISPATCH.index(EASY),
        pause=inf,
        time_limit=inf,
    )
    told = _jobs(jobs, resources, machines)
    nothing = np.zeros(1, dtype=np.int64)
    game = Game([told], machines, keys(seed, nothing, nothing))
    plays = played(game, [policy, HEURISTICS[ARRIVAL]], no_progress)
    waits: list[FloatArray] = [found.start - told.arrival for found in plays]
    slowdowns = [np.maximum(1.0, (wait + told.duration) / np.maximum(told.duration, BOUND_S)) for wait in waits]
    for measure, (ours, arrival) in (("mean wait, s", waits), ("bounded slowdown", slowdowns)):
        yield _compared(measure, ours, arrival, seed)


def _jobs(jobs: Sequence[_Ran], resources: Sequence[str], machines: Machines) -> Jobs:
    first = min(job.eligible for job in jobs)
    demand = np.array([[job.units.get(name, 0.0) / job.nodes for name in resources] for job in jobs])
    return Jobs(
        arrival=np.array([job.eligible - first for job in jobs]),
        duration=np.array([max(job.end - job.start, LEAST_S) for job in jobs]),
        estimate=np.array([ENDLESS_S if job.limit_s is None else max(job.limit_s, LEAST_S) for job in jobs]),
        demand=np.minimum(np.round(demand * THOUSANDTHS).astype(np.int64), machines.capacity.max(axis=0)),
        nodes=np.array([job.nodes for job in jobs], dtype=np.int64),
        kinds=np.ones(len(jobs), dtype=np.uint64),
    )


def _compared(measure: str, ours: FloatArray, arrival: FloatArray, seed: int) -> Verdict:
    """Return the difference of means, relative to order of arrival, with its interval over parts of the stream."""
    means = np.array([[part.mean() for part in np.array_split(values, PARTS)] for values in (ours, arrival)])  # [2, N]
    weights = resample(PARTS, RESAMPLES, np.random.default_rng(seed))
    drawn = weights @ means.T  # [1 + S, 2]
    relative = (drawn[:, 0] - drawn[:, 1]) / np.maximum(drawn[:, 1], 1e-9)
    low, high = gap_interval(relative[1:], CONFIDENCE, PARTS)
    return Verdict(measure, float(ours.mean()), float(arrival.mean()), float(low), float(high))
