"""What survives a kill between two updates: networks, optimizers, the best weights."""

from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.optim import Adam, RMSprop

from pipeline.learning.memory import Best, Memory
from pipeline.problems.pool.agents.networks.network import Network


class Line(Network):
    """A network of two weights."""

    def __init__(self, slope: float = 0.0) -> None:
        super().__init__()
        self.slope = nn.Parameter(torch.tensor([slope, -slope]))


def step(network: Line, optimizer: torch.optim.Optimizer) -> None:
    optimizer.zero_grad()
    ((network.slope - 3.0) ** 2).sum().backward()
    optimizer.step()


def after(memory: Memory) -> Memory:
    """The memory of the next process, from what this one saved."""
    return Memory({place: value.copy() for place, value in memory.state().items()}, memory.done + 1)


@pytest.mark.parametrize("kind", [Adam, RMSprop])
def test_an_optimizer_steps_on_as_if_nothing_had_been(kind: Callable[..., torch.optim.Optimizer]) -> None:
    network, memory = Line(), Memory()
    optimizer = kind(network.parameters(), lr=0.1)
    memory.keep(network=network, optimizer=optimizer)
    for _ in range(3):
        step(network, optimizer)
    saved = after(memory)
    step(network, optimizer)

    other = Line(7.0)
    again = kind(other.parameters(), lr=0.1)
    saved.keep(network=other, optimizer=again)
    step(other, again)
    assert torch.equal(other.slope, network.slope)
    fresh = kind(other.parameters(), lr=0.1)
    other.load_state_dict({"slope": network.slope.detach()})
    step(network, optimizer)
    step(other, fresh)
    assert not torch.equal(other.slope, network.slope)  # without its memory it would have stepped elsewhere


def test_the_settings_of_an_optimizer_are_those_of_the_new_process() -> None:
    network, memory = Line(), Memory()
    optimizer = Adam(network.parameters(), lr=0.1)
    memory.keep(optimizer=optimizer)
    step(network, optimizer)
    other = Adam(Line().parameters(), lr=0.2)
    after(memory).keep(optimizer=other)
    assert other.param_groups[0]["lr"] == 0.2
    assert {place for place in memory.state() if "lr" in place} == set()


def test_what_is_saved_is_named_by_its_place() -> None:
    network, memory = Line(1.0), Memory()
    optimizer = Adam(network.parameters(), lr=0.1)
    memory.keep(network=network, optimizer=optimizer, best=Best(network))
    step(network, optimizer)
    assert {place: value.tolist() for place, value in memory.state().items()} == {
        "network/slope": pytest.approx([1.1, -0.9]),
        "optimizer/state/0/step": 1.0,
        "optimizer/state/0/exp_avg": pytest.approx([-0.4, -0.8]),  # a tenth of the gradient 2 (slope - 3)
        "optimizer/state/0/exp_avg_sq": pytest.approx([0.016, 0.064]),
        "best/cost": float("inf"),
        "best/stale": 0,
        "best/weights/slope": [1.0, -1.0],
    }


def test_a_part_that_was_not_yet_named_begins_anew() -> None:
    network, memory = Line(), Memory()
    memory.keep(network=network)
    saved, other = after(memory), Line(7.0)
    optimizer = Adam(other.parameters(), lr=0.1)
    saved.keep(network=other, optimizer=optimizer)
    assert torch.equal(other.slope, network.slope)
    assert optimizer.state_dict()["state"] == {}


def test_a_new_memory_changes_nothing() -> None:
    network, memory = Line(2.0), Memory()
    memory.keep(network=network)
    assert not memory.resumed
    assert network.slope.tolist() == [2.0, -2.0]


def test_two_parts_of_one_name_are_refused() -> None:
    memory = Memory()
    memory.keep(network=Line())
    with pytest.raises(ValueError, match="'network' is registered already"):
        memory.keep(network=Line())


def test_the_best_weights_are_those_of_the_least_cost() -> None:
    network = Line()
    best = Best(network)
    for cost, slope in ((5.0, 1.0), (3.0, 2.0), (3.0, 3.0), (4.0, 4.0)):
        network.load_state_dict({"slope": torch.full((2,), slope)})
        best.offer(cost)
    assert (best.cost, best.stale) == (3.0, 2)
    best.restore()
    assert network.slope.tolist() == [2.0, 2.0]


def test_the_best_weights_are_remembered_with_their_cost_to_the_last_bit() -> None:
    network, memory = Line(1.0), Memory()
    best = Best(network)
    memory.keep(best=best)
    best.offer(0.1 + 0.2)
    best.offer(1.0)
    other = Line(9.0)
    again = Best(other)
    after(memory).keep(best=again)
    assert (again.cost, again.stale) == (0.1 + 0.2, 1)
    again.restore()
    assert other.slope.tolist() == [1.0, -1.0]
