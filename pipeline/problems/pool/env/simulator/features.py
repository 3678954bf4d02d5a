"""Features of `simulation.features`, written from the state: one compiled call for any number of episodes."""

from pipeline.core.types import BoolArray, IntArray
from pipeline.problems.pool.env.simulator.kernels import may_pass
from pipeline.problems.pool.env.simulator.state import Rules, State
from pipeline.simulation.compiled import Span, inlined, threaded
from pipeline.simulation.features import JOB, LONG, QUEUE, Features


@threaded(lambda s, rules, rows, *_: len(rows))
def encode(span: Span, s: State, rules: Rules, rows: IntArray, scale: float, seen: Features, legal: BoolArray) -> int:
    """Write features and legal actions [rows, A] of some episodes; return 0, because none of them ends."""
    for i in range(*span):
        longest = _write_jobs(s, rows[i], scale, seen, legal, i)
        _write_cluster(s, rows[i], seen, i)
        _write_queue(s, rules, rows[i], scale, seen, i, longest)
        legal[i, s.slot_job.shape[1]] = may_pass(s, rules, rows[i])
    return 0


@inlined
def _squashed(amount: float, scale: float) -> float:
    return amount / (amount + scale)


@inlined
def _write_jobs(s: State, b: int, scale: float, seen: Features, legal: BoolArray, i: int) -> float:
    """Write the features of the slots; return the longest wait."""
    longest = 0.0
    for m in range(s.slot_job.shape[1]):
        legal[i, m] = s.legal[b, m]
        job = s.slot_job[b, m]
        if job < 0:
            for f in range(seen.jobs.shape[2]):
                seen.jobs[i, m, f] = 0.0
            continue
        waited = float(s.now[b] - s.arrival[job])
        longest = max(longest, waited)
        seen.jobs[i, m, 0] = 1.0
        seen.jobs[i, m, 1] = _squashed(float(s.slot_duration[b, m]), scale)
        seen.jobs[i, m, 2] = _squashed(waited, scale)
        seen.jobs[i, m, 3] = s.fits_now[b, m]
        seen.jobs[i, m, 4] = 0.0
        seen.jobs[i, m, 5] = 1.0
        for r in range(s.capacity.shape[0]):
            seen.jobs[i, m, JOB + r] = min(s.slot_demand[b, m, r] / s.capacity[r], 1.0)
    return longest


@inlined
def _write_cluster(s: State, b: int, seen: Features, i: int) -> None:
    steps, resources = s.free.shape[1], s.free.shape[2]
    for t in range(steps):
        row = s.head[b] + t
        if row >= steps:
            row -= steps
        for r in range(resources):
            seen.cluster[i, t * resources + r] = max(s.free[b, row, r], 0) / s.capacity[r]


@inlined
def _write_queue(s: State, rules: Rules, b: int, scale: float, seen: Features, i: int, longest: float) -> None:
    slots, job, now = s.slot_job.shape[1], s.queue[b], float(s.now[b])
    backlog = s.to_come[b] - job
    seen.queue[i, 0] = _squashed(float(backlog), float(slots))
    seen.queue[i, 1] = _squashed(float(s.requested[job]), scale) if backlog > 0 else 0.0
    seen.queue[i, 2] = _squashed(longest, scale)
    seen.queue[i, 3] = _squashed(float(s.now[b] - s.last_arrival[b]), scale)
    seen.queue[i, 4] = _squashed(now, LONG * scale)
    seen.queue[i, 5] = rules.arrivals_end >= 0
    left = max(float(rules.arrivals_end) - now, 0.0) if rules.arrivals_end >= 0 else 0.0
    seen.queue[i, 6] = min(left / (LONG * scale), 1.0)
    for r in range(s.capacity.shape[0]):
        seen.queue[i, QUEUE + r] = min(s.demand[job, r] / s.capacity[r], 1.0) if backlog > 0 else 0.0
