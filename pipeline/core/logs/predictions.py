"""Run times of a log's jobs, predicted by gradient-boosted regression trees from what was known at each submission.

Features describe the request and the user's earlier jobs as in the log's own schedule, so that all policies know the
same in any simulated schedule. Unknown waits count as 0. A job that has not ended by then reveals only its presence
and how long it has run. Memory is not a feature: where the request is unknown, logs report the memory used. Features
that need estimates or users are nan in a log without them.

The prediction is the mean of three: the median, which underestimates jobs that may run for days; the squared mean of
the square root, which does so less; and, if the log has estimates, the estimate times its mean used share, which
overestimates jobs that may fail at once. It never exceeds the user's estimate.

Training jobs form five parts, and each part is predicted from earlier ones. Otherwise, policies that learn from these
predictions would expect later ones to be as good. The first part has no past and is predicted from the third, because
features of jobs right after it include its run times. Fewer than 200 training jobs are not divided.
"""

import heapq
import math
from collections import defaultdict, deque
from collections.abc import Sequence
from math import nan
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from pipeline.core.logs.trace import DAY_S, Trace
from pipeline.core.types import THOUSANDTHS, FloatArray, IntArray
from pipeline.errors import UserError

KEPT = 10  # latest ended jobs of each group
LATEST = 3  # latest ended jobs of the user that are features of their own
SHORT_S = 60.0  # a shorter job has most likely failed
HOUR_S = 3600.0
UNKNOWN = -1.0
GROUPS = ("user", "estimate", "request", "processors")  # ended jobs are grouped by these
OF_GROUP = ("last", "mean_log", "mean", "least", "short", "of_estimate", "count")
OWN = ("estimate", "processors", "user", "hour", "weekday")
OF_USER = (
    *(f"last_{k}" for k in range(LATEST)),
    *(f"last_{k}_estimate" for k in range(LATEST)),
    *("present", "since_end", "since_submission", "estimate_before", "processors_before"),
    *("longest_running", "running", "similar_present", "similar_running"),
)
FEATURES = (*OWN, *(f"{group}_{name}" for group in GROUPS for name in OF_GROUP), *OF_USER)
Group = tuple[float, float, float]  # user, estimate, processors; 0 = any
TREES, LEAVES, JOBS_OF_LEAF, RATE = 200, 15, 20, 0.05  # of the boosting
SHORTEST_S = 1.0  # prediction
PARTS = 5  # of the training jobs
Column = TypeVar("Column")


class SubmittedJobs(NamedTuple, Generic[Column]):
    """A log's jobs by its own schedule."""

    submit: Column  # [J]  s
    begin: Column  # [J]
    end: Column  # [J]
    run: Column  # [J]
    estimate: Column  # [J]  nan = unknown
    processors: Column  # [J]  of its first resource, on all nodes
    user: Column  # [J]  nan = unknown


def submitted_jobs(trace: Trace) -> SubmittedJobs[FloatArray]:
    """Return a log's jobs by its own schedule."""
    begin = trace.submit_s + np.nan_to_num(trace.wait_s)
    estimate = trace.estimate_s if trace.has_estimates else np.full(len(trace.id), np.nan)
    processors = trace.nodes * trace.demand[:, 0] / THOUSANDTHS
    user = np.where(trace.user >= 0, trace.user, np.nan)
    return SubmittedJobs(trace.submit_s, begin, begin + trace.run_s, trace.run_s, estimate, processors, user)


class _Past:
    """State of a log at a time: ended jobs by group, and each user's present jobs."""

    def __init__(self, jobs: SubmittedJobs[FloatArray]) -> None:
        self.jobs = SubmittedJobs[list[float]](*(column.tolist() for column in jobs))  # lists: faster for single jobs
        estimate = np.nan_to_num(jobs.estimate, nan=UNKNOWN).tolist()  # nan does not equal itself
        requests = list(zip(self.jobs.user, estimate, self.jobs.processors, strict=True))
        self.groups = [[(u, 0.0, 0.0), (u, e, 0.0), (u, e, p), (u, 0.0, p)] for u, e, p in requests]
        self._ends: list[tuple[float, int]] = []
        self.ended: defaultdict[Group, deque[int]] = defaultdict(lambda: deque(maxlen=KEPT))
        self.present: defaultdict[float, dict[int, None]] = defaultdict(dict)  # by user, in order of submission
        self.submitted: dict[float, int] = {}  # last job by user
        self.ended_at: dict[float, float] = {}

    def advance(self, time: float) -> None:
        """Move the jobs that have ended by a time from the present to the ended ones."""
        while self._ends and self._ends[0][0] <= time:
            end, job = heapq.heappop(self._ends)
            for group in self.groups[job]:
                self.ended[group].append(job)
            self.present[self.jobs.user[job]].pop(job)
            self.ended_at[self.jobs.user[job]] = end

    def submit(self, job: int) -> None:
        """Submit a job of a known user."""
        self.submitted[self.jobs.user[job]] = job
        self.present[self.jobs.user[job]][job] = None
        heapq.heappush(self._ends, (self.jobs.end[job], job))

    def of_group(self, group: Group) -> list[float]:
        """Return OF_GROUP of the ended jobs of a group."""
        ended = list(self.ended[group])
        if not ended:
            return [*[nan] * (len(OF_GROUP) - 1), 0.0]
        count, run = len(ended), [self.jobs.run[job] for job in ended]
        log, short = sum(math.log(max(each, 1.0)) for each in run), sum(each <= SHORT_S for each in run)
        share = sum(self.jobs.run[job] / self.jobs.estimate[job] for job in ended)
        return [run[-1], log / count, sum(run) / count, min(run), short / count, share / count, float(count)]

    def of_user(self, job: int, time: float) -> list[float]:
        """Return OF_USER: the user's latest ended jobs one by one, and the present ones."""
        jobs, user = self.jobs, self.jobs.user[job]
        last = list(self.ended[user, 0.0, 0.0])[: -LATEST - 1 : -1]
        lacking = [nan] * (LATEST - len(last))
        before = self.submitted.get(user)
        previous = [nan] * 3
        if before is not None:
            shares = (column[before] / column[job] for column in (jobs.estimate, jobs.processors))
            previous = [time - jobs.submit[before], *shares]
        present = list(self.present[user])
        similar = [other for other in present if self.groups[other] == self.groups[job]]
        running, similar_running = self._running(present, time), self._running(similar, time)
        return [
            *(*(jobs.run[other] for other in last), *lacking),
            *(*(jobs.estimate[other] / jobs.estimate[job] for other in last), *lacking),
            *(float(len(present)), time - self.ended_at.get(user, nan), *previous),
            *(max(running, default=-1.0), float(len(running))),
            *(float(len(similar)), min(similar_running, default=-1.0)),
        ]

    def _running(self, present: Sequence[int], time: float) -> list[float]:
        """Return the elapsed run time of each running job."""
        return [time - self.jobs.begin[job] for job in present if self.jobs.begin[job] <= time]


