"""Scoring of controllers on the same jobsets, and the trajectory of one policy on one jobset.

Decisions of all controllers are valued by the same measure: the waiting that they save compared with the previous
configuration. A learned controller's expectations are in its own measure, as are the discounted rewards after them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from pipeline.core.types import FloatArray, IntArray, KeyArray, uniform
from pipeline.problems.groups.env.evaluation.controllers import Act
from pipeline.problems.groups.env.evaluation.metrics import results
from pipeline.problems.groups.env.nouns import Controller, Jobs, Observation, Setting, SharedCluster, batch
from pipeline.problems.groups.env.simulator.batch import GroupsSimulator
from pipeline.problems.groups.env.simulator.rewards import WAITING, Transition, transitions
from pipeline.progress import ShareCallback, no_progress
from pipeline.simulation.results import Results
from pipeline.simulation.rollout import numbered, to_end

SHOWN = 3  # jobsets of each load with tables of jobs and intervals: for all, these would have millions of rows
STALLED = 1000  # consecutive intervals without a running, arriving or starting job; after these, none can ever start


class Expectation(NamedTuple):
    """The expected value of a learned controller's decisions, and its measure."""

    value: Callable[[Observation], FloatArray]  # [B, G]  of its setting
    objective: str  # a key of WAITING
    against: str  # a key of AGAINST
    gamma: float


class Player(NamedTuple):
    """A controller, ready to be scored."""

    act: Act
    expectation: Expectation | None = None  # rules have none


def controlled(controller: Controller) -> Act:
    """Return a controller, which needs only observations, in the form of one that also gets the simulator."""
    return lambda groups, rows, view, draws: Setting._make(controller(view, draws))


class Game(NamedTuple):
    """The B jobsets that every controller plays."""

    load: IntArray  # [B]
    number: IntArray  # [B]  of the jobset
    episodes: Sequence[Jobs]
    cluster: SharedCluster
    key: KeyArray  # [B]


def score(
    policies: Mapping[str, Player | Controller],
    jobsets: Mapping[int, Sequence[Jobs]],
    cluster: SharedCluster,
    seed: int,
    on_progress: ShareCallback = no_progress,
) -> dict[str, Results]:
    """Return the results of controllers, by name, on jobsets by load."""
    episodes, load, number, key = numbered(jobsets, seed)
    game = Game(load, number, episodes, cluster, key)
    found = {}
    for k, (name, player) in enumerate(policies.items()):
        found[name] = _scored(name, player if isinstance(player, Player) else Player(controlled(player)), game)
        on_progress((k + 1) / len(policies))
    return found


def _scored(name: str, player: Player, game: Game) -> Results:
    jobs = batch(game.episodes)
    groups = GroupsSimulator(jobs, game.cluster, WAITING["delay"](jobs))
    reward, intervals = np.zeros(len(game.load)), np.zeros(len(game.load))
    rows_of_intervals = []
    for turn, transition in enumerate(_transitions(player, groups, game.key, "present")):
        reward[transition.rows] += transition.reward.sum(axis=1)
        intervals[transition.rows] += 1
        rows_of_intervals.append(_rows(name, game, turn, transition))
    mean = reward / np.maximum(intervals, 1)
    found = results(name, game.load, game.number, jobs, groups.served(), game.cluster, mean)
    kept = pd.concat(rows_of_intervals, ignore_index=True)
    if player.expectation is not None:
        kept = _calibrated(kept, player, player.expectation, game)
    shown = found.jobs[found.jobs["jobset"] < SHOWN].reset_index(drop=True)
    return found._replace(jobs=shown, others={**found.others, "intervals": kept})


def _transitions(player: Player, groups: GroupsSimulator, key: KeyArray, against: str) -> Iterator[Transition]:
    turn = np.zeros(len(key), dtype=np.int64)

    def acts(rows: IntArray, view: Observation) -> Setting:
        draws = uniform(key[rows], turn[rows])
        turn[rows] += 1
        return player.act(groups, rows, view, draws)

    return transitions(groups, acts, against)


def _rows(name: str, game: Game, turn: int, transition: Transition) -> pd.DataFrame:
    """Return one interval of the SHOWN jobsets, one row per group."""
    here = np.flatnonzero(game.number[transition.rows] < SHOWN)
    rows, number = transition.rows[here], game.cluster.groups
    share, used = (amount[here] / game.cluster.capacity for amount in (transition.setting.share, transition.view.used))
    columns = {
        "policy": name,
        "load": np.repeat(game.load[rows], number),
        "jobset": np.repeat(game.number[rows], number),
        "interval": turn,
        "group": np.tile(np.arange(number), len(rows)),
        "share": share.max(axis=-1).ravel(),
        "used": used.max(axis=-1).ravel(),
        "waiting": transition.view.waiting[here].sum(axis=-1).ravel(),
        "cost": transition.cost[here].ravel(),
        "reward": transition.reward[here].ravel(),
        "q": np.nan,
        "realised": np.nan,
    }
    return pd.DataFrame(columns)


