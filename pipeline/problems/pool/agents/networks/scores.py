"""Scores of waiting jobs from a few dozen weights, found by evolution and played by the simulator's compiled rule.

There is no gradient: weights are judged by whole episodes (`training.evolution`). The initial weights resemble the rule
`hold_long`: while short jobs may still arrive, long ones wait unless they fill all slots.
"""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from pipeline.core.types import BoolArray, CompiledRule, FloatArray, Observation, legal_actions
from pipeline.problems.pool.agents.networks.network import Forward, Scorer
from pipeline.problems.pool.env.simulator.rules import scores_of
from pipeline.problems.pool.env.simulator.score_rule import COUNT, FEATURES

# The initial weights of the search; those of all other features are 0.
BY_HAND = {
    "always": 1.5,
    "length": -1.0,
    "aligned": 0.02,
    "long_coming": -1.6,
    "long_full": 1.6,
    "long_ended_short_waits": -1.6,
    "long_endless": 1.5,
    "long_endless_short_jobs": -1.0,
    "long_quiet": 1.6,
}
FIRST_SPREAD = 0.3  # initial spread of the weights into tanh units; the weights out of them begin at 0


class Viewed(NamedTuple):
    """Observations, and the legal actions."""

    view: Observation
    may: BoolArray  # [D, A]


class Scores(Scorer[Viewed]):
    """Network of weights [W]: those of the features, then those of tanh units of the features."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.hidden = hidden
        first = torch.tensor([BY_HAND.get(name, 0.0) for name in FEATURES], dtype=torch.float64)
        units = torch.cat([FIRST_SPREAD * torch.randn(hidden, COUNT), torch.zeros(hidden, 1)], dim=1)
        self.weights = nn.Parameter(torch.cat([first, units.double().ravel()]), requires_grad=False)

    def placed(self, device: torch.device | None) -> "Scores":
        """Return the network unchanged: our compiled code is for the CPU."""
        return self

    def encode(self, view: Observation) -> Viewed:
        """Return observations with their legal actions."""
        return Viewed(view, legal_actions(view))

    def forward(self, observed: Viewed) -> Tensor:
        """Return the scores [D, A]; that of void is 0."""
        return torch.from_numpy(self.frozen()(observed))

    def frozen(self) -> Forward[Viewed]:
        """Return a snapshot of the network."""
        of_jobs = scores_of(self.rule)

        def scores(observed: Viewed) -> FloatArray:
            jobs = of_jobs(observed.view)
            return np.concatenate([jobs, np.zeros((len(jobs), 1))], axis=1)

        return scores

    @property
    def rule(self) -> CompiledRule:
        """Return the compiled rule of the current weights."""
        return rule_of(self.weights.numpy(), self.hidden)


def rule_of(weights: FloatArray, hidden: int) -> CompiledRule:
    """Return the compiled rule of some weights."""
    return CompiledRule("scores", float(hidden), weights=tuple(weights.tolist()))
