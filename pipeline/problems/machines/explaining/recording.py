"""Record the decisions of a learned policy in its own play, and what SJF would have done there."""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pandas as pd

from pipeline.core import BoolArray, FloatArray, IntArray, KeyArray, Observation, Policy
from pipeline.explaining.decisions import joined
from pipeline.problems.machines.explaining.tables import DIFFERENCES, JOBS, MACHINES
from pipeline.problems.machines.nouns import Jobs, Machines, end_to_end
from pipeline.problems.machines.simulator.compiled.batch import Simulator
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
    return joined(parts)


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


WAITING = (1, 2, 3, 5, 9, 17, 33, np.inf)  # where classes of waiting jobs begin
FREE = (0.0, 0.2, 0.4, 0.6, 0.8, np.inf)  # the same of the share that is free


def differences(decisions: Decisions, load: IntArray) -> pd.DataFrame:
    """Return DIFFERENCES; load [B] is that of each episode."""
    here, same = load[decisions.episode].astype(float), decisions.same_job
    loads = [(value, value, here == value) for value in np.unique(here)]
    waiting = [
        (low, high - 1, (decisions.waiting >= low) & (decisions.waiting < high)) for low, high in pairwise(WAITING)
    ]
    free = [(low, min(high, 1.0), (decisions.free >= low) & (decisions.free < high)) for low, high in pairwise(FREE)]
    most = float(decisions.waiting.max())
    rows = []
    for by, classes in (("load", loads), ("waiting", waiting), ("free", free)):
        for low, high, inside in classes:
            if inside.any():
                shares = (
                    same & decisions.same_machine,
                    same & ~decisions.same_machine,
                    decisions.starts & ~same,
                    ~decisions.starts,
                )
                bounds = float(low), float(min(high, most) if by == "waiting" else high)
                rows.append((by, *bounds, int(inside.sum()), *(float(share[inside].mean()) for share in shares)))
    return pd.DataFrame(rows, columns=list(DIFFERENCES.columns))


def jobs(decisions: Decisions, load: IntArray) -> pd.DataFrame:
    """Return JOBS; load [B] is that of each episode."""
    another, agent, sjf = decisions.starts & ~decisions.same_job, decisions.agent, decisions.sjf
    columns = {
        "smaller": (agent.demand < sjf.demand).astype(float),
        "waited_longer": (agent.waited > sjf.waited).astype(float),
        "duration": agent.duration,
        "duration_sjf": sjf.duration,
        "demand": agent.demand,
        "demand_sjf": sjf.demand,
    }
    frame = pd.DataFrame(columns).assign(load=load[decisions.episode])[another]
    middle = frame.groupby("load").median()
    shares = frame.groupby("load")[["smaller", "waited_longer"]].mean()
    found = middle.assign(smaller=shares["smaller"], waited_longer=shares["waited_longer"])
    return _by_load(found, another, decisions, load, list(JOBS.columns))


def machines(decisions: Decisions, load: IntArray) -> pd.DataFrame:
    """Return MACHINES; load [B] is that of each episode."""
    names, placement = list(MACHINES.columns), decisions.placement
    frame = pd.DataFrame({name: getattr(placement, name) for name in names[2:]})
    frame = frame.assign(load=load[decisions.episode])[placement.uneven]
    return _by_load(frame.groupby("load").mean(), placement.uneven, decisions, load, names)


def _by_load(
    found: pd.DataFrame, counted: BoolArray, decisions: Decisions, load: IntArray, columns: list[str]
) -> pd.DataFrame:
    """Return a row for each load, of those without such decisions as well, and how many there are."""
    loads = np.unique(load[decisions.episode]).astype(np.int64)
    count = [int(counted[load[decisions.episode] == value].sum()) for value in loads]
    return found.reindex(loads).rename_axis("load").reset_index().assign(decisions=count)[columns]
