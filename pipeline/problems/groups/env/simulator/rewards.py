"""Rewards of a controller's decision for each group: the waiting that it saved over the interval.

The source omits its equation 6; it mentions the reduction of job delay. Ours: the cost of the group's waiting in the
interval under a baseline, less the actual cost. Baselines:

    present  the previous configuration in all groups; the simulator plays the interval both ways
    nothing  no job of the group starts; so a group without units has the value 0, as in equation 9
    zero     none: the reward is minus the cost of waiting

A waiting job costs its weight for each unit of time: 1 for `delay`, 1 / run time for `slowdown` (at least
SHORTEST_BOUNDED, as in bounded slowdown).
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from pipeline.core.types import SHORTEST_BOUNDED, BoolArray, FloatArray, IntArray
from pipeline.problems.groups.env.nouns import JobsBatch, Observation, Setting
from pipeline.problems.groups.env.simulator.batch import GroupsSimulator
from pipeline.simulation.rollout import to_end


class Transition(NamedTuple):
    """One interval of the current episodes, with its costs and rewards."""

    rows: IntArray  # [B']     episodes
    view: Observation  # at the beginning of the interval
    setting: Setting
    reward: FloatArray  # [B', G]
    cost: FloatArray  # [B', G]
    over: BoolArray  # [B']     was it the last interval of the episode?


Acts = Callable[[IntArray, Observation], Setting]  # (episodes [B'], their observations) -> settings


def transitions(groups: GroupsSimulator, acts: Acts, against: str) -> Iterator[Transition]:
    """Play to the end of every episode; yield every interval after playing it. `against` is a key of AGAINST."""
    last: list[Transition] = []

    def advance(rows: IntArray) -> None:
        view = groups.observe(rows)
        setting = acts(rows, view)
        base = AGAINST[against](groups, rows, view)
        cost = groups.step(rows, setting)
        last[:] = [Transition(rows, view, setting, base - cost, cost, ~np.isin(rows, groups.rows))]

    for _ in to_end(groups, advance):
        yield last[0]


AGAINST: dict[str, Callable[[GroupsSimulator, IntArray, Observation], FloatArray]] = {
    "present": lambda groups, rows, view: groups.what_if(rows, Setting(view.share, view.order)),
    "nothing": lambda groups, rows, view: groups.what_if(rows, Setting(np.zeros_like(view.share), view.order), True),
    "zero": lambda groups, rows, view: np.zeros(view.order.shape),
}
WAITING: dict[str, Callable[[JobsBatch], FloatArray]] = {
    "delay": lambda jobs: np.ones(len(jobs.duration)),
    "slowdown": lambda jobs: 1 / np.maximum(jobs.duration, SHORTEST_BOUNDED),
}
