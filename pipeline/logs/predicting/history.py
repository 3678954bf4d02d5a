"""What was known of each job of a log when it was submitted: what was asked for, and what its user's jobs had done.

Jobs count as begun and ended by the log's own schedule, whatever schedule they are played in later, so that what is
known of a job is the same for every policy; where the log does not say how long a job waited, as if it had not. A job
that had not ended by the submission gives nothing away but that it was there, and how long it had run by then. Memory
is not looked at: logs tell what was used where they do not know what was asked for.

A log without estimates or users leaves those features unknown (nan).
"""

import heapq
import math
from collections import defaultdict, deque
from collections.abc import Sequence
from math import nan
from typing import NamedTuple

import numpy as np

from pipeline.core import THOUSANDTHS, FloatArray
from pipeline.logs.trace import DAY_S, Trace

KEPT = 10  # ended jobs that are looked back at, of each likeness
LATEST = 3  # of the user's, looked at one by one
SHORT_S = 60.0  # a job that ended by then has most likely failed
HOUR_S = 3600.0
UNKNOWN = -1.0
LIKE = ("user", "estimate", "request", "processors")  # whose ended jobs are looked at together
OF_LIKE = ("last", "mean_log", "mean", "least", "short", "of_estimate", "count")
OWN = ("estimate", "processors", "user", "hour", "weekday")
OF_USER = (
    *(f"last_{k}" for k in range(LATEST)),
    *(f"last_{k}_estimate" for k in range(LATEST)),
    *("present", "since_end", "since_submission", "estimate_before", "processors_before"),
    *("longest_running", "running", "alike_present", "alike_running"),
)
Likeness = tuple[float, float, float]  # user, estimate, processors; 0 = whatever they are
FEATURES = (*OWN, *(f"{like}_{name}" for like in LIKE for name in OF_LIKE), *OF_USER)


class Asked(NamedTuple):
    """A log's jobs by its own schedule."""

    submit: FloatArray  # [J]  s
    begin: FloatArray  # [J]
    end: FloatArray  # [J]
    run: FloatArray  # [J]
    estimate: FloatArray  # [J]  nan = the log has none
    processors: FloatArray  # [J]  of its first resource, on all nodes
    user: FloatArray  # [J]  nan = unknown


def asked(trace: Trace) -> Asked:
    """Return a log's jobs by its own schedule."""
    begin = trace.submit_s + np.nan_to_num(trace.wait_s)
    estimate = trace.estimate_s if trace.has_estimates else np.full(len(trace.id), np.nan)
    processors = trace.nodes * trace.demand[:, 0] / THOUSANDTHS
    user = np.where(trace.user >= 0, trace.user, np.nan)
    return Asked(trace.submit_s, begin, begin + trace.run_s, trace.run_s, estimate, processors, user)


class _Columns(NamedTuple):
    """The same, as lists: they are looked at one by one."""

    submit: list[float]
    begin: list[float]
    end: list[float]
    run: list[float]
    estimate: list[float]
    processors: list[float]
    user: list[float]


class _Past:
    """What has happened by a time: jobs that have ended, by likeness, and each user's jobs that are still there."""

    def __init__(self, jobs: Asked) -> None:
        self.jobs = _Columns(*(column.tolist() for column in jobs))
        estimate = np.nan_to_num(jobs.estimate, nan=UNKNOWN).tolist()  # nan is never like itself
        asked_for = list(zip(self.jobs.user, estimate, self.jobs.processors, strict=True))
        self.like = [[(u, 0.0, 0.0), (u, e, 0.0), (u, e, p), (u, 0.0, p)] for u, e, p in asked_for]
        self._ends: list[tuple[float, int]] = []
        self.ended: defaultdict[Likeness, deque[int]] = defaultdict(lambda: deque(maxlen=KEPT))
        self.present: defaultdict[float, dict[int, None]] = defaultdict(dict)  # by user, in order of submission
        self.submitted: dict[float, int] = {}  # the user's last one
        self.ended_at: dict[float, float] = {}

    def go_to(self, time: float) -> None:
        """Let jobs end that have ended by a time."""
        while self._ends and self._ends[0][0] <= time:
            end, job = heapq.heappop(self._ends)
            for likeness in self.like[job]:
                self.ended[likeness].append(job)
            self.present[self.jobs.user[job]].pop(job)
            self.ended_at[self.jobs.user[job]] = end

    def submit(self, job: int) -> None:
        """Let a job of a known user be submitted."""
        self.submitted[self.jobs.user[job]] = job
        self.present[self.jobs.user[job]][job] = None
        heapq.heappush(self._ends, (self.jobs.end[job], job))

    def of_likes(self, job: int) -> list[float]:
        """Return OF_LIKE of the ended jobs of each likeness."""
        return [value for likeness in self.like[job] for value in self._of_like(list(self.ended[likeness]))]

    def _of_like(self, ended: list[int]) -> list[float]:
        if not ended:
            return [*[nan] * (len(OF_LIKE) - 1), 0.0]
        count, run = len(ended), [self.jobs.run[job] for job in ended]
        log, short = sum(math.log(max(each, 1.0)) for each in run), sum(each <= SHORT_S for each in run)
        share = sum(self.jobs.run[job] / self.jobs.estimate[job] for job in ended)
        return [run[-1], log / count, sum(run) / count, min(run), short / count, share / count, float(count)]

    def of_user(self, job: int, time: float) -> list[float]:
        """Return OF_USER: the user's last jobs one by one, and those that are still there."""
        jobs, user = self.jobs, self.jobs.user[job]
        last = list(self.ended[user, 0.0, 0.0])[: -LATEST - 1 : -1]
        lacking = [nan] * (LATEST - len(last))
        before = self.submitted.get(user)
        asked_before = [nan] * 3
        if before is not None:
            shares = (column[before] / column[job] for column in (jobs.estimate, jobs.processors))
            asked_before = [time - jobs.submit[before], *shares]
        present = list(self.present[user])
        alike = [other for other in present if self.like[other] == self.like[job]]
        for_how_long, of_alike = self._running(present, time), self._running(alike, time)
        return [
            *(*(jobs.run[other] for other in last), *lacking),
            *(*(jobs.estimate[other] / jobs.estimate[job] for other in last), *lacking),
            *(float(len(present)), time - self.ended_at.get(user, nan), *asked_before),
            *(max(for_how_long, default=-1.0), float(len(for_how_long))),
            *(float(len(alike)), min(of_alike, default=-1.0)),
        ]

    def _running(self, present: Sequence[int], time: float) -> list[float]:
        """Return for how long those of the jobs have run that have begun."""
        return [time - self.jobs.begin[job] for job in present if self.jobs.begin[job] <= time]


def features(jobs: Asked) -> FloatArray:
    """Return what was known of each job [J, FEATURES]."""
    past, found = _Past(jobs), np.full((len(jobs.submit), len(FEATURES)), np.nan)
    for job, time in enumerate(jobs.submit.tolist()):
        past.go_to(time)
        own = (jobs.estimate[job], jobs.processors[job], jobs.user[job], time / HOUR_S % 24, time / DAY_S % 7)
        found[job, : len(OWN)] = own
        if not np.isnan(jobs.user[job]):
            found[job, len(OWN) :] = [*past.of_likes(job), *past.of_user(job, time)]
            past.submit(job)
    return found