def features(jobs: SubmittedJobs[FloatArray]) -> FloatArray:
    """Return the features of each job [J, FEATURES]."""
    past, found = _Past(jobs), np.full((len(jobs.submit), len(FEATURES)), np.nan)
    for job, time in enumerate(jobs.submit.tolist()):
        past.advance(time)
        own = (jobs.estimate[job], jobs.processors[job], jobs.user[job], time / HOUR_S % 24, time / DAY_S % 7)
        found[job, : len(OWN)] = own
        if not np.isnan(jobs.user[job]):
            of_groups = [value for group in past.groups[job] for value in past.of_group(group)]
            found[job, len(OWN) :] = [*of_groups, *past.of_user(job, time)]
            past.submit(job)
    return found


def predict_run_times(trace: Trace, learned: IntArray, known: FloatArray | None = None) -> FloatArray:
    """Return the predicted run time of each job [J], in whole seconds.

    `learned` are indices of the training jobs, `known` the log's `features`, if already computed. Raises UserError: the
    log has neither users nor estimates.
    """
    if not trace.has_estimates and (trace.user < 0).all():
        raise UserError("policies_know: the log has neither users nor estimates to predict from; expected durations")
    shown = features(submitted_jobs(trace)) if known is None else known
    found, parts = _predict(trace, learned, shown), np.array_split(np.sort(learned), PARTS)
    if len(parts[-1]) >= 2 * JOBS_OF_LEAF:  # fewer are too few to learn from
        for k, part in enumerate(parts):
            others = np.concatenate(parts[:k]) if k else parts[2]
            found[part] = _predict(trace, others, shown)[part]
    return found


def _predict(trace: Trace, learned: IntArray, shown: FloatArray) -> FloatArray:
    root = boosted(trace, learned, shown, np.sqrt(trace.run_s))
    median = np.exp(boosted(trace, learned, shown, np.log(trace.run_s), loss="quantile", quantile=0.5))
    found = [within(trace, median), within(trace, np.maximum(root, 0.0) ** 2)]
    if trace.has_estimates:
        share = boosted(trace, learned, shown, trace.run_s / trace.estimate_s)
        found.append(within(trace, share * trace.estimate_s))
    return within(trace, np.mean(found, axis=0))


def with_predictions(trace: Trace, learned: IntArray) -> Trace:
    """Return a log with predictions as estimates; arguments and errors are those of `predict_run_times`."""
    return trace._replace(estimate_s=predict_run_times(trace, learned), has_estimates=True)


def within(trace: Trace, run_s: FloatArray) -> FloatArray:
    """Return run times [..., J] in whole seconds, at least one and at most users' estimates."""
    most = np.maximum(trace.estimate_s, SHORTEST_S) if trace.has_estimates else np.inf
    return np.asarray(np.minimum(np.maximum(np.round(run_s), SHORTEST_S), most))


def boosted(trace: Trace, learned: IntArray, shown: FloatArray, target: FloatArray, **loss: str | float) -> FloatArray:
    """Return predictions of a target [J] by boosted trees; `loss` replaces squared errors.

    One thread only: sums over jobs in another order would differ in their last bits.
    """
    from sklearn.ensemble import HistGradientBoostingRegressor  # a slow import
    from threadpoolctl import threadpool_limits

    model = HistGradientBoostingRegressor(
        max_iter=TREES,
        learning_rate=RATE,
        max_leaf_nodes=LEAVES,
        min_samples_leaf=JOBS_OF_LEAF,
        early_stopping=False,
        random_state=0,
        **loss,
    )
    shown = shown[:, ~np.isnan(shown[learned]).all(axis=0)]  # scikit-learn needs a value to split by
    with threadpool_limits(limits=1, user_api="openmp"):
        return np.asarray(model.fit(shown[learned], target[learned]).predict(shown), dtype=np.float64)
