"""Signs of a misread log: wrong units, a wrong size of the machine, or no limits.

`implausible(trace, capacity)` returns one line for each sign, which begins with its word and a colon. `trace` reports
all of them. Stages stop at them, unless `accept` of the workload confirms the words.
"""

from collections.abc import Collection, Iterator, Mapping

import numpy as np

from pipeline.core.logs.trace import DAY_S, YEAR_S, Trace, fits_somewhere, held_at_once
from pipeline.core.types import THOUSANDTHS, FloatArray
from pipeline.errors import UserError

MOST_SPAN_S, LATEST_S = 50 * YEAR_S, 1e11  # the year 5138, in seconds; in milliseconds, 1973
LONG_RUN_S = 10 * DAY_S  # of half the jobs
LEAST_TIMES = 5  # different run times that are all whole thousands
OVERRUN, MOST_OVERRUN = 1.5, 0.25  # times the limit; of the jobs
SLACK = 1.1  # real logs exceed their machine by little: clocks are rounded (HPC2N: 243 of 240 processors)
MOST_LOAD = 1.5
MOST_MISFITS = 0.1  # of the jobs, or of their work
ESTIMATES, SIZE = "estimates", "size"


def implausible(trace: Trace, capacity: Mapping[str, float] | None = None) -> list[str]:
    """Return the signs as lines; `capacity` of all machines is in the log's units, None: its own."""
    if capacity is None and trace.machines is not None:
        total = trace.machines.capacity.sum(axis=0) / THOUSANDTHS
        capacity = dict(zip(trace.machines.resources, total.tolist(), strict=True))
    known = {name: there for name, there in (capacity or {}).items() if name in trace.resources}
    return [*_times(trace), *_limits(trace), *_size(trace, known), *_misfits(trace, known)]


def unconfirmed(
    trace: Trace, accepted: Collection[str], capacity: Mapping[str, float] | None = None
) -> tuple[str, ...]:
    """Return the signs that are not accepted. Missing estimates are confirmed by `policies_know`."""
    return tuple(line for line in implausible(trace, capacity) if word(line) not in (*accepted, ESTIMATES))


def check_plausible(doubts: Collection[str], where: str) -> None:
    """Refuse a log with unconfirmed signs, with a one-line UserError."""
    if doubts:
        words = f"accept: [{', '.join(map(word, doubts))}]"
        raise UserError(f"{where}: implausible log: {'; '.join(doubts)}; correct this, or confirm it by {words} there")


def word(doubt: str) -> str:
    """Return the word by which a sign is accepted."""
    return doubt.partition(":")[0]


def least_held(trace: Trace, resource: int) -> float:
    """Return the least capacity of a resource: the most in use at once, as far as waits are known.

    Each job counts for a second less than it ran, since logs round clocks. Without waits it is the largest job.
    """
    known = ~np.isnan(trace.wait_s)
    amount = _amount(trace, resource)
    if not known.any():
        return float(amount.max())
    start = (trace.submit_s + trace.wait_s)[known]
    return held_at_once(start, start + np.maximum(trace.run_s[known] - 1, 0), amount[known])


def _amount(trace: Trace, resource: int) -> FloatArray:
    return np.asarray(trace.demand[:, resource] * (trace.nodes / THOUSANDTHS))


def _times(trace: Trace) -> Iterator[str]:
    first, last, median = float(trace.submit_s[0]), float(trace.submit_s[-1]), float(np.median(trace.run_s))
    whole = not (np.fmod(trace.submit_s, 1000).any() or np.fmod(trace.run_s, 1000).any())
    if last - first > MOST_SPAN_S or last > LATEST_S:
        yield f"times: arrivals from {first:.10g} to {last:.10g} s, {(last - first) / YEAR_S:,.0f} years: milliseconds?"
    elif median > LONG_RUN_S:
        yield f"times: half of the jobs ran for more than {median / DAY_S:,.0f} days: milliseconds?"
    elif whole and len(np.unique(trace.run_s)) >= LEAST_TIMES:
        yield "times: all arrivals and run times are whole thousands of seconds: milliseconds?"


def _limits(trace: Trace) -> Iterator[str]:
    if not trace.has_estimates:
        yield f"{ESTIMATES}: the log has no limits of run times, so that policies know run times exactly"
        return
    ratio = (trace.run_s / trace.estimate_s)[trace.estimate_s != trace.run_s]  # an unknown limit is the run time
    over = ratio > OVERRUN
    if over.any() and over.mean() > MOST_OVERRUN:
        median = f"the median is {np.median(ratio[over]):,.3g} times"
        yield f"limits: {over.mean():.0%} of the jobs ran far longer than their limit ({median}): limits in minutes?"


def _size(trace: Trace, capacity: Mapping[str, float]) -> Iterator[str]:
    end = (trace.submit_s + np.nan_to_num(trace.wait_s) + trace.run_s).max() - trace.submit_s[0]
    small, loaded = [], []
    for name, there in capacity.items():
        place = trace.resources.index(name)
        held, work = least_held(trace, place), float(_amount(trace, place) @ trace.run_s)
        if held > SLACK * there:
            small.append(f"{held:,.10g} {name} were in use at once, and the machines have {there:,.10g}")
        if work > MOST_LOAD * there * end:
            busy = f"{work / there / end:,.0%}" if there else "more than there is"
            loaded.append(f"{busy} of {there:,.10g} {name}, from the first arrival to the last end")
    if small:
        yield f"{SIZE}: {'; '.join(small)}: are the machines larger?"
    if loaded:
        yield f"load: {'; '.join(loaded)}: are the machines larger?"


def _misfits(trace: Trace, capacity: Mapping[str, float]) -> Iterator[str]:
    fit = fits_somewhere(trace)
    for name, there in capacity.items():
        fit &= _amount(trace, trace.resources.index(name)) <= there
    work = trace.nodes * trace.run_s * trace.demand[:, 0]
    jobs, share = float((~fit).mean()), float(work[~fit].sum() / max(work.sum(), 1.0))
    if max(jobs, share) > MOST_MISFITS:
        yield f"misfits: {jobs:.0%} of the jobs, with {share:.0%} of the work, fit on none of the machines"
