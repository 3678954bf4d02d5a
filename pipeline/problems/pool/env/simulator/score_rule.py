"""Evolved scores: weighted features of a job and of the cluster, with optional tanh units.

The legal job with the best score starts; if that score is below 0, the step passes. Products such as "long times the
work still expected" let a weighted sum express rules, for example that long jobs wait while short ones arrive. Shares,
ratios and logarithms apply to clusters of any size; a job is long relative to the mean duration of the jobs so far.
"""

from typing import NamedTuple

import numpy as np

from pipeline.core.types import FloatArray
from pipeline.problems.pool.env.simulator.linear_rule import LEAST_SHARE, alignment
from pipeline.problems.pool.env.simulator.state import State
from pipeline.simulation.compiled import inlined

# The weighted features, in order: those of every job, then those of long jobs (0 for other jobs).
OF_ALL = (
    "always", "length", "log_length", "dominant", "aligned", "log_dominant", "tight", "slowed", "waited", "short_more",
    "outlasts", "ended_outlasts", "endless_length", "endless_tight", "endless_outlasts", "endless_dominant",
    "others_fit", "endless_others_fit", "ended_others_fit", "ended_length", "ended_log_dominant", "ended_aligned",
    "crowded_length", "crowded_log_dominant", "crowded_others_fit",
)  # fmt: skip
OF_LONG = (
    "long", "long_left", "long_more", "long_full", "long_short_jobs", "long_long_jobs", "long_tight", "long_backlog",
    "long_coming", "long_idle", "long_running", "long_length_more", "long_load", "long_left_squared", "long_arrived",
    "long_outlasts", "long_waited", "long_endless", "long_endless_short_jobs", "long_short_waits",
    "long_ended_short_waits", "long_dominant", "long_endless_waited", "long_short_work", "long_full_more", "long_quiet",
    "long_endless_outlasts", "long_others_fit", "long_ended", "long_ended_crowded",
)  # fmt: skip
FEATURES = OF_ALL + OF_LONG
COUNT, COMMON = len(FEATURES), len(OF_ALL)

SPAN = 50.0  # steps of future arrivals at which `left` is 1; arrivals last as long in DeepRM
AGE = 20.0  # steps: the unit of waiting
OTHERS = 5  # jobs at which `others_fit` is 1
CROWD = 20.0  # jobs in the backlog at which it counts as full
QUIET = 0.3  # load below which waiting for arrivals hardly pays
WORK, KNOWN = 1.845, 20.0  # prior of a job's work, in steps of the whole cluster, and its weight in jobs
MOST_LOAD = 2.2
LONG = 1.25  # jobs are long from this multiple of the mean duration of the jobs so far and FEW assumed ones
USUAL, FEW = 4.0, 3.0  # duration of an assumed job in steps, and number of assumed jobs


class Moment(NamedTuple):
    """Features that all waiting jobs of an episode share."""

    long_from: float  # duration in steps from which a job is long
    left: float  # share of SPAN in which jobs still arrive; 1 if the end is unknown
    ended: float  # 1: arrivals have ended
    endless: float  # 1: the end of arrivals is unknown
    load: float  # share of the cluster that arrives, known or estimated
    arrived: float  # jobs so far
    short: float  # short jobs in slots
    long: float  # long jobs in slots
    short_work: float  # work of the short ones, in steps of the whole cluster
    full: float  # 1: all slots hold long jobs
    backlog: float  # jobs in the backlog
    running: float  # remaining work of running jobs, in steps of the whole cluster
    last: float  # steps until the last running job ends, up to the horizon
    idle: float  # 1: no job runs


@inlined
def _dominant(s: State, b: int, m: int) -> float:
    share = 0.0
    for r in range(s.capacity.shape[0]):
        share = max(share, s.slot_demand[b, m, r] / float(s.capacity[r]))
    return share


@inlined
def _load(s: State, b: int) -> float:
    """Return the load as a share: the known one, or an estimate from the jobs so far and 1.2 assumed ones."""
    if s.load[b] >= 0.0:
        return float(min(MOST_LOAD, s.load[b] / 100.0))
    count = s.arrived[s.to_come[b], 0] - s.arrived[s.first[b], 0]
    work, resources = 0.0, s.capacity.shape[0]
    for r in range(resources):
        units = s.arrived[s.to_come[b], 2 + r] - s.arrived[s.first[b], 2 + r]
        work += units / float(s.capacity[r]) / resources
    each = (work + KNOWN * WORK) / (count + KNOWN)
    return float(min(MOST_LOAD, each * (count + 1.2) / (s.now[b] + 3.0)))


@inlined
def moment(s: State, b: int, end: float) -> Moment:
    """Return the shared features of an episode's jobs; `end`: steps until arrivals end, inf if unknown."""
    steps, resources, slots = s.free.shape[1], s.capacity.shape[0], s.slot_job.shape[1]
    count = s.arrived[s.to_come[b], 0] - s.arrived[s.first[b], 0]
    steps_so_far = s.arrived[s.to_come[b], 1] - s.arrived[s.first[b], 1]
    long_from = LONG * (steps_so_far + FEW * USUAL) / (count + FEW)
    short, long, work = 0, 0, 0.0
    for m in range(slots):
        length = s.slot_duration[b, m]
        if length >= long_from:
            long += 1
        elif length > 0:
            short += 1
            work += length * _dominant(s, b, m)
    running, last = 0.0, 0
    for t in range(steps):
        row = s.head[b] + t
        if row >= steps:
            row -= steps
        used = 0.0
        for r in range(resources):
            used += 1.0 - s.free[b, row, r] / float(s.capacity[r])
        running += used / resources
        if used > 0.0:
            last = t + 1
    return Moment(
        long_from,
        min(1.0, end / SPAN),
        1.0 if end <= 0.0 else 0.0,
        1.0 if np.isinf(end) else 0.0,
        _load(s, b),
        float(count),
        float(short),
        float(long),
        work,
        1.0 if long == slots else 0.0,
        float(s.to_come[b] - s.queue[b]),
        running,
        float(last),
        1.0 if last == 0 else 0.0,
    )