def _calibrated(kept: pd.DataFrame, player: Player, expectation: Expectation, game: Game) -> pd.DataFrame:
    """Return the intervals' rows with expected values and the discounted rewards that followed."""
    few = np.flatnonzero(game.number < SHOWN)
    jobs = batch([game.episodes[b] for b in few.tolist()])
    groups = GroupsSimulator(jobs, game.cluster, WAITING[expectation.objective](jobs))
    played = list(_transitions(player, groups, game.key[few], expectation.against))
    expected = [expectation.value(transition.view) for transition in played]
    later, realised = np.zeros((len(few), game.cluster.groups)), []
    for transition in reversed(played):
        later[transition.rows] = transition.reward + expectation.gamma * later[transition.rows]
        realised.append(later[transition.rows].ravel())
    return kept.assign(
        q=np.concatenate([one.ravel() for one in expected]).astype(float), realised=np.concatenate(realised[::-1])
    )


class Trajectory(NamedTuple):
    """One jobset under a policy, in N intervals until its last job ends; the last share applies until then."""

    start: FloatArray  # [J]        time; nan = never started
    finish: FloatArray  # [J]        time; nan = unfinished when the episode was cut
    begin: FloatArray  # [N]        of each interval
    share: IntArray  # [N, G, R]  units that each group may use
    used: FloatArray  # [N, G, R]  units that each group's jobs use, mean over the interval
    waiting: IntArray  # [N, G]     jobs at the beginning of the interval

    def wait(self, jobs: Jobs) -> FloatArray:
        """Return the wait of each job [J]; nan = never started."""
        return np.asarray(self.start - jobs.arrival)

    def slowdown(self, jobs: Jobs) -> FloatArray:
        """Return the slowdown of each job [J]; nan = unfinished."""
        return np.maximum((self.finish - jobs.arrival) / jobs.duration, 1.0)


def trajectory(act: Act, jobs: Jobs, cluster: SharedCluster, on_progress: ShareCallback = no_progress) -> Trajectory:
    """Run a policy on a jobset, up to the cluster's time limit or until no job can start.

    Args:
        act: the policy.
        jobs: at least one, in order of arrival.
        cluster: the cluster.
        on_progress: called with the share of the jobs that have arrived.
    """
    groups = GroupsSimulator(batch([jobs]), cluster, np.ones(len(jobs.arrival)))
    shares, waiting, idle = list[IntArray](), list[IntArray](), 0

    def advance(rows: IntArray) -> None:
        nonlocal idle
        view = groups.observe(rows)
        setting = act(groups, rows, view, np.zeros(1))
        shares.append(setting.share[0])
        waiting.append(view.waiting[0].sum(axis=1))
        groups.step(rows, setting)
        stuck = not view.running.any() and not groups.used.any() and view.now[0] > jobs.arrival[-1]
        idle = idle + 1 if stuck else 0
        on_progress(float(np.searchsorted(jobs.arrival, view.now[0])) / len(jobs.arrival))

    for _ in to_end(groups, advance):
        if idle >= STALLED:
            break
    found = groups.served()
    more = max(int(np.ceil(found.end[0] / cluster.interval)) - len(shares), 0)
    begin = cluster.interval * np.arange(len(shares) + more)
    return Trajectory(
        start=found.start,
        finish=found.finish,
        begin=begin,
        share=np.stack([*shares, *shares[-1:] * more]),
        used=mean_use(jobs, found.start, found.finish, np.append(begin, begin[-1] + cluster.interval), cluster.groups),
        waiting=np.stack([*waiting, *[np.zeros_like(waiting[0])] * more]),
    )


def mean_use(jobs: Jobs, start: FloatArray, finish: FloatArray, edges: FloatArray, groups: int) -> FloatArray:
    """Return the units [N, G, R] that each group's jobs use, means over the times between N + 1 edges.

    >>> one = Jobs(*(np.array([value]) for value in (0.0, 4.0, 4.0)), np.array([[3]]), np.array([0]), np.array([0]))
    >>> mean_use(one, np.array([1.0]), np.array([5.0]), np.array([0.0, 2.0, 4.0, 6.0]), groups=1)[:, 0, 0]
    array([1.5, 3. , 1.5])
    """
    used = np.zeros((len(edges) - 1, groups, jobs.demand.shape[1]))
    until = np.where(np.isnan(finish), edges[-1], finish)
    for g in range(groups):
        mine = np.flatnonzero((jobs.group == g) & ~np.isnan(start))
        held = _held(start[mine], jobs.demand[mine], edges) - _held(until[mine], jobs.demand[mine], edges)
        used[:, g] = np.diff(held, axis=0) / np.diff(edges)[:, None]
    return np.maximum(used, 0.0)  # sums of floats may be below 0 by rounding


def _held(time: FloatArray, demand: IntArray, edges: FloatArray) -> FloatArray:
    """Return units * time [N, R] up to each edge, of jobs that use units [J, R] from their times [J] on."""
    order = np.argsort(time)
    none = np.zeros((1, demand.shape[1]))
    units = np.concatenate([none, np.cumsum(demand[order], axis=0)])
    since = np.concatenate([none, np.cumsum(demand[order] * time[order, None], axis=0)])
    begun = np.searchsorted(time[order], edges)
    return np.asarray(units[begun] * edges[:, None] - since[begun])
