"""A network that must not let a job wait before enough have arrived."""

import numpy as np
import pytest
import torch
from builders import cluster as small
from builders import observation, viewed
from torch import Tensor

from pipeline.config import HoldsFrom, Mlp
from pipeline.core import Observation, legal_actions
from pipeline.problems.pool.heuristics.scores import HEURISTICS
from pipeline.problems.pool.networks.loading import Holding, too_few
from pipeline.problems.pool.networks.network import Network, greedy
from pipeline.problems.pool.networks.networks import build
from pipeline.problems.pool.nouns import CompactObservation

RULE = HoldsFrom(jobs=1.5, per_step=0.1)


class Waits(Network):
    """A network that would rather wait, and else takes the last job."""

    chunk = 7

    def forward(self, observed: CompactObservation) -> Tensor:
        return torch.arange(observed.may.shape[1]).float().expand(len(observed.may), -1)


def seen(arrived: int, now: int, fits: bool = True) -> Observation:
    """One job waits, another runs; so many have arrived until now."""
    view = observation(duration=[2], fits_now=[fits], free=[[5, 5]], now=now)
    return view._replace(arrived=np.array([[arrived, 0.0, 0.0, 0.0]]))


@pytest.mark.parametrize(
    ("arrived", "now", "fits", "action"),
    [
        (1, 0, True, 0),  # 1 job; 1.6 are asked for
        (2, 3, True, 1),  # 2 of 1.9
        (2, 6, True, 0),  # 2 of 2.2: the same two, later
        (2, 6, False, 1),  # nothing fits: waiting is all there is
        (0, 6, True, 1),  # not told
    ],
)
def test_a_job_that_fits_waits_only_once_enough_have_arrived(arrived: int, now: int, fits: bool, action: int) -> None:
    policy = greedy(Holding(Waits(), RULE), masked=True)
    assert policy(seen(arrived, now, fits), np.zeros(1)).tolist() == [action]
    assert greedy(Waits(), masked=True)(seen(arrived, now, fits), np.zeros(1)).tolist() == [1]


def test_nothing_but_void_is_forbidden_and_the_network_is_the_same() -> None:
    on = small(6, 4, horizon=6, slots=4)
    view = viewed(on, HEURISTICS["sjf"])
    network = build(Mlp(name="mlp", hidden=5, clock=True), on, seed=3)
    held = Holding(network, RULE)
    few, before, after = too_few(view, RULE), network.encode(view), held.encode(view)
    assert few.any()
    assert not few.all()
    assert (after.may[:, :-1] == legal_actions(view)[:, :-1]).all()
    assert (after.may[:, -1] == (before.may[:, -1] & ~few)).all()
    assert after.may.any(axis=1).all()
    assert (held.frozen()(after) == network.frozen()(before)).all()
    assert torch.equal(held(after), network(before))
