"""A log with users assigned to groups, cut into windows of time at the loads of a scenario.

docs/workloads.md lists the rules. A window holds the jobs that arrive from its beginning on, but before its end.
"""

from typing import NamedTuple

import numpy as np

from pipeline.core.config import GroupsLog, GroupsScenario
from pipeline.core.logs.plausible import SIZE, unconfirmed
from pipeline.core.logs.predictions import predict_run_times
from pipeline.core.logs.trace import DAY_S, Trace
from pipeline.core.types import SPLITS, THOUSANDTHS, BoolArray, FloatArray, IntArray
from pipeline.errors import TooShortError, UserError
from pipeline.problems.groups.env.nouns import Jobs

ROUNDING = 1e-9  # tolerance for windows that are too long


class Gathered(NamedTuple):
    """A log as jobs of user groups."""

    jobs: Jobs  # with the log's own times
    id: IntArray  # [J]  the log's own number of the job
    user: IntArray  # [J]
    work: FloatArray  # [J]  processors times run time
    load: dict[str, float]  # of each resource in the training period, 1 = all of it
    periods: dict[str, tuple[float, float]]  # beginning and end of each split, in the log's time
    left_out: dict[str, int]  # number of dropped jobs, by reason
    capped: int  # jobs with a reduced run time
    unused: tuple[str, ...]  # resources of the log that the scenario does not have
    doubts: tuple[str, ...]  # implausible properties that are not accepted

    @property
    def own_load(self) -> float:
        """The log's own load, 1 = all of every resource."""
        return float(np.mean(list(self.load.values())))

    def stretch(self, load: int) -> float:
        """Return the factor that gaps between arrivals are multiplied by at a load in percent."""
        return 100 * self.own_load / load

    def within(self, split: str) -> BoolArray:
        """Return which jobs [J] arrive in the period of a split."""
        first, after = self.periods[split]
        return np.asarray((self.jobs.arrival >= first) & (self.jobs.arrival < after))

    def window(self, split: str, start: float, length: float, load: int) -> Jobs:
        """Return the jobs, possibly none, of a window at a load in percent; times count from its beginning."""
        # Rounding must not include a job of the next period.
        after = min(start + length, self.periods[split][1])
        low, high = np.searchsorted(self.jobs.arrival, [start, after])
        jobs = Jobs._make(column[low:high] for column in self.jobs)
        return jobs._replace(arrival=(jobs.arrival - start) * self.stretch(load))


