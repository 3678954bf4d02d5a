"""Decisions of a policy, recorded next to SJF's in the same states; then concatenated, compared and counted."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
import pandas as pd

from pipeline.comparing.statistics import comparison
from pipeline.core.config import Evaluation
from pipeline.core.types import BoolArray, FloatArray, IntArray, KeyArray, Observation, Policy
from pipeline.errors import UserError
from pipeline.interactive.explaining.tree import PLACE, TreeFeatures, fullness, tree_features
from pipeline.simulation.results import Jobs, Results
from pipeline.simulation.rollout import CompiledEpisodes, choose, play, sjf

NO_CHOICE = "nothing to explain: in the test jobsets that are looked at there is never a choice while a job could start"
NEARLY = 1e-9  # tolerance for equal shares

Record = TypeVar("Record", bound=tuple[Any, ...])  # a NamedTuple of arrays [D, ...], or of such records
OneJobset = TypeVar("OneJobset")


class Play(NamedTuple):
    """Episodes to record, before their first decision."""

    simulator: CompiledEpisodes[Any]
    jobs: Jobs  # of all of them
    key: KeyArray  # [B]
    load: IntArray  # [B]  in percent
    number: IntArray  # [B]  of the jobset


class Placement(NamedTuple):
    """Machines that an agent chooses in D decisions, of those that could take its job at once."""

    uneven: BoolArray  # [D]  are some not equally full?
    first: FloatArray  # [D]  does the agent take the first of these?
    fullest: FloatArray  # [D]  does the agent take the fullest of these?
    fullest_by_chance: FloatArray  # [D]  share of these that are as full as the fullest
    fullest_first: FloatArray  # [D]  is the first of these the fullest?
    emptiest: FloatArray  # [D]
    emptiest_by_chance: FloatArray  # [D]
    emptiest_first: FloatArray  # [D]


class Decisions(NamedTuple):
    """D decisions in which a job could have started; actions are slots, and M is void."""

    episode: IntArray  # [D]
    features: TreeFeatures
    agent: IntArray  # [D]  the agent's action; where dispatch blocks, its job may be one that does not fit yet
    sjf: IntArray  # [D]  SJF's action
    same_machine: BoolArray  # [D]  does the agent take SJF's machine?
    placement: Placement
    until_arrival: FloatArray  # [D]  time until the next arrival; nan = none

    @property
    def slots(self) -> int:
        """Return M; as an action, M is void."""
        return int(self.features.may_start.shape[1])

    @property
    def starts(self) -> BoolArray:
        """Return whether the agent chooses a job [D]."""
        return np.asarray(self.agent < self.slots)

    @property
    def same_job(self) -> BoolArray:
        """Return whether the agent starts SJF's job or an equally short one [D], which SJF could also have chosen."""
        return np.asarray(self.starts & (self.of("duration", self.agent) == self.of("duration", self.sjf)))

    def of(self, name: str, action: IntArray) -> FloatArray:
        """Return the value [D] of a feature for the job that each action starts; 0 for void."""
        slot = np.minimum(action, self.slots - 1)
        value = self.features.job[np.arange(len(action)), slot, PLACE[name]]
        return np.asarray(np.where(action < self.slots, value, 0.0))


def record(episodes: Play, agent: Policy, player: Policy | None = None) -> Decisions:
    """Return the decisions of some episodes.

    Args:
        episodes: they are played to their end.
        agent: its actions are recorded; it gets the same draws as the player.
        player: its actions are carried out; None: those of the agent.

    Raises:
        UserError: no job could start in any decision.
    """
    pending: list[IntArray] = []
    parts: list[Decisions] = []

    def policy(view: Observation, draws: FloatArray) -> IntArray:
        actions = agent(view, draws)
        pending.append(actions)
        return actions if player is None else player(view, draws)

    def watch(rows: IntArray, view: Observation, _: IntArray) -> None:
        actions, could = pending.pop(), np.flatnonzero((view.legal & view.fits_now).any(axis=(1, 2)))
        if len(could):  # where dispatch blocks, a policy also decides in states where no job fits
            parts.append(_decisions(episodes.jobs, rows[could], view.take(could), actions[could]))

    play(episodes.simulator, policy, episodes.key, watch)
    return joined(parts)


