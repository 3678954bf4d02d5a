"""The written value function: what it is worth by hand, and that it knows neither the size nor the number of groups."""

import numpy as np
import pytest
import torch
from group_builders import CLUSTER, CONFIGURATIONS, observed, written

from pipeline.core.types import FloatArray
from pipeline.problems.groups.agents.networks.features import states
from pipeline.problems.groups.agents.networks.q_network import Worth, first_weights, tensors
from pipeline.problems.groups.env.nouns import Observation

# Of 4 units and 2 groups of 2 queues, an equal share is 2 units. Group 0: two jobs of 1 unit wait in queue 0, and one
# of 2 units in queue 1. Group 1 uses 1 unit, which its job gives back soon; each interval one job arrives in queue 0.
VIEW = observed(
    CLUSTER,
    waiting=[[2, 1], [0, 0]],
    waiting_demand=[[[2], [2]], [[0], [0]]],
    head_waited=[[10.0, 10.0], [0, 0]],
    used=[[0], [1]],
    releasing=[[0], [1]],
    recent_jobs=[[0.0, 0.0], [1.0, 0.0]],
)


def network(**weights: float) -> Worth:
    """One of two queues with all weights 0 but for some, and jobs of group 1 that each want half an equal share."""
    made = written()
    names = "jobs0 jobs1 by0 by1 arriving pressed released need floor room closed age"
    with torch.no_grad():
        made.weight.copy_(torch.tensor([weights.get(name, 0.0) for name in names.split()]))
        made.past[:, 4:] = float(np.log(1.5))
    return made


def worth(made: Worth, view: Observation = VIEW) -> FloatArray:
    with torch.no_grad():
        found = made(tensors(states(view, CLUSTER)), torch.from_numpy(CONFIGURATIONS.units.astype("float32")))
    assert (found[..., 0] == found[..., 1]).all()  # of both orders: the first is set
    return np.asarray(found[0, :, :, 0].numpy())  # of groups at 0, 2 and 4 units


PRESSURE = 2.0 / 2  # on group 1: two equal shares that group 0 wants, of a cluster of two


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        ({"jobs0": 3.0}, [[0, 6, 6], [0, 0, 0]]),
        ({"jobs1": 3.0}, [[0, 0, 3], [0, 0, 0]]),  # its job is served last
        ({"by0": 4.0}, [[0, 2, 2], [0, 0, 0]]),  # half an equal share is expected, of two: pressure 1/4
        ({"age": 1.0}, [[0, 2 * np.log(2), 3 * np.log(2)], [0, 0, 0]]),  # heads waited an interval
        ({"closed": 1.0}, [[0, 0, 0], [1, 0, 0]]),  # below what it uses
        ({"room": 1.0}, [[0, 1, 1.25], [0, 0.75, 1.25]]),  # half of what is given back soon counts
        ({"room": 1.0, "released": 9.0}, [[0, 1, 1.25], [0, 1, 1.25]]),  # all of it, and no more
        ({"arriving": 1.0}, [[0, 0, 0], [0, *(1 - np.exp(-np.array([0.75, 1.75]) / 0.375))]]),  # need 0.25 + 0.125
        ({"pressed": 1.0}, [[0, 0, 0], [0, *(PRESSURE * (1 - np.exp(-np.array([0.75, 1.75]) / 0.375)))]]),
    ],
)
def test_values_are_those_by_hand(weights: dict[str, float], expected: list[list[float]]) -> None:
    np.testing.assert_allclose(worth(network(**weights)), expected, rtol=1e-5, atol=1e-6)


def test_a_need_that_is_larger_serves_fewer_of_those_expected() -> None:
    less, more = (worth(network(arriving=1.0, need=need, floor=need))[1, 1] for need in (0.0, 1.0))
    assert 0 < more < less


def test_the_search_begins_with_jobs_of_earlier_queues_worth_more() -> None:
    np.testing.assert_allclose(first_weights(2).numpy(), [1, 0.9, 0, 0, 0.3, *[0] * 7], rtol=1e-6)