def gathered(trace: Trace, workload: GroupsLog, scenario: GroupsScenario) -> Gathered:
    """Return a log as jobs of a scenario's groups, by the rules of docs/workloads.md.

    Raises:
        UserError: the log lacks data that the scenario needs, or no job is left.
    """
    if (trace.user < 0).all():
        raise UserError("workload: the log does not say whose its jobs are, so that there are no groups of users")
    if scenario.policies_know == "estimates" and not trace.has_estimates:
        raise UserError("policies_know: the log has no estimates; expected durations")
    for name in scenario.resources:
        if name not in trace.resources:
            raise UserError(f"resources: the log has no resource '{name}'; there are: {', '.join(trace.resources)}")
    columns = [trace.resources.index(name) for name in scenario.resources]
    demand = np.asarray(-(-trace.demand[:, columns] // THOUSANDTHS))  # in whole units of the log
    early = trace.submit_s < workload.first_s
    wide = ~early & (demand > np.array(list(scenario.resources.values()))).any(axis=1)
    used = ~early & ~wide
    if not used.any():
        raise UserError(f"workload: no job of {len(used):,} is left: all come before first_s, or want too much")
    longest = np.inf if workload.longest_s is None else workload.longest_s
    arrival, duration = trace.submit_s[used], np.minimum(trace.run_s[used], longest)
    user, work = trace.user[used], trace.demand[used, trace.resources.index("cpu")] / THOUSANDTHS * duration
    first, last = float(arrival[0]), float(arrival[-1])
    if not last > first:
        raise UserError("workload: all jobs of the log arrive at once, so that it has no load which could be changed")
    ends = (workload.train_share, workload.train_share + workload.validation_share)
    training, validation = (first + (last - first) * share for share in ends)
    periods = dict(zip(SPLITS, ((first, training), (training, validation), (validation, last)), strict=True))
    learned = arrival < periods["train"][1]
    known = trace.estimate_s if scenario.policies_know == "estimates" else trace.run_s
    if scenario.policies_know == "predictions":
        known = predict_run_times(trace, np.flatnonzero(used)[learned])
    estimate = np.minimum(known[used], longest)
    of_user, (users, place) = dealt(user[learned], work[learned], scenario.groups), np.unique(user, return_inverse=True)
    group = np.array([of_user.get(int(one), int(one) % scenario.groups) for one in users], dtype=np.int64)[place]
    queue = np.searchsorted(np.array(workload.bounds), estimate).astype(np.int64)
    return Gathered(
        jobs=Jobs(arrival, duration, estimate, demand[used], group, queue),
        id=trace.id[used],
        user=user,
        work=work,
        load=_load(duration[learned], demand[used][learned], periods["train"][1] - periods["train"][0], scenario),
        periods=periods,
        left_out={
            f"arrived before {workload.first_s:g} s": int(early.sum()),
            "want more than the cluster has": int(wide.sum()),
        },
        capped=int((trace.run_s[used] > longest).sum()),
        unused=tuple(name for name in trace.resources if name not in scenario.resources),
        doubts=unconfirmed(trace, (*workload.accept, SIZE), scenario.resources),
    )


def _load(duration: FloatArray, demand: IntArray, span: float, scenario: GroupsScenario) -> dict[str, float]:
    held = duration @ demand
    load = {name: float(held[r] / (units * span)) for r, (name, units) in enumerate(scenario.resources.items())}
    if not any(load.values()):
        raise UserError("workload: no job of the log holds anything that the cluster has, so that it has no load")
    return load


def dealt(user: IntArray, work: FloatArray, groups: int) -> dict[int, int]:
    """Return the group of each user: the one with the most work first, each into the group with the least so far.

    Lower numbers of users and groups win ties.

    >>> dealt(np.array([7, 8, 7, 9]), np.array([3.0, 5.0, 3.0, 4.0]), groups=2)
    {7: 0, 8: 1, 9: 1}
    """
    users, place = np.unique(user, return_inverse=True)
    used = np.bincount(place, weights=work)
    filled, found = np.zeros(groups), dict[int, int]()
    for k in np.argsort(-used, kind="stable"):
        least = int(filled.argmin())
        filled[least] += used[k]
        found[int(users[k])] = least
    return found


def spread(period: tuple[float, float], length: float, count: int) -> list[float]:
    """Return the beginnings of disjoint, evenly spread blocks of time in a period: all that fit, up to `count`.

    Raises:
        UserError: the period is shorter than a block.

    >>> spread((60.0, 100.0), 10.0, 3), spread((60.0, 100.0), 15.0, 3)
    ([60.0, 75.0, 90.0], [60.0, 85.0])
    """
    slack = _slack(period, length)
    blocks = min(fits(slack + length, length), count)
    return [period[0] + k * slack / max(blocks - 1, 1) for k in range(blocks)]


def fits(span: float, length: float) -> int:
    """Return how many disjoint windows fit into a time span that holds at least one.

    >>> fits(0.3, 0.1), fits(0.25, 0.1)
    (3, 2)
    """
    return int(span / length * (1 + ROUNDING))


def random_window(log: Gathered, length: float, load: int, rng: np.random.Generator) -> Jobs:
    """Return a window that begins at a random time of the training period.

    A window without a job is moved to the nearest job.

    Raises:
        UserError: the period is shorter than a window.
    """
    first, slack = log.periods["train"][0], _slack(log.periods["train"], length)
    start = first + float(rng.random()) * slack
    jobs = log.window("train", start, length, load)
    if len(jobs.arrival):
        return jobs
    there = log.jobs.arrival[log.within("train")]
    nearest = float(there[np.abs(there - start).argmin()])
    return log.window("train", min(nearest, first + slack), length, load)


def _slack(period: tuple[float, float], length: float) -> float:
    """Return the time by which a window can be moved within a period."""
    slack = period[1] - period[0] - length
    if slack < 0:
        days = f"{(period[1] - period[0]) / DAY_S:.3g} days of a period ({period[0]:g} to {period[1]:g} s of the log)"
        raise TooShortError(
            f"workload.window: expected at most the {days}, found {length / DAY_S:.3g} days at this load: lower either"
        )
    return slack


def describe(trace: Trace, log: Gathered, scenario: GroupsScenario) -> list[str]:
    """Return notes on a log for users."""
    amounts = ", ".join(f"{units:,} {name}" for name, units in scenario.resources.items())
    widest = ", ".join(f"{most:,}" for most in log.jobs.demand.max(axis=0))
    learned = log.within("train")
    user, work, group = log.user[learned], log.work[learned], log.jobs.group[learned]
    each = (
        f"{g}: {len(np.unique(user[group == g]))}, {(group == g).sum():,}, {work[group == g].sum() / work.sum():.1%}"
        for g in range(scenario.groups)
    )
    return [
        *trace.notes,
        *(f"left out: {count:,} jobs that {why}" for why, count in log.left_out.items() if count),
        f"{len(log.user):,} jobs are used; {log.capped:,} of them run longer than the longest and are cut",
        *([f"not looked at, for the cluster does not tell it: {', '.join(log.unused)}"] if log.unused else []),
        f"cluster: {amounts}; the widest jobs want {widest}",
        f"own load {log.own_load:.1%} (training): "
        f"{', '.join(f'{name} {share:.1%}' for name, share in log.load.items())}",
        f"{len(np.unique(log.user)):,} users; groups in training (users, jobs, share of the work): {'; '.join(each)}",
    ]


def unseen(log: Gathered, split: str) -> str:
    """Return a note on how many users of a period are new since training."""
    there = log.within(split)
    users, place = np.unique(log.user[there], return_inverse=True)
    new = ~np.isin(users, log.user[log.within("train")])
    part = float(log.work[there] @ new[place] / max(log.work[there].sum(), 1.0))
    return f"{split}: {new.sum():,} of {len(users):,} users are not seen in training; they have {part:.1%} of its work"