def _decisions(jobs: Jobs, rows: IntArray, view: Observation, actions: IntArray) -> Decisions:
    """Return decisions in which a job could start; an illegal action lets time pass, as void does."""
    count, slots, machines = view.legal.shape
    legal = np.concatenate([view.legal.reshape(count, -1), np.zeros((count, 1), dtype=bool)], axis=1)
    mine = np.where(legal[np.arange(count), actions], actions, slots * machines)
    others = choose(sjf(view), view)
    seen = tree_features(view)
    small = seen._replace(job=seen.job.astype(np.float32), rest=seen.rest.astype(np.float32))
    same_machine = np.asarray(mine % machines == others % machines)
    apart = int(max(jobs.arrival.max(), view.now.max())) + 1
    due = np.searchsorted(jobs.episode * apart + jobs.arrival, rows * apart + view.now, side="right")
    comes = jobs.arrival[np.minimum(due, len(jobs.arrival) - 1)]
    until = np.asarray(np.where(due < jobs.first[rows + 1], comes - view.now, np.nan))
    return Decisions(rows, small, mine // machines, others // machines, same_machine, _placement(view, mine), until)


def _placement(view: Observation, action: IntArray) -> Placement:
    _, slots, machines = view.legal.shape
    row, slot, taken = np.arange(len(action)), np.minimum(action // machines, slots - 1), action % machines
    able = view.fits_now[row, slot] & (action < slots * machines)[:, None]
    full, first = fullness(view), able.argmax(axis=1)
    most, least = np.where(able, full, -np.inf).max(axis=1), np.where(able, full, np.inf).min(axis=1)
    found = [(taken == first).astype(float)]
    for extreme in (most, least):
        equal = able & (np.abs(full - np.where(np.isfinite(extreme), extreme, 0.0)[:, None]) <= NEARLY)
        chance = equal.sum(axis=1) / np.maximum(able.sum(axis=1), 1)
        found += [equal[row, taken].astype(float), chance, equal[row, first].astype(float)]
    return Placement(most > least + NEARLY, *found)


def few(jobsets: Mapping[int, Sequence[OneJobset]], most: int) -> dict[int, Sequence[OneJobset]]:
    """Return the first jobsets of each load."""
    return {load: some[:most] for load, some in jobsets.items()}


def within(jobsets: Mapping[int, Sequence[Any]], most: int, jobs: int) -> dict[int, Sequence[Any]]:
    """Return the first jobsets of each load, up to `most` and `jobs` jobs in all, but at least one jobset."""
    each = sum(len(some[0].arrival) for some in jobsets.values() if len(some))
    return few(jobsets, max(1, min(most, jobs // max(each, 1))))


def joined(parts: Sequence[Record]) -> Record:
    """Concatenate records of decisions."""
    if not any(len(part[0]) for part in parts):
        raise UserError(NO_CHOICE)
    return _joined(parts)


def _joined(parts: Sequence[Record]) -> Record:
    columns = zip(*parts, strict=True)
    fields = [np.concatenate(some) if isinstance(some[0], np.ndarray) else _joined(some) for some in columns]
    made: Record = cast("Any", parts[0])._make(fields)
    return made


def outcomes_by(
    column: str,
    parts: Mapping[str, pd.DataFrame],
    scenario: str,
    references: Sequence[str],
    settings: Evaluation,
    seed: int,
) -> pd.DataFrame:
    """Return COMPARISON of policies in several tables of jobsets, concatenated; the first column names the table."""
    frames = []
    for name, part in parts.items():
        against = {one: dict.fromkeys(part["load"].unique(), one) for one in references}
        found = comparison(part, scenario, against, settings, np.random.default_rng(seed))
        frames.append(found.assign(**{column: name})[[column, *found.columns]])
    return pd.concat(frames, ignore_index=True)


def jobsets_of(results: Mapping[str, Results]) -> pd.DataFrame:
    """Return the results of all policies on each jobset."""
    return pd.concat([done.jobsets for done in results.values()], ignore_index=True)


def mean_of(table: pd.DataFrame, name: str, count: str = "decisions") -> float:
    """Return the mean of a column, weighted by a column of counts.

    >>> mean_of(pd.DataFrame({"part": [0.5, 1.0, np.nan], "decisions": [3, 1, 0]}), "part")
    0.625
    """
    there = table[table[count] > 0]
    return float((there[name] * there[count]).sum() / there[count].sum())
