"""Record decisions: what an agent and SJF would do where someone plays, and what a tree would see there."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from pipeline.core import BoolArray, FloatArray, IntArray, KeyArray, Observation, Policy
from pipeline.explaining.decisions import joined
from pipeline.explaining.tree import OF_JOB, TreeFeatures, fullness, tree_features
from pipeline.simulation.results import Jobs
from pipeline.simulation.rollout import Episodes, choose, play, sjf

NEARLY = 1e-9  # shares this close are the same
COLUMN = {name: place for place, name in enumerate(OF_JOB)}


class Play(NamedTuple):
    """Episodes about to be played."""

    simulator: Episodes
    jobs: Jobs  # of all of them
    key: KeyArray  # [B]
    load: IntArray  # [B]  of each, in percent
    number: IntArray  # [B]  of its jobset
    started: Callable[[], int]  # jobs so far


class Placement(NamedTuple):
    """Which of the machines that could take its job at once an agent chooses in D decisions."""

    uneven: BoolArray  # [D]  are there some that are not equally full?
    first: FloatArray  # [D]  does the agent take the first of these?
    fullest: FloatArray  # [D]  does the agent take the fullest of these?
    fullest_by_chance: FloatArray  # [D]  share of these that are as full
    fullest_first: FloatArray  # [D]  is the first of these the fullest?
    emptiest: FloatArray  # [D]
    emptiest_by_chance: FloatArray  # [D]
    emptiest_first: FloatArray  # [D]


class Decisions(NamedTuple):
    """D decisions in which a job could have started; actions are slots, and M is void."""

    episode: IntArray  # [D]
    features: TreeFeatures
    agent: IntArray  # [D]  what the agent does; where dispatch blocks, its job may be one that does not fit yet
    sjf: IntArray  # [D]  what SJF would do
    same_machine: BoolArray  # [D]  does the agent take SJF's?
    placement: Placement
    until_arrival: FloatArray  # [D]  time until the next job came; nan = none did

    @property
    def slots(self) -> int:
        """Return M, which is void, too."""
        return int(self.features.may_start.shape[1])

    @property
    def starts(self) -> BoolArray:
        """Return in which decisions [D] the agent chooses a job."""
        return np.asarray(self.agent < self.slots)

    @property
    def same_job(self) -> BoolArray:
        """Return in which decisions [D] the agent starts SJF's job or one as short, which SJF takes as well."""
        return np.asarray(self.starts & (self.of("duration", self.agent) == self.of("duration", self.sjf)))

    def of(self, name: str, action: IntArray) -> FloatArray:
        """Return a feature [D] of the jobs that actions start; 0 of void."""
        slot = np.minimum(action, self.slots - 1)
        value = self.features.job[np.arange(len(action)), slot, COLUMN[name]]
        return np.asarray(np.where(action < self.slots, value, 0.0))


def record(episodes: Play, agent: Policy, player: Policy | None = None) -> Decisions:
    """Return the decisions of some episodes.

    Args:
        episodes: what is played.
        agent: whose actions are recorded; it acts on the same draws.
        player: decides where play goes; None: the agent.

    Raises:
        UserError: no job could start in any decision.
    """
    said: list[IntArray] = []
    parts: list[Decisions] = []

    def both(view: Observation, draws: FloatArray) -> IntArray:
        actions = agent(view, draws)
        said.append(actions)
        return actions if player is None else player(view, draws)

    def watch(rows: IntArray, view: Observation, _: IntArray) -> None:
        actions, could = said.pop(), np.flatnonzero((view.legal & view.fits_now).any(axis=(1, 2)))
        if len(could):  # where dispatch blocks, a policy is also asked where nothing fits
            parts.append(_noted(episodes.jobs, rows[could], view.take(could), actions[could]))

    play(episodes.simulator, both, episodes.key, watch)
    return joined(parts)


def _noted(jobs: Jobs, rows: IntArray, view: Observation, actions: IntArray) -> Decisions:
    """Return decisions in which a job could start; what is not legal lets time pass, as void does."""
    count, slots, machines = view.legal.shape
    legal = np.concatenate([view.legal.reshape(count, -1), np.zeros((count, 1), dtype=bool)], axis=1)
    mine = np.where(legal[np.arange(count), actions], actions, slots * machines)
    others = choose(sjf(view), view)
    seen = tree_features(view)
    small = seen._replace(job=seen.job.astype(np.float32), rest=seen.rest.astype(np.float32))
    same_machine = np.asarray(mine % machines == others % machines)
    return Decisions(
        rows,
        small,
        mine // machines,
        others // machines,
        same_machine,
        _placement(view, mine),
        _until(jobs, rows, view),
    )


def _placement(view: Observation, action: IntArray) -> Placement:
    """Return which machines actions choose."""
    _, slots, machines = view.legal.shape
    row, slot, taken = np.arange(len(action)), np.minimum(action // machines, slots - 1), action % machines
    able = view.fits_now[row, slot] & (action < slots * machines)[:, None]
    full, first = fullness(view), able.argmax(axis=1)
    most, least = np.where(able, full, -np.inf).max(axis=1), np.where(able, full, np.inf).min(axis=1)
    found = [(taken == first).astype(float)]
    for extreme in (most, least):
        alike = able & (np.abs(full - np.where(np.isfinite(extreme), extreme, 0.0)[:, None]) <= NEARLY)
        chance = alike.sum(axis=1) / np.maximum(able.sum(axis=1), 1)
        found += [alike[row, taken].astype(float), chance, alike[row, first].astype(float)]
    return Placement(most > least + NEARLY, *found)


def _until(jobs: Jobs, rows: IntArray, view: Observation) -> FloatArray:
    """Return the time [B] until the next job comes; nan after the last."""
    apart = int(max(jobs.arrival.max(), view.now.max())) + 1
    due = np.searchsorted(jobs.episode * apart + jobs.arrival, rows * apart + view.now, side="right")
    comes = jobs.arrival[np.minimum(due, len(jobs.arrival) - 1)]
    return np.asarray(np.where(due < jobs.first[rows + 1], comes - view.now, np.nan))
