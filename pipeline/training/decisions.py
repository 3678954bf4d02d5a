"""What was seen and done in every decision of many episodes, and what an update reports."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from pipeline.core import FloatArray, IntArray, KeyArray, Observation, Policy
from pipeline.errors import UserError
from pipeline.simulator.batched import Batched
from pipeline.simulator.rollout import play


class Update(NamedTuple):
    """One update of a learner."""

    step: int
    metrics: Mapping[str, float]

    @property
    def note(self) -> str:
        """Return the metrics for people."""
        return ", ".join(f"{name} {value:.4g}" for name, value in self.metrics.items())


class Decisions(NamedTuple):
    """D decisions of B episodes, in the order in which they were taken."""

    view: Observation  # of D episodes
    action: IntArray  # [D]
    episode: IntArray  # [D]
    turn: IntArray  # [D]  place among the decisions of its episode
    rewards: FloatArray  # [B, steps]  of each simulated step


def record(simulator: Batched, policy: Policy, key: KeyArray) -> Decisions:
    """Play a policy and keep every decision that was asked of it.

    Raises:
        UserError: none was.
    """
    views: list[Observation] = []
    actions: list[IntArray] = []
    rows: list[IntArray] = []

    def watch(episodes: IntArray, view: Observation, taken: IntArray) -> None:
        rows.append(episodes)
        views.append(view)
        actions.append(taken)

    play(simulator, policy, key, watch)
    if not rows:
        raise UserError("the jobsets leave no decision to learn from: train on higher loads")
    steps = int(simulator.schedule().steps.max())
    return Decisions(
        view=Observation._make(np.concatenate(field) for field in zip(*views, strict=True)),
        action=np.concatenate(actions),
        episode=np.concatenate(rows),
        turn=np.repeat(np.arange(len(rows)), [len(group) for group in rows]),
        rewards=simulator.rewards[:, :steps],
    )
