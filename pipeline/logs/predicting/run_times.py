"""Predict run times of a log's jobs by gradient boosting of regression trees, learned from its training period.

What is told of a job is one number, the mean of three predictions: the median, which takes a job that may run for days
for a short one; the squared mean of the square root, which less so; and the estimate times the mean share of it that is
used, where the log has estimates, which takes a job that may fail at once for a long one. It is never above the user's
estimate.

What is told of the jobs that are learned from is made from earlier ones, part by part (of the first fifth from the
third: nothing lies before it, and what is known of jobs right behind it holds its run times). A policy that learns from
them, or draws run times by them, would else take predictions for better than those of jobs to come are. Where fewer
than 200 jobs are learned from, there is nothing to divide, and all are told what these say.

One thread: sums over jobs taken in another order would differ in their last bits.
"""

import numpy as np

from pipeline.core import FloatArray, IntArray
from pipeline.errors import UserError
from pipeline.logs.predicting.history import asked, features
from pipeline.logs.trace import Trace

TREES, LEAVES, JOBS_OF_LEAF, RATE = 200, 15, 20, 0.05  # of the boosting
SHORTEST_S = 1.0  # that is told
PARTS = 5  # of the jobs that are learned from


def told(trace: Trace, learned: IntArray, known: FloatArray | None = None) -> FloatArray:
    """Return what policies are told of each job's run time [J], in whole seconds.

    Args:
        trace: the log.
        learned: places of the jobs that are learned from.
        known: its `features`, where they are there already.

    Raises:
        UserError: the log says neither whose its jobs are nor what users estimated.
    """
    must_tell(trace)
    shown = features(asked(trace)) if known is None else known
    found, parts = _told(trace, learned, shown), np.array_split(np.sort(learned), PARTS)
    if len(parts[-1]) >= 2 * JOBS_OF_LEAF:  # of fewer nothing can be learned
        for k, part in enumerate(parts):
            others = np.concatenate(parts[:k]) if k else parts[2]
            found[part] = _told(trace, others, shown)[part]
    return found


def _told(trace: Trace, learned: IntArray, shown: FloatArray) -> FloatArray:
    root = boosted(trace, learned, shown, np.sqrt(trace.run_s))
    median = np.exp(boosted(trace, learned, shown, np.log(trace.run_s), loss="quantile", quantile=0.5))
    found = [within(trace, median), within(trace, np.maximum(root, 0.0) ** 2)]
    if trace.has_estimates:
        share = boosted(trace, learned, shown, trace.run_s / trace.estimate_s)
        found.append(within(trace, share * trace.estimate_s))
    return within(trace, np.mean(found, axis=0))


def predicted(trace: Trace, learned: IntArray) -> Trace:
    """Return a log whose estimates are what is predicted; arguments and errors are those of `told`."""
    return trace._replace(estimate_s=told(trace, learned), has_estimates=True)


def must_tell(trace: Trace) -> None:
    """Refuse a log from which nothing can be learned.

    Raises:
        UserError: it has neither users nor estimates.
    """
    if not trace.has_estimates and (trace.user < 0).all():
        raise UserError("policies_know: the log has neither users nor estimates to predict from; expected durations")


def within(trace: Trace, run_s: FloatArray) -> FloatArray:
    """Return run times [..., J] in whole seconds, at least one and no more than users' estimates."""
    most = np.maximum(trace.estimate_s, SHORTEST_S) if trace.has_estimates else np.inf
    return np.asarray(np.minimum(np.maximum(np.round(run_s), SHORTEST_S), most))


def boosted(trace: Trace, learned: IntArray, shown: FloatArray, target: FloatArray, **loss: str | float) -> FloatArray:
    """Return what boosted trees make of a target [J], learned from some jobs; `loss`: other than squared errors."""
    from sklearn.ensemble import HistGradientBoostingRegressor  # seconds that nobody else need wait
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
    shown = shown[:, ~np.isnan(shown[learned]).all(axis=0)]  # scikit-learn wants a value to split by
    with threadpool_limits(limits=1, user_api="openmp"):
        return np.asarray(model.fit(shown[learned], target[learned]).predict(shown), dtype=np.float64)
