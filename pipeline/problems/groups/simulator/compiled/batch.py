"""Many episodes of groups that share a cluster, in lock step, compiled."""

from typing import Any

import numpy as np
from numba import get_num_threads, njit, prange

from pipeline.core import BoolArray, FloatArray, IntArray
from pipeline.problems.groups.nouns import JobsBatch, Observation, Served, Setting, SharedCluster
from pipeline.problems.groups.simulator.compiled.kernels import ALONE, BY_ESTIMATE, LASTING, begin_all, play_rows
from pipeline.problems.groups.simulator.compiled.state import Rules, State, empty_state, state_under_way
from pipeline.simulation.compiled import inlined
from pipeline.simulation.simulator import Layout, Played, copy_episodes, spans


def observe(s: State, rules: Rules, rows: IntArray) -> Observation:
    """Return what the controller sees in some episodes, as copies."""
    view = _empty(s, rules, rows)
    _observe_all(s, rules, rows, view)
    return view


def _empty(s: State, rules: Rules, rows: IntArray) -> Observation:
    by_group = (len(rows), *s.used.shape[1:])
    by_queue = (len(rows), *s.head.shape[1:])
    resources = len(s.capacity)
    return Observation(
        now=s.number[rows] * rules.interval,
        waiting=np.zeros(by_queue, dtype=np.int64),
        waiting_demand=np.zeros((*by_queue, resources), dtype=np.int64),
        waiting_work=np.zeros(by_queue),
        waited=np.zeros(by_queue),
        head_waited=np.zeros(by_queue),
        head_demand=np.zeros((*by_queue, resources), dtype=np.int64),
        head_estimate=np.zeros(by_queue),
        running=np.zeros(by_group[:2], dtype=np.int64),
        used=s.used[rows],
        left=np.zeros(by_group[:2]),
        releasing=np.zeros(by_group, dtype=np.int64),
        recent_jobs=s.recent_jobs[rows],
        recent_work=s.recent_work[rows],
        share=s.share[rows],
        order=s.order[rows],
    )


@njit(cache=True, parallel=True)
def _observe_all(s: State, rules: Rules, rows: IntArray, view: Observation) -> None:
    for i in prange(rows.shape[0]):
        # calls: numba takes writes to a tuple's arrays within prange for dead code
        _observe_running(s, rules, rows[i], view, i)
        for g in range(s.head.shape[1]):
            for q in range(s.head.shape[2]):
                _observe_queue(s, rows[i], view, i, g, q)


@inlined
def _observe_running(s: State, rules: Rules, b: int, view: Observation, i: int) -> None:
    now = view.now[i]
    for k in range(s.runs[b]):
        job = s.running[s.first[b] + k]
        g = s.group[job]
        view.running[i, g] += 1
        view.left[i, g] += max(s.estimate[job] - (now - s.start[job]), 0.0) * s.held[job]
        if s.start[job] + s.estimate[job] <= now + rules.interval:
            for r in range(s.capacity.shape[0]):
                view.releasing[i, g, r] += s.demand[job, r]


@inlined
def _observe_queue(s: State, b: int, view: Observation, i: int, g: int, q: int) -> None:
    job = s.head[b, g, q]
    if job < s.to_come[b]:
        view.head_waited[i, g, q] = view.now[i] - s.arrival[job]
        view.head_estimate[i, g, q] = s.estimate[job]
        for r in range(s.capacity.shape[0]):
            view.head_demand[i, g, q, r] = s.demand[job, r]
    while job < s.to_come[b]:
        view.waiting[i, g, q] += 1
        view.waiting_work[i, g, q] += s.estimate[job] * s.held[job]
        view.waited[i, g, q] += view.now[i] - s.arrival[job]
        for r in range(s.capacity.shape[0]):
            view.waiting_demand[i, g, q, r] += s.demand[job, r]
        job = s.behind[job]


LAYOUT = Layout(
    of_jobs=(*JobsBatch._fields[1:], "weight", "held", "behind", "start", "ends", "running"),
    numbers=("behind", "running", "to_come", "head"),
    fixed=("capacity", "orders", "base", "rank"),
)


