"""Which weights are kept: those that did best on validation jobsets."""

from collections.abc import Iterator

import torch
from torch import nn

from pipeline.learning.memory import best_on_validation
from pipeline.learning.update import Update
from pipeline.problems.pool.agents.networks.network import Network


class Counter(Network):
    """A network of one weight: how many updates it has seen."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = nn.Parameter(torch.zeros(1))


def counting(network: Counter, updates: int) -> Iterator[Update]:
    """Count up, and say so."""
    for step in range(1, updates + 1):
        with torch.no_grad():
            network.seen.add_(1)
        yield Update(step, {"loss": 10.0 * step})


def run(costs: list[float], every: int) -> tuple[int, list[Update]]:
    """Judge the network by the cost of each number of updates; return the kept number and what was passed on."""
    network = Counter()
    updates = counting(network, len(costs) - 1)
    passed = best_on_validation(updates, network, lambda: costs[int(network.seen)], every, last=len(costs) - 1)
    told = list(passed)
    return int(network.seen), told


def test_the_best_weights_are_kept_and_not_the_last() -> None:
    assert run([9.0, 5.0, 3.0, 4.0, 8.0], every=1)[0] == 2


def test_the_weights_at_the_start_are_kept_where_no_update_is_better() -> None:
    assert run([2.0, 5.0, 3.0, 4.0], every=1)[0] == 0


def test_the_earlier_of_two_equals_is_kept() -> None:
    assert run([9.0, 3.0, 5.0, 3.0], every=1)[0] == 1


def test_only_every_so_many_updates_are_judged_and_the_last_one() -> None:
    kept, told = run([9.0, 1.0, 5.0, 1.0, 6.0, 4.0], every=2)
    assert kept == 5
    assert [(update.step, update.metrics.get("validation")) for update in told] == [
        (0, 9.0),
        (1, None),
        (2, 5.0),
        (3, None),
        (4, 6.0),
        (5, 4.0),
    ]


def test_the_metrics_of_every_update_are_passed_on() -> None:
    _, told = run([9.0, 5.0, 3.0], every=2)
    assert [dict(update.metrics) for update in told] == [
        {"validation": 9.0},
        {"loss": 10.0},
        {"loss": 20.0, "validation": 3.0},
    ]


def test_a_learner_without_updates_keeps_its_start() -> None:
    assert run([4.0], every=1) == (0, [Update(0, {"validation": 4.0})])
