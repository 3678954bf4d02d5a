"""The mean of the latest weights: who looks between two updates finds it, and what learns is not changed by it."""

import pytest
import torch
from torch import nn

from pipeline.learning.memory import Average, Memory
from pipeline.problems.pool.agents.networks.network import Network


class Line(Network):
    """A network of one weight."""

    def __init__(self) -> None:
        super().__init__()
        self.slope = nn.Parameter(torch.tensor([0.0]))

    def value(self) -> float:
        return float(self.slope.detach())


def learn(network: Line, average: Average) -> tuple[float, float]:
    """Add 1 to the weight; return what it was that learned, and the mean behind it."""
    average.begin()
    with torch.no_grad():
        network.slope += 1.0
    learned = network.value()
    average.end()
    return learned, network.value()


def test_the_network_has_the_mean_between_updates_and_learns_from_its_own_weights() -> None:
    """At first less is kept than the half that is asked for: 1 of 11, then 2 of 12."""
    network = Line()
    average = Average(network, 0.5, Memory())
    found = [learn(network, average) for _ in range(2)]
    assert [learned for learned, _ in found] == [1.0, 2.0]
    first = 10 / 11
    assert [mean for _, mean in found] == pytest.approx([first, first / 6 + 2 * 5 / 6])


def test_later_it_keeps_the_share_that_is_asked_for() -> None:
    network = Line()
    average = Average(network, 0.5, Memory())
    means = [learn(network, average) for _ in range(12)]
    (_, before), (learned, mean) = means[-2:]
    assert mean == pytest.approx(0.5 * before + 0.5 * learned)


def test_without_it_the_network_has_what_learned_last() -> None:
    network = Line()
    average = Average(network, 0.0, Memory())
    assert [learn(network, average) for _ in range(3)] == [(1.0, 1.0), (2.0, 2.0), (3.0, 3.0)]


def test_a_killed_training_goes_on_with_both() -> None:
    network, memory = Line(), Memory()
    memory.keep(network=network)
    average = Average(network, 0.5, memory)
    for _ in range(3):
        learn(network, average)
    other, again = Line(), Memory({place: value.copy() for place, value in memory.state().items()}, done=3)
    again.keep(network=other)
    assert learn(other, Average(other, 0.5, again)) == learn(network, average)
