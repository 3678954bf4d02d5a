"""A network that starts what fits until enough jobs have arrived to wait for more of them."""

import numpy as np
from torch import Tensor

from pipeline.config import HoldsFrom
from pipeline.core import BoolArray, Observation
from pipeline.problems.pool.networks.network import Encoded, Forward, Scorer


class Holding(Scorer[Encoded]):
    """Another network, void forbidden while a job fits and few have arrived.

    To keep a cluster free pays where jobs still come, and costs where they do not. Early in a run a network cannot tell
    a load of 10 % from one of 30 %, and learns what is best for both together; how many have arrived can.
    """

    def __init__(self, network: Scorer[Encoded], rule: HoldsFrom) -> None:
        super().__init__()
        self.network, self.rule = network, rule

    def encode(self, view: Observation) -> Encoded:
        """Return observations as the network takes them, with less that is legal."""
        observed = self.network.encode(view)
        may = observed.may.copy()
        may[too_few(view, self.rule), -1] = False
        return observed._replace(may=may)

    def forward(self, observed: Encoded) -> Tensor:
        """Return the network's logits [D, A]."""
        logits: Tensor = self.network(observed)
        return logits

    def frozen(self) -> Forward[Encoded]:
        """Return the network as it is now."""
        return self.network.frozen()


def too_few(view: Observation, rule: HoldsFrom) -> BoolArray:
    """Return in which episodes [B] a job fits now and too few have arrived; never where arrivals are not told."""
    arrived, steps = view.arrived[:, 0], view.now + 1
    few = (arrived > 0) & (arrived < rule.jobs + rule.per_step * steps)
    return np.asarray(few & view.fits_now.any(axis=(1, 2)))
