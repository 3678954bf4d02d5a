"""A value network as baseline, in place of a mean over a jobset's episodes (DeepRM section 5).

It sees only what the policy sees, DeepRM's image: neither the jobset nor its end. It estimates the decisions of an
update before it learns from them, so that the baseline does not depend on the sampled actions.
"""

import numpy as np
import torch
from torch import Tensor, nn

from pipeline.core.config import ValueBaseline
from pipeline.core.types import FloatArray
from pipeline.learning.memory import Memory
from pipeline.problems.pool.agents.networks.encodings import Layout
from pipeline.problems.pool.agents.networks.mlp import Mlp
from pipeline.problems.pool.env.nouns import CompactObservation

AT_ONCE = 65536  # maximum of decisions per step


class ValueNetwork(Mlp):
    """DeepRM's network with one output, in units of the spread of the first returns around their mean."""

    mean: Tensor
    spread: Tensor  # 0: no returns seen yet

    def __init__(self, layout: Layout, hidden: int) -> None:
        super().__init__(layout, hidden)
        self.last = nn.Linear(hidden, 1)
        self.register_buffer("mean", torch.zeros(1))
        self.register_buffer("spread", torch.zeros(1))


class Critic:
    """Value network that first estimates the returns of decisions and then learns from the actual ones."""

    def __init__(self, layout: Layout, config: ValueBaseline, seed: int, memory: Memory) -> None:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self._network = ValueNetwork(layout, config.hidden)
        self._optimizer = torch.optim.Adam(self._network.parameters(), lr=config.learning_rate)
        self._steps = config.steps
        memory.keep(value=self._network, value_optimizer=self._optimizer)

    def judge(self, observed: CompactObservation, returns: FloatArray) -> FloatArray:
        """Return the expected returns of decisions [D], then learn their actual returns."""
        network = self._network
        if not network.spread:
            network.mean += float(returns.mean())
            network.spread += float(returns.std()) or 1.0
        mean, spread = float(network.mean), float(network.spread)
        with torch.no_grad():
            begins = range(0, len(returns), AT_ONCE)
            expected = torch.cat([network(observed.take(slice(k, k + AT_ONCE)))[:, 0] for k in begins]).numpy()
        target = torch.from_numpy((returns - mean) / spread).float()
        steps = min(max(self._steps, len(begins)), len(returns))
        for k in range(steps):  # each learns from every steps-th decision
            some = np.arange(k, len(returns), steps)
            self._optimizer.zero_grad()
            loss = nn.functional.mse_loss(network(observed.take(some))[:, 0], target[k::steps])
            loss.backward()  # type: ignore[no-untyped-call]
            self._optimizer.step()
        return np.asarray(mean + spread * expected, dtype=np.float64)
