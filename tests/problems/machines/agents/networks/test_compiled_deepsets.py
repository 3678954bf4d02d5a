"""`deepsets` compiled: torch's logits of a state, to the last bit independent of the batch."""

import numpy as np
import pytest
import torch

from pipeline.problems.machines.agents.networks.actor_critic import DeepSets
from pipeline.problems.machines.agents.networks.features import THERE, Features, Shape
from pipeline.problems.machines.agents.networks.loading import compiled, forward


def states(shape: Shape, count: int = 20) -> Features:
    """States with some empty slots; in the first all are."""
    rng = np.random.default_rng(3)
    sizes = ((shape.slots, shape.of_job), (shape.machines, shape.of_machine))
    job, machine = (rng.normal(size=(count, *size)).astype(np.float32) for size in sizes)
    job[:, :, THERE] = rng.random((count, shape.slots)) < 0.6
    job[0, :, THERE] = 0.0
    pair = rng.normal(size=(count, shape.slots, shape.machines, shape.of_pair)).astype(np.float32)
    rest = rng.normal(size=(count, shape.of_rest)).astype(np.float32)
    may = np.concatenate([np.repeat(job[:, :, THERE] > 0, shape.machines, axis=1), np.ones((count, 1), bool)], axis=1)
    return Features(job, machine, pair, rest, may)


def network(shape: Shape, hidden: int) -> DeepSets:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        return DeepSets(shape, hidden)


@pytest.mark.parametrize(("slots", "machines", "resources", "hidden"), [(6, 5, 2, 32), (3, 1, 1, 7), (1, 4, 3, 16)])
def test_it_says_what_torch_says(slots: int, machines: int, resources: int, hidden: int) -> None:
    shape = Shape(slots, machines, resources, 1.0, True)
    observed, own = states(shape), network(shape, hidden)
    expected, found = forward(own, observed), compiled(own)(observed)
    np.testing.assert_allclose(found[observed.may], expected[observed.may], rtol=2e-5, atol=2e-6)
    assert np.ptp(expected[observed.may]) > 0.3


def test_a_single_state_has_the_bits_that_it_has_in_a_batch() -> None:
    shape = Shape(6, 5, 2, 1.0, True)
    observed, scores = states(shape), compiled(network(shape, 32))
    together = scores(observed)
    for row in range(len(together)):
        np.testing.assert_array_equal(scores(observed.take(np.array([row])))[0], together[row])