class Groups:
    """The episodes of a batch; each awaits a setting at every interval's beginning until it is over."""

    def __init__(self, jobs: JobsBatch, cluster: SharedCluster, weight: FloatArray) -> None:
        self._hold(jobs, cluster, empty_state(jobs, cluster, weight, get_num_threads()))
        begin_all(self._state, self._rules)
        self._rows = np.flatnonzero(~self._state.over)

    @classmethod
    def under_way(cls, jobs: JobsBatch, cluster: SharedCluster, *others: Any) -> "Groups":
        """Return an episode that is under way. Other arguments: `state_under_way`."""
        found = object.__new__(cls)
        found._hold(jobs, cluster, state_under_way(jobs, cluster, get_num_threads(), *others))
        return found

    def _hold(self, jobs: JobsBatch, cluster: SharedCluster, state: State) -> None:
        self.jobs, self.cluster, self._state = jobs, cluster, state
        self._rules = Rules(float(cluster.interval), bool(cluster.borrowing), float(cluster.time_limit))
        self._gained, self._rows = np.zeros(jobs.episodes), np.flatnonzero(~state.over)

    @property
    def rows(self) -> IntArray:
        """Return the episodes that await a decision."""
        return self._rows

    @property
    def interval(self) -> IntArray:
        """Return the number [B] of the decision that every episode is at, from 0 on."""
        return self._state.number.copy()

    @property
    def now(self) -> FloatArray:
        """Return the time [B] of every episode."""
        return np.asarray(self._state.number * self._rules.interval)

    @property
    def gained(self) -> FloatArray:
        """Return the rewards [B] so far: minus what waiting has cost all groups."""
        return self._gained

    def ended(self, rows: IntArray) -> tuple[BoolArray, BoolArray]:
        """Return which of some episodes are over, and which of these were cut."""
        s = self._state
        return s.over[rows], s.over[rows] & (s.head[rows] < s.first[rows + 1, None, None]).any(axis=(1, 2))

    @property
    def used(self) -> IntArray:
        """Return the units [B, G, R] that running jobs hold."""
        return self._state.used[: self.jobs.episodes].copy()

    def observe(self, rows: IntArray) -> Observation:
        """Return what the controller sees in some episodes, as copies."""
        return observe(self._state, self._rules, np.array(rows, dtype=np.int64, order="C"))

    def step(self, rows: IntArray, setting: Setting) -> FloatArray:
        """Play one interval in some episodes; return what their groups' waiting costs in it [rows, G]."""
        costs = self._play(rows, setting, LASTING)
        self._gained[rows] -= costs.sum(axis=1)
        if self._state.over[rows].any():
            self._rows = np.flatnonzero(~self._state.over)
        return costs

    def what_if(self, rows: IntArray, setting: Setting, alone: bool = False, by_estimate: bool = False) -> FloatArray:
        """Return what `step` would, and change nothing; an episode may be named often.

        Args:
            rows: episodes.
            setting: one of each row.
            alone: every group plays as if the others were not there: only its share counts.
            by_estimate: no job arrives, and jobs end by their estimates; those that overran it, at once.
        """
        return self._play(rows, setting, ALONE * alone + BY_ESTIMATE * by_estimate)

    def served(self) -> Served:
        """Return what has become of every job so far: in an episode that goes on, as if it were cut now."""
        s, episode, count = self._state, self.jobs.episode, len(self.jobs.arrival)
        start, ends, now = s.start[:count].copy(), s.ends[:count], self.now
        left = np.zeros(self.jobs.episodes, dtype=np.bool_)
        left[episode[np.isnan(start)]] = True  # their running jobs are cut, too; those of the others run to their end
        finish = np.where(left[episode] & (ends > now[episode]), np.nan, ends)
        unfinished = np.bincount(episode, np.isnan(finish), self.jobs.episodes)
        last = np.zeros(self.jobs.episodes)
        np.fmax.at(last, episode, finish)
        end = np.asarray(np.where(unfinished > 0, now, last))
        ran = np.where(np.isnan(start), 0.0, s.held * (np.minimum(ends, end[episode]) - start))
        busy = np.bincount(episode, ran, self.jobs.episodes).astype(np.float64)
        return Served(start, finish, end, busy)

    def played(self, rows: IntArray) -> Played:
        """Return what became of the jobs of some episodes so far; where all have started, they run to their end."""
        s, (jobs, bounds) = self._state, spans(self._state.first, rows)
        over, cut = self.ended(rows)
        now, each = self.now[rows], np.diff(bounds)
        finish = np.where(np.repeat(over & ~cut, each) | (s.ends[jobs] <= np.repeat(now, each)), s.ends[jobs], np.nan)
        finish[np.isnan(s.start[jobs])] = np.nan
        end = np.where(over & ~cut, np.maximum.reduceat(finish, bounds[:-1]), now)
        return Played(bounds, s.arrival[jobs], s.duration[jobs], s.start[jobs], finish, end)

    def fork(self, rows: IntArray) -> "Groups":
        """Return copies of some episodes, each to be continued on its own; one may be named often."""
        s, (jobs, bounds) = self._state, spans(self._state.first, rows)
        mine = JobsBatch(bounds, *(getattr(s, name)[jobs] for name in JobsBatch._fields[1:]))
        copy = Groups(mine, self.cluster, s.weight[jobs])
        copy.overwrite(np.arange(len(rows)), self, rows)
        return copy

    def overwrite(self, rows: IntArray, source: "Groups", which: IntArray) -> None:
        """Replace episodes, each with room for its jobs, by copies of another simulator's."""
        s = self._state
        copy_episodes(s, rows, source._state, which, LAYOUT)
        self._gained[rows] = source._gained[which]
        self.jobs = JobsBatch(s.first, *(getattr(s, name) for name in JobsBatch._fields[1:]))
        self._rows = np.flatnonzero(~s.over)

    def _play(self, rows: IntArray, setting: Setting, how: int) -> FloatArray:
        self._check(rows, setting)
        # Copies of one kind: kernels are compiled anew for another memory order or for what may not be written.
        numbers, share, order = (np.array(one, dtype=np.int64, order="C") for one in (rows, *setting))
        costs = np.empty(order.shape)
        play_rows(self._state, self._rules, numbers, share, order, how, costs)
        return costs

    def _check(self, rows: IntArray, setting: Setting) -> None:
        """Refuse what kernels would not: they read what lies behind an array without asking."""
        shape = (len(rows), self.cluster.groups, len(self.cluster.capacity))
        if setting.share.shape != shape or setting.order.shape != shape[:2]:
            raise ValueError(
                f"share {setting.share.shape} and order {setting.order.shape}; expected {shape} and {shape[:2]}"
            )
        wrong = (setting.order < 0) | (setting.order >= len(self.cluster.orders))
        if wrong.any():
            raise ValueError(f"order {setting.order[wrong][0]}; expected 0 to {len(self.cluster.orders) - 1}")
