"""Play policies on the same jobsets, and tabulate the results, for all policies, loads and jobsets of a scenario.

Heuristics with a compiled rule play on their own; the other policies decide in lock step.

A stream has no end; its jobsets are long pieces. A piece begins with an empty cluster, so only jobs that arrive in the
steps [first, after), after a warm-up, are measured. Jobs keep arriving until the last measured one has started, so that
no policy gains by postponing jobs; a job that has not started when the piece ends counts as never started. Intervals
are over the jobsets, which are independent replications, each with its own warm-up; there are no batch means.

At a load that the cluster cannot sustain, a mean slowdown mostly reflects the length of the piece. There, policies
differ in the number of jobs that finish per 100 measured steps, and in the growth of the backlog.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from pipeline.core.schemas.tables import LENGTHS, STREAM_FAIRNESS
from pipeline.core.types import FloatArray, IntArray, KeyArray, Policy
from pipeline.problems.pool.env.evaluation.metrics import Span, job_results, jobset_results, measured_part, outcome
from pipeline.problems.pool.env.nouns import Cluster, JobBatch, JobSet, Schedule, batch
from pipeline.problems.pool.env.simulator.batch import Batched
from pipeline.problems.pool.env.simulator.rules import Players, players
from pipeline.progress import ShareCallback, no_progress
from pipeline.simulation.results import Results
from pipeline.simulation.rollout import MOST_ABREAST, InPlay, numbered, play_all

LOOKS = 12  # steps per jobset in the table of the backlog
PER_STEPS = 100  # unit of growth


def stream_results(
    policy: str, load: IntArray, jobset: IntArray, batch: JobBatch, schedule: Schedule, step_limit: int, span: Span
) -> Results:
    """Return the results of the measured jobs, and of the backlog; load and jobset [B] name the episodes.

    Utilisation is that of all jobs in the measured steps. Makespan (here the step in which the last measured job
    started) and the share of steps in which a job was withheld refer to the whole episode.
    """
    part, end = measured_part(load, jobset, batch, schedule, span)
    number = (np.arange(len(batch.arrival)) - batch.first[batch.episode])[span.measures(batch)]
    about = (policy, load, jobset, part, end, step_limit)
    return Results(
        job_results(*about).assign(job=number),
        jobset_results(*about).assign(utilisation=utilisation(batch, schedule, span)),
        {
            "backlog": backlog(policy, load, jobset, batch, schedule, span),
            "fairness": fairness(policy, load, part, end, step_limit),
        },
    )


def utilisation(batch: JobBatch, schedule: Schedule, span: Span) -> FloatArray:
    """Return the share [B] of the cluster in use in the measured steps, mean over resources."""
    end = np.where(schedule.finish >= 0, schedule.finish, schedule.steps[batch.episode])  # jobs run until the cut
    inside = np.minimum(end, span.after) - np.maximum(schedule.start, span.first)
    steps = np.where(schedule.start >= 0, np.maximum(inside, 0), 0)
    share = (batch.demand / np.array(span.capacity)).mean(axis=1)
    held = np.bincount(batch.episode, weights=steps * share, minlength=batch.episodes)
    return np.asarray(held / (span.after - span.first))


def backlog(
    policy: str, load: IntArray, jobset: IntArray, batch: JobBatch, schedule: Schedule, span: Span
) -> pd.DataFrame:
    """Return the number of all waiting jobs, and jobs in the system, in some steps up to the last measured step."""
    looks = np.unique(np.linspace(0, span.after - 1, LOOKS).round().astype(np.int64))
    parts = []
    for b in range(batch.episodes):
        mine = slice(batch.first[b], batch.first[b + 1])
        arrived, started, left = (
            passed(time[mine], span.after) for time in (batch.arrival, schedule.start, schedule.finish)
        )
        waiting = arrived - started
        columns = {
            "policy": policy,
            "load": int(load[b]),
            "jobset": int(jobset[b]),
            "step": looks,
            "waiting": waiting[looks],
            "in_system": (arrived - left)[looks],
            "growth": PER_STEPS * slope(waiting[span.first : span.after]),
            "finished": PER_STEPS * (left[span.after] - left[span.first]) / (span.after - span.first),
        }
        parts.append(pd.DataFrame(columns))
    return pd.concat(parts, ignore_index=True)


def passed(time: IntArray, steps: int) -> IntArray:
    """Return how many entries of `time` are at most k, for each step k from 0 to `steps`; -1 means never.

    >>> passed(np.array([0, 2, -1, 2, 9]), 3).tolist()
    [1, 1, 3, 3]
    """
    inside = time[(time >= 0) & (time <= steps)]
    return np.cumsum(np.bincount(inside, minlength=steps + 1))


def slope(value: FloatArray | IntArray) -> float:
    """Return the least-squares slope per value; 0 for a single value.

    >>> slope(np.array([1, 3, 2, 4])), slope(np.array([2, 5])), slope(np.array([7]))
    (0.8, 3.0, 0.0)
    """
    place = np.arange(len(value)) - (len(value) - 1) / 2
    spread = float(place @ place)
    return float(place @ value) / spread if spread else 0.0


def length_bounds(duration: IntArray) -> IntArray:
    """Return the longest duration of each class of job length: up to four classes with about equally many jobs.

    >>> length_bounds(np.array([1, 1, 2, 2, 3, 3, 12, 15])).tolist()
    [1, 2, 3, 15]
    >>> length_bounds(np.array([1, 1, 1, 7])).tolist()
    [1, 7]
    """
    shares = np.arange(1, LENGTHS + 1) / LENGTHS
    return np.unique(np.quantile(duration, shares, method="inverted_cdf"))


def fairness(policy: str, load: IntArray, part: JobBatch, schedule: Schedule, step_limit: int) -> pd.DataFrame:
    """Return results by job length at each load [B]; all loads and policies have the same length classes."""
    found = outcome(part, schedule, step_limit)
    columns = {
        "load": load.astype(np.int64)[part.episode],
        "length": 1 + np.searchsorted(length_bounds(part.duration), part.duration),
        "duration": part.duration.astype(np.int64),
        "slowdown": found.slowdown,
        "wait": found.wait,
        "unfinished": found.unfinished.astype(np.int64),
    }
    frame = pd.DataFrame(columns)
    lengths, classes = frame.groupby("length")["duration"], frame.groupby(["load", "length"])
    total = frame.groupby("load")["slowdown"].sum()
    rows = pd.DataFrame(
        {
            "jobs": classes.size(),
            "mean_slowdown": classes["slowdown"].mean(),
            "share": classes["slowdown"].sum().div(total, level="load"),
            "longest_wait": classes["wait"].max(),
            "unfinished": classes["unfinished"].sum(),
        }
    ).reset_index()
    ends = {"shortest": rows["length"].map(lengths.min()), "longest": rows["length"].map(lengths.max())}
    return rows.assign(policy=policy, **ends)[list(STREAM_FAIRNESS.columns)]


STEPS_ABREAST = 1 << 22


def score(
    policies: Mapping[str, Policy],
    jobsets: Mapping[int, Sequence[JobSet]],
    cluster: Cluster,
    step_limit: int,
    seed: int,
    masked: bool = True,
    on_progress: ShareCallback = no_progress,
    measured: Span | None = None,
) -> dict[str, Results]:
    """Return the results of policies, by name, on jobsets by load.

    Args:
        policies: by their name in the tables; if `masked`, they take only legal actions and skip forced moves.
        jobsets: by load, in percent.
        cluster: the cluster on which they are scheduled.
        step_limit: where an episode is cut; its unfinished jobs count.
        seed: seed of random policies.
        masked: see `policies`.
        on_progress: called with the share that is done.
        measured: the jobs in the tables; None: all. A jobset without any raises a UserError.
    """
    episodes, load, number, key = numbered(jobsets, seed)
    jobs = batch(episodes)
    ends = played(list(policies.values()), jobs, key, cluster, step_limit, masked, on_progress)
    about = {name: (name, load, number, jobs, end, step_limit) for name, end in zip(policies, ends, strict=True)}
    if measured is not None:
        return {name: stream_results(*one, measured) for name, one in about.items()}
    return {name: Results(job_results(*one), jobset_results(*one)) for name, one in about.items()}


def played(
    policies: Sequence[Policy],
    jobs: JobBatch,
    key: KeyArray,
    cluster: Cluster,
    step_limit: int,
    masked: bool = True,
    on_progress: ShareCallback = no_progress,
) -> list[Schedule]:
    """Return the schedule of each policy; `key` [B] seeds the random ones, and for the others see `score`."""
    abreast = max(1, min(MOST_ABREAST, STEPS_ABREAST // cluster.horizon))  # episodes in lock step

    def begin(episode: IntArray) -> InPlay[Players]:
        simulator = Batched(jobs.take(episode), cluster, step_limit, skip_forced=masked)
        return InPlay(simulator, len(simulator.jobs.arrival), simulator.schedule)

    found = play_all(policies, key, abreast, begin, players, on_progress)
    return [Schedule._make(columns) for columns in found]
