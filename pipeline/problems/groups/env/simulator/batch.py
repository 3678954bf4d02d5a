"""Compiled simulator of user groups: many episodes in lock step."""

from typing import Any

import numpy as np
from numba import get_num_threads

from pipeline.core.types import BoolArray, FloatArray, IntArray
from pipeline.problems.groups.env.nouns import JobsBatch, Observation, Served, Setting, SharedCluster
from pipeline.problems.groups.env.simulator.kernels import BY_ESTIMATE, ISOLATED, LASTING, begin_all, play_rows
from pipeline.problems.groups.env.simulator.state import Rules, State, empty_state, state_under_way
from pipeline.simulation.compiled import Span, inlined, threaded
from pipeline.simulation.simulator import Layout, Played, copy_episodes, spans


def _observation(s: State, rules: Rules, rows: IntArray) -> Observation:
    """Return observations in which all sums are still 0."""
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


@threaded(lambda s, rules, rows, *_: len(rows))
def _observe_all(span: Span, s: State, rules: Rules, rows: IntArray, view: Observation) -> None:
    for i in range(*span):
        _observe(s, rules, rows[i], view, i)


@inlined
def _observe(s: State, rules: Rules, b: int, view: Observation, i: int) -> None:
    now = view.now[i]
    for k in range(s.runs[b]):
        job = s.running[s.first[b] + k]
        g = s.group[job]
        view.running[i, g] += 1
        view.left[i, g] += max(s.estimate[job] - (now - s.start[job]), 0.0) * s.held[job]
        if s.start[job] + s.estimate[job] <= now + rules.interval:
            for r in range(s.capacity.shape[0]):
                view.releasing[i, g, r] += s.demand[job, r]
    for g in range(s.head.shape[1]):
        for q in range(s.head.shape[2]):
            job = s.head[b, g, q]
            if job < s.to_come[b]:
                view.head_waited[i, g, q] = now - s.arrival[job]
                view.head_estimate[i, g, q] = s.estimate[job]
                for r in range(s.capacity.shape[0]):
                    view.head_demand[i, g, q, r] = s.demand[job, r]
            while job < s.to_come[b]:
                view.waiting[i, g, q] += 1
                view.waiting_work[i, g, q] += s.estimate[job] * s.held[job]
                view.waited[i, g, q] += now - s.arrival[job]
                for r in range(s.capacity.shape[0]):
                    view.waiting_demand[i, g, q, r] += s.demand[job, r]
                job = s.following[job]


LAYOUT = Layout(
    of_jobs=(*JobsBatch._fields[1:], "weight", "held", "following", "start", "ends", "running"),
    numbers=("following", "running", "to_come", "head"),
    fixed=("capacity", "orders", "base", "rank"),
)


