"""DeepRM3's network: one score for every waiting job, by weights that all jobs share (Zaheer et al. 2017), and void's.

What a job is, what all waiting jobs are together (mean and largest of each hidden feature) and what else there is are
put together as in the event-driven `deepsets`; here there is one machine, and features are `relative`.
"""

from typing import Self

import numpy as np
import torch
from numba import config
from torch import Tensor, nn

from pipeline.core import FloatArray, Observation
from pipeline.problems.pool.networks.compiled_sets import SetWeights, forward
from pipeline.problems.pool.networks.describing import relative
from pipeline.problems.pool.networks.loss import Loss
from pipeline.problems.pool.networks.network import Forward, Scorer
from pipeline.problems.pool.networks.relative import (
    ELAPSED,
    ENDS,
    OF_JOB,
    OF_REST,
    TO_END,
    Relative,
)
from pipeline.problems.pool.networks.rows import padded
from pipeline.problems.pool.networks.set_gradient import gradient

LITTLE = 0.1  # of torch's own initial weights: all actions about equally likely at first


class Sets(Scorer[Relative]):
    """Logits of waiting jobs and void, for any number of slots and resources, any capacity and horizon."""

    def __init__(self, hidden: int, elapsed: bool, ending: bool = False) -> None:
        super().__init__()
        if hidden != padded(hidden):
            raise ValueError(f"expected a multiple of 8 hidden units, got {hidden}")
        self.unseen = [] if elapsed else [ELAPSED]  # features of the rest that it is not told
        self.unseen += [] if ending else [ENDS, TO_END]
        self.of_job = nn.Linear(OF_JOB, hidden)
        self.of_all = nn.Linear(2 * hidden + OF_REST, hidden)
        self.job_part = nn.Linear(hidden, hidden)
        self.all_part = nn.Linear(hidden, hidden, bias=False)
        self.score = nn.Linear(hidden, 1, bias=False)
        self.direct = nn.Linear(OF_JOB, 1, bias=False)  # a heuristic is mostly a sum of logarithms
        self.void = nn.Linear(hidden + OF_REST, 1)
        with torch.no_grad():
            for layer in (self.score, self.direct, self.void):
                layer.weight *= LITTLE

    def encode(self, view: Observation) -> Relative:
        """Return observations as features."""
        return relative(view)

    def placed(self, device: torch.device | None) -> Self:
        """Return it: our compiled code is for the CPU, where it is faster than what it would save elsewhere."""
        return self

    def frozen(self) -> Forward[Relative]:
        """Return the network as it is now, compiled where numba may; logits of illegal actions mean nothing."""
        if config.DISABLE_JIT:  # type: ignore[attr-defined]
            return self._by_torch
        weights = self.compiled()
        return lambda observed: forward(weights, observed)

    def _by_torch(self, observed: Relative) -> FloatArray:
        with torch.no_grad():
            logits: FloatArray = self(observed).numpy()
        return logits

    def forward(self, observed: Relative) -> Tensor:
        """Return the logits [D, A] of the actions, void last; those of empty slots mean nothing."""
        return self.on_features(torch.from_numpy(observed.job), torch.from_numpy(observed.rest))

    def on_features(self, job: Tensor, rest: Tensor) -> Tensor:
        """Return the same of features [D, M, OF_JOB] and [D, OF_REST]."""
        rest = rest * self._kept()
        there = (job != 0).any(dim=2)[:, :, None].float()
        each = torch.relu(self.of_job(job)) * there
        mean = each.sum(dim=1) / there.sum(dim=1).clamp(min=1)
        common = torch.relu(self.of_all(torch.cat([mean, each.amax(dim=1), rest], dim=1)))
        hidden = torch.relu(self.job_part(each) + self.all_part(common)[:, None])
        scores = (self.score(hidden) + self.direct(job))[:, :, 0]
        return torch.cat([scores, self.void(torch.cat([common, rest], dim=1))], dim=1)

    def _kept(self) -> Tensor:
        kept = torch.ones(OF_REST)
        kept[self.unseen] = 0.0
        return kept

    def _places_unseen(self) -> list[int]:
        """Return the places of unseen features among inputs whose last OF_REST are the rest."""
        return [place - OF_REST for place in self.unseen]

    def compiled(self) -> SetWeights:
        """Return the weights as they are now, for compiled play."""
        layers = (self.of_job, self.of_all, self.job_part)
        tables = [(_rows(layer.weight), layer.bias.detach().numpy().copy()) for layer in layers]
        void = self.void.weight.detach().numpy()[0].copy()
        for each in (tables[1][0], void):
            each[self._places_unseen()] = 0.0
        return SetWeights(
            *tables[0],
            *tables[1],
            *tables[2],
            _rows(self.all_part.weight),
            self.score.weight.detach().numpy()[0].copy(),
            self.direct.weight.detach().numpy()[0].copy(),
            void,
            self.void.bias.detach().numpy().copy(),
        )

    def add_gradient(self, observed: Relative, loss: Loss) -> float:
        """Add the gradient of some decisions' summed loss to the weights' own; return the sum of their entropies."""
        found, entropy = gradient(self.compiled(), observed, loss)
        for each in (found.of_all, found.void):
            each[self._places_unseen()] = 0.0
        parts = (
            (self.of_job.weight, found.of_job.T),
            (self.of_job.bias, found.job_bias),
            (self.of_all.weight, found.of_all.T),
            (self.of_all.bias, found.all_bias),
            (self.job_part.weight, found.job_part.T),
            (self.job_part.bias, found.part_bias),
            (self.all_part.weight, found.all_part.T),
            (self.score.weight, found.score[None]),
            (self.direct.weight, found.direct[None]),
            (self.void.weight, found.void[None]),
            (self.void.bias, found.void_bias),
        )
        for weight, more in parts:
            fresh = torch.from_numpy(np.ascontiguousarray(more, dtype=np.float32))
            weight.grad = fresh if weight.grad is None else weight.grad + fresh
        return entropy


def _rows(weight: Tensor) -> FloatArray:
    """Return a layer's weights [inputs, outputs]."""
    rows: FloatArray = weight.detach().numpy().T.copy()
    return rows
