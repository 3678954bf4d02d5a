"""Would the queue have waited less under the policy? The jobs of a journal, played by the simulator in both orders.

Both plays backfill as EASY does, are told time limits, and run each job for as long as it ran: Slurm's own order is
taken for order of arrival, whatever its weights are. The jobs of a queue are played as one stream, and cut by arrival
into parts that are paired: consecutive parts are not wholly independent, so an interval is a little too narrow.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

import numpy as np

from pipeline.comparing.resampling import gap_interval, resample
from pipeline.core import FloatArray, Policy
from pipeline.errors import UserError
from pipeline.problems.machines.heuristics.rules import HEURISTICS
from pipeline.progress import ShareCallback
from pipeline.steering.journal import rows
from pipeline.steering.replaying import ARRIVAL, Nodes, Ran, recorded, waits

PARTS, LEAST_JOBS = 10, 200  # of a queue; with fewer jobs nothing is said
MOST_JOBS = 5000  # of a queue, the newest
VERDICT_S = 60.0  # in which all is said: what stops a controller does not wait for longer
BOUND_S = 10.0  # of bounded slowdown
CONFIDENCE, RESAMPLES = 0.95, 4000


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
    """Refuse what is not replayed; compile what is now, so that the end has no such wait.

    Raises:
        UserError: the policy is no heuristic.
    """
    if policy not in HEURISTICS:
        raise UserError(f"--mode shadow: expected a heuristic, as models are not replayed here, got '{policy}'")
    units = {"cpu": 1.0}
    job = Ran(partition="", eligible=0.0, start=0.0, end=1.0, limit_s=1.0, nodes=1, units=units)
    list(waits([job], Nodes(partitions=("",), machines={"": units}), [HEURISTICS[policy], HEURISTICS[ARRIVAL]], 0))


def verdicts(folder: Path, policy: str, seed: int, most_s: float = VERDICT_S) -> Iterator[str]:
    """Yield what to say of each queue of a journal.

    Args:
        folder: of the journal.
        policy: a heuristic.
        seed: of what is drawn again for the intervals.
        most_s: of the whole; queues that are not played by then are left out.

    Raises:
        UserError: there is no journal, or the policy is no heuristic.
    """
    must_be_replayed(policy)
    until = monotonic() + most_s

    def in_time(share: float = 0.0) -> None:
        if monotonic() > until:
            raise TimeoutError

    pools, jobs = recorded(folder, rows(folder))
    if not jobs:
        yield "cannot tell: no job of the journal has ended"
        return
    for pool in pools:
        name = ", ".join(pool.partitions)
        held = sorted((job for job in jobs if pool.takes(job)), key=lambda job: job.arrival)[-MOST_JOBS:]
        if len(held) < LEAST_JOBS:
            yield f"{name}: cannot tell: {len(held)} jobs that its nodes hold have ended; expected {LEAST_JOBS}"
            continue
        real = float(np.mean([max(job.start - job.eligible, 0.0) for job in held]))
        yield f"{name}: {len(held)} jobs waited {real:.0f} s in the mean"
        try:
            in_time()
            found = list(_compared_all(held, pool, HEURISTICS[policy], seed, in_time))
        except TimeoutError:
            yield f"{name}: cannot tell: {len(held)} jobs could not be played within {most_s:g} s"
            continue
        for one in found:
            change = f"{100 * one.low:+.1f} to {100 * one.high:+.1f} %"
            both = f"{policy} {one.policy:.3g}, by arrival {one.arrival:.3g}"
            yield f"{name}: {one.measure}: {both} ({change}): {one.says}"


def _compared_all(
    jobs: Sequence[Ran], nodes: Nodes, policy: Policy, seed: int, in_time: ShareCallback
) -> Iterator[Verdict]:
    plays = list(waits(jobs, nodes, [policy, HEURISTICS[ARRIVAL]], seed, on_progress=in_time))
    slowdowns = [np.maximum(1.0, (wait + run) / np.maximum(run, BOUND_S)) for wait, run in plays]
    yield _compared("mean wait, s", plays[0][0], plays[1][0], seed)
    yield _compared("bounded slowdown", slowdowns[0], slowdowns[1], seed)


def _compared(measure: str, ours: FloatArray, arrival: FloatArray, seed: int) -> Verdict:
    """Return the difference of means, relative to order of arrival, with its interval over parts of the stream."""
    means = np.array([[part.mean() for part in np.array_split(values, PARTS)] for values in (ours, arrival)])  # [2, N]
    weights = resample(PARTS, RESAMPLES, np.random.default_rng(seed))
    drawn = weights @ means.T  # [1 + S, 2]
    relative = (drawn[:, 0] - drawn[:, 1]) / np.maximum(drawn[:, 1], 1e-9)
    low, high = gap_interval(relative[1:], CONFIDENCE, PARTS)
    return Verdict(measure, float(ours.mean()), float(arrival.mean()), float(low), float(high))