class GroupsSimulator:
    """The episodes of a batch; each awaits a setting at the beginning of every interval until it is over."""

    def __init__(self, jobs: JobsBatch, cluster: SharedCluster, weight: FloatArray) -> None:
        self._hold(jobs, cluster, empty_state(jobs, cluster, weight, get_num_threads()))
        begin_all(self._state, self._rules)
        self._rows = np.flatnonzero(~self._state.over)

    @classmethod
    def under_way(cls, jobs: JobsBatch, cluster: SharedCluster, *others: Any) -> "GroupsSimulator":
        """Return one episode under way; for further arguments see `state_under_way`."""
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
        """Return the number [B] of every episode's next decision, from 0."""
        return self._state.number.copy()

    @property
    def now(self) -> FloatArray:
        """Return the time [B] of every episode."""
        return np.asarray(self._state.number * self._rules.interval)

    @property
    def gained(self) -> FloatArray:
        """Return the rewards [B] so far: minus the cost of waiting, summed over groups."""
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
        """Return the observations of some episodes, as copies."""
        numbers = np.array(rows, dtype=np.int64, order="C")
        view = _observation(self._state, self._rules, numbers)
        _observe_all(self._state, self._rules, numbers, view)
        return view

    def step(self, rows: IntArray, setting: Setting) -> FloatArray:
        """Play one interval in some episodes; return the cost of waiting [rows, G] in it."""
        costs = self._play(rows, setting, LASTING)
        self._gained[rows] -= costs.sum(axis=1)
        if self._state.over[rows].any():
            self._rows = np.flatnonzero(~self._state.over)
        return costs

    def what_if(
        self, rows: IntArray, setting: Setting, isolated: bool = False, by_estimate: bool = False
    ) -> FloatArray:
        """Return the costs that `step` would return, without changing the episodes; repetitions are allowed.

        Args:
            rows: episodes.
            setting: a setting for each row.
            isolated: each group is limited only by its share, as if there were no other groups.
            by_estimate: no job arrives, and jobs end at their estimates; jobs past their estimate end immediately.
        """
        return self._play(rows, setting, ISOLATED * isolated + BY_ESTIMATE * by_estimate)

    def served(self) -> Served:
        """Return the outcome of every job, as if episodes that are not over were cut now."""
        s, episode, count = self._state, self.jobs.episode, len(self.jobs.arrival)
        start, ends, now = s.start[:count].copy(), s.ends[:count], self.now
        left = np.zeros(self.jobs.episodes, dtype=np.bool_)
        left[episode[np.isnan(start)]] = True  # their running jobs are cut, too; other episodes' run to their end
        finish = np.where(left[episode] & (ends > now[episode]), np.nan, ends)
        unfinished = np.bincount(episode, np.isnan(finish), self.jobs.episodes)
        last = np.zeros(self.jobs.episodes)
        np.fmax.at(last, episode, finish)
        end = np.asarray(np.where(unfinished > 0, now, last))
        ran = np.where(np.isnan(start), 0.0, s.held * (np.minimum(ends, end[episode]) - start))
        busy = np.bincount(episode, ran, self.jobs.episodes).astype(np.float64)
        return Served(start, finish, end, busy)

    def played(self, rows: IntArray) -> Played:
        """Return the jobs of some episodes with their outcomes so far, or to their end if all of them have started."""
        s, (jobs, bounds) = self._state, spans(self._state.first, rows)
        over, cut = self.ended(rows)
        now, each = self.now[rows], np.diff(bounds)
        finish = np.where(np.repeat(over & ~cut, each) | (s.ends[jobs] <= np.repeat(now, each)), s.ends[jobs], np.nan)
        finish[np.isnan(s.start[jobs])] = np.nan
        end = np.where(over & ~cut, np.maximum.reduceat(finish, bounds[:-1]), now)
        return Played(bounds, s.arrival[jobs], s.duration[jobs], s.start[jobs], finish, end)

    def fork(self, rows: IntArray) -> "GroupsSimulator":
        """Return independent copies of some episodes; repetitions are allowed."""
        s, (jobs, bounds) = self._state, spans(self._state.first, rows)
        mine = JobsBatch(bounds, *(getattr(s, name)[jobs] for name in JobsBatch._fields[1:]))
        copy = GroupsSimulator(mine, self.cluster, s.weight[jobs])
        copy.overwrite(np.arange(len(rows)), self, rows)
        return copy

    def overwrite(self, rows: IntArray, source: "GroupsSimulator", which: IntArray) -> None:
        """Replace episodes, each with enough room, with copies of another simulator's."""
        s = self._state
        copy_episodes(s, rows, source._state, which, LAYOUT)
        self._gained[rows] = source._gained[which]
        self.jobs = JobsBatch(s.first, *(getattr(s, name) for name in JobsBatch._fields[1:]))
        self._rows = np.flatnonzero(~s.over)

    def _play(self, rows: IntArray, setting: Setting, how: int) -> FloatArray:
        self._check(rows, setting)
        # Copies of one kind: kernels would be compiled again for another memory order or for read-only arrays.
        numbers, share, order = (np.array(one, dtype=np.int64, order="C") for one in (rows, *setting))
        costs = np.empty(order.shape)
        play_rows(self._state, self._rules, numbers, share, order, how, costs)
        return costs

    def _check(self, rows: IntArray, setting: Setting) -> None:
        """Check shapes and orders, because kernels read beyond the end of an array without an error."""
        shape = (len(rows), self.cluster.groups, len(self.cluster.capacity))
        if setting.share.shape != shape or setting.order.shape != shape[:2]:
            raise ValueError(
                f"share {setting.share.shape} and order {setting.order.shape}; expected {shape} and {shape[:2]}"
            )
        wrong = (setting.order < 0) | (setting.order >= len(self.cluster.orders))
        if wrong.any():
            raise ValueError(f"order {setting.order[wrong][0]}; expected 0 to {len(self.cluster.orders) - 1}")