@inlined
def describe(s: State, b: int, m: int, x: Moment, f: FloatArray) -> None:
    """Write the features of the job of a slot into f[b]."""
    length, waited = float(s.slot_duration[b, m]), float(s.now[b] - s.arrival[s.slot_job[b, m]])
    dominant, left = _dominant(s, b, m), np.inf
    for r in range(s.capacity.shape[0]):
        left = min(left, (s.free[b, s.head[b], r] - s.slot_demand[b, m, r]) / float(s.capacity[r]))
    long, scaled = length >= x.long_from, length / 15.0
    more, outlasts = x.load * x.left * (1.0 - x.endless), max(0.0, length - x.last) / 15.0
    f[b, 0] = 1.0
    f[b, 1] = scaled
    f[b, 2] = np.log(length)
    f[b, 3] = dominant
    f[b, 4] = alignment(s, b, m)
    f[b, 5] = np.log(max(dominant, LEAST_SHARE))
    f[b, 6] = 1.0 - left
    f[b, 7] = np.log(1.0 + waited / length)
    f[b, 8] = min(5.0, waited / AGE)
    f[b, 9] = 0.0 if long else more
    f[b, 10] = outlasts
    f[b, 11] = x.ended * outlasts
    f[b, 12] = x.endless * scaled
    f[b, 13] = x.endless * (1.0 - left)
    f[b, 14] = x.endless * outlasts
    f[b, 15] = x.endless * dominant
    others, crowd = _others_fit(s, b, m), min(1.0, x.backlog / CROWD)
    f[b, 16] = others
    f[b, 17] = x.endless * others
    f[b, 18] = x.ended * others
    f[b, 19] = x.ended * scaled
    f[b, 20] = x.ended * f[b, 5]
    f[b, 21] = x.ended * f[b, 4]
    f[b, 22] = crowd * scaled
    f[b, 23] = crowd * f[b, 5]
    f[b, 24] = crowd * others
    for k in range(COMMON, COUNT):
        f[b, k] = 0.0
    if long:
        _describe_long(x, Length(scaled, more, outlasts, 1.0 - left, dominant, np.log(1.0 + waited / AGE)), b, f)
        f[b, COMMON + 5] = x.long / s.slot_job.shape[1]
        f[b, COMMON + 27] = others
        f[b, COMMON + 28] = x.ended
        f[b, COMMON + 29] = x.ended * crowd


@inlined
def _others_fit(s: State, b: int, m: int) -> float:
    """Return how many other waiting jobs could each start alongside the job of a slot, as a share of OTHERS."""
    count = 0
    for other in range(s.slot_job.shape[1]):
        if other != m and s.slot_duration[b, other] > 0:
            fits = True
            for r in range(s.capacity.shape[0]):
                free = s.free[b, s.head[b], r] - s.slot_demand[b, m, r]
                fits = fits and s.slot_demand[b, other, r] <= free
            count += fits
            if count == OTHERS:
                break
    return count / float(OTHERS)


class Length(NamedTuple):
    """Properties of a long job that its features combine."""

    scaled: float
    more: float
    outlasts: float
    tight: float
    dominant: float
    age: float


@inlined
def _describe_long(x: Moment, job: Length, b: int, f: FloatArray) -> None:
    short, short_waits = min(1.0, x.short / 10.0), 1.0 if x.short > 0.0 else 0.0
    at = COMMON
    f[b, at] = 1.0
    f[b, at + 1] = x.left
    f[b, at + 2] = job.more
    f[b, at + 3] = x.full
    f[b, at + 4] = short
    f[b, at + 6] = job.tight
    f[b, at + 7] = min(1.0, x.backlog / CROWD)
    f[b, at + 8] = 1.0 - x.ended
    f[b, at + 9] = x.idle
    f[b, at + 10] = min(3.0, x.running / 5.0)
    f[b, at + 11] = job.scaled * job.more
    f[b, at + 12] = x.load
    f[b, at + 13] = x.left * x.left
    f[b, at + 14] = min(2.0, x.arrived / 20.0) * (1.0 - x.endless)
    f[b, at + 15] = job.outlasts
    f[b, at + 16] = job.age
    f[b, at + 17] = x.endless
    f[b, at + 18] = x.endless * short
    f[b, at + 19] = short_waits
    f[b, at + 20] = x.ended * short_waits
    f[b, at + 21] = job.dominant
    f[b, at + 22] = x.endless * job.age
    f[b, at + 23] = min(3.0, x.short_work)
    f[b, at + 24] = x.full * job.more
    f[b, at + 25] = (1.0 - x.ended) * max(0.0, 1.0 - x.load / QUIET)
    f[b, at + 26] = x.endless * job.outlasts


@inlined
def worth(f: FloatArray, w: FloatArray, b: int, hidden: int) -> float:
    """Return the score of the features in f[b], by w[b]: COUNT weights, then COUNT + 1 for each tanh unit."""
    total = 0.0
    for k in range(COUNT):
        total += w[b, k] * f[b, k]
    for unit in range(hidden):
        at, inside = COUNT + unit * (COUNT + 1), 0.0
        for k in range(COUNT):
            inside += w[b, at + k] * f[b, k]
        total += w[b, at + COUNT] * np.tanh(inside)
    return total
