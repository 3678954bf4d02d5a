"""A gradient that is known goes to the weights as torch itself hands it on, without what torch imports for it."""

import subprocess
import sys

import torch

from pipeline.problems.pool.agents.networks.network import backward_from

ALONE = """
import sys, torch
from pipeline.problems.pool.agents.networks.network import backward_from
for hand_on in (backward_from, lambda values, gradient: values.backward(gradient)):
    weights = torch.ones(3, requires_grad=True)
    hand_on(2 * weights, torch.ones(3))
    print(weights.grad.tolist(), "sympy" in sys.modules)
"""


def test_weights_get_the_same_bytes() -> None:
    generator = torch.Generator().manual_seed(1)
    found = []
    for hand_on in (backward_from, lambda values, gradient: values.backward(gradient)):
        generator.manual_seed(1)
        network = torch.nn.Sequential(torch.nn.Linear(7, 20), torch.nn.ReLU(), torch.nn.Linear(20, 5))
        with torch.no_grad():
            for weight in network.parameters():
                weight.copy_(torch.randn(weight.shape, generator=generator))
        for size in (1e-30, 1.0, 1e20):
            gradient = size * torch.randn(11, 5, generator=generator)
            gradient[::3] = -0.0
            hand_on(network(torch.randn(11, 7, generator=generator)), gradient)
        found.append([weight.grad.numpy().tobytes() for weight in network.parameters() if weight.grad is not None])
    assert len(found[0]) == 4
    assert found[0] == found[1]


def test_nothing_more_is_imported() -> None:
    said = subprocess.run([sys.executable, "-c", ALONE], capture_output=True, text=True, check=True).stdout
    # Once the second is False, backward_from is needed no more.
    assert said.splitlines() == ["[2.0, 2.0, 2.0] False", "[2.0, 2.0, 2.0] True"]
