"""Record the decisions of a learned policy in its own play, and what SJF would have done there."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pipeline.core import BoolArray, FloatArray, IntArray, KeyArray, Observation, Policy
from pipeline.errors import UserError
from pipeline.problems.machines.nouns import Jobs, Machines, end_to_end
from pipeline.problems.machines.simulator.compiled.batch import Simulator
from pipeline.problems.one_jobset import NO_CHOICE
from pipeline.simulation.choosing import choose, sjf
from pipeline.simulation.rollout import play

NEARLY = 1e-9  # shares this close are the same


class Started(NamedTuple):
    """The jobs that a policy starts in D decisions; of none, all is nan."""

    duration: FloatArray  # [D]
    demand: FloatArray  # [D]  the largest share of all machines that it holds
    waited: FloatArray  # [D]


class Placement(NamedTuple):
    """Which of the machines that could take its job an agent chooses in D decisions."""

    uneven: BoolArray  # [D]  are there some that are not equally full?
    fullest: FloatArray  # [D]  does the agent take the fullest of these?
    fullest_by_chance: FloatArray  # [D]  share of these that are as full
    fullest_first: FloatArray  # [D]  is the first of these the fullest?
    emptiest: FloatArray  # [D]
    emptiest_by_chance: FloatArray  # [D]
    emptiest_first: FloatArray  # [D]


class Decisions(NamedTuple):
    """D decisions in which a job could start."""

    episode: IntArray  # [D]
    waiting: IntArray  # [D]  jobs, those behind the slots as well
    free: FloatArray  # [D]  share of all resources, mean over them
    starts: BoolArray  # [D]  does the agent choose a job? Where dispatch blocks, it may be one that does not fit yet
    same_machine: BoolArray  # [D]  the one that SJF takes
    agent: Started
    sjf: Started
    placement: Placement

    @property
    def same_job(self) -> BoolArray:
        """Return in which decisions [D] the agent starts SJF's job or one as short, which SJF takes as well."""
        return np.asarray(self.starts & (self.agent.duration == self.sjf.duration))


def record(jobsets: Sequence[Jobs], machines: Machines, agent: Policy, key: KeyArray) -> Decisions:
    """Return the decisions of an agent; `key` [B] is that of the draws of each episode."""
    batch = end_to_end(jobsets)
    simulator = Simulator(batch, machines, np.zeros(len(batch.arrival)))
    parts: list[Decisions] = []

    def watch(rows: IntArray, view: Observation, actions: IntArray) -> None:
        could = view.fits_now.any(axis=(1, 2))
        if could.any():  # under most ways to dispatch a policy is also asked where nothing fits
            parts.append(_noted(rows[could], view.take(np.flatnonzero(could)), actions[could]))

    play(simulator, agent, key, watch)
    return _together(parts)


def _together(parts: Sequence[Decisions]) -> Decisions:
    """Return decisions end to end.

    Raises:
        UserError: there is none.
    """
    if not parts:
        raise UserError(NO_CHOICE)
    names = Decisions._fields[:5]  # the others are records
    columns = (np.concatenate([getattr(part, name) for part in parts]) for name in names)
    episode, waiting, free, starts, same_machine = columns
    return Decisions(
        episode,
        waiting,
        free,
        starts,
        same_machine,
        agent=Started._make(map(np.concatenate, zip(*(part.agent for part in parts), strict=True))),
        sjf=Started._make(map(np.concatenate, zip(*(part.sjf for part in parts), strict=True))),
        placement=Placement._make(map(np.concatenate, zip(*(part.placement for part in parts), strict=True))),
    )


def _noted(rows: IntArray, view: Observation, actions: IntArray) -> Decisions:
    _, slots, machines = view.legal.shape
    legal = np.concatenate([view.legal.reshape(len(rows), -1), np.zeros((len(rows), 1), dtype=bool)], axis=1)
    starts = legal[np.arange(len(rows)), actions]
    mine, others = np.where(starts, actions, slots * machines), choose(sjf(view), view)
    total = np.maximum(view.capacity.sum(axis=1), 1)
    return Decisions(
        rows,
        (view.nodes > 0).sum(axis=1) + view.backlog,
        (view.free[:, :, 0].sum(axis=1) / total).mean(axis=1),
        starts,
        mine % machines == others % machines,
        _started(view, mine),
        _started(view, others),
        _placement(view, mine),
    )


def _started(view: Observation, action: IntArray) -> Started:
    """Return the jobs that actions start."""
    _, slots, machines = view.legal.shape
    row, slot = np.arange(len(action)), np.minimum(action // machines, slots - 1)
    total = np.maximum(view.capacity.sum(axis=1), 1)
    held = (view.nodes[row, slot, None] * view.demand[row, slot] / total).max(axis=1)
    some = action < slots * machines
    columns = (view.duration[row, slot], held, view.waited[row, slot])
    return Started._make(np.where(some, column, np.nan) for column in columns)


def _placement(view: Observation, action: IntArray) -> Placement:
    """Return which machines actions choose."""
    _, slots, machines = view.legal.shape
    row, slot, taken = np.arange(len(action)), np.minimum(action // machines, slots - 1), action % machines
    able = view.fits_now[row, slot] & (action < slots * machines)[:, None]
    full = 1.0 - (view.free[:, :, 0] / np.maximum(view.capacity, 1)).mean(axis=2)
    most, least = np.where(able, full, -np.inf).max(axis=1), np.where(able, full, np.inf).min(axis=1)
    found = []
    for extreme in (most, least):
        alike = able & (np.abs(full - np.where(np.isfinite(extreme), extreme, 0.0)[:, None]) <= NEARLY)
        chance = alike.sum(axis=1) / np.maximum(able.sum(axis=1), 1)
        found += [alike[row, taken].astype(float), chance, alike[row, able.argmax(axis=1)].astype(float)]
    return Placement(most > least + NEARLY, *found)
