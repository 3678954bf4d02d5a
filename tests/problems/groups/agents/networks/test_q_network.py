"""The value function: one for each group or one for all, of any share; how it is restored."""

import numpy as np
import pytest
import torch
from group_builders import CLUSTER, CONFIGURATIONS, built, untrained, written
from numpy.testing import assert_allclose, assert_array_equal

from pipeline.core.config import GroupsCard, QNetworkConfig, WorthConfig
from pipeline.core.types import FloatArray
from pipeline.errors import UserError
from pipeline.learning.stored import weights_of
from pipeline.problems.groups.agents.networks.features import States, shape_of
from pipeline.problems.groups.agents.networks.q_network import (
    QNetwork,
    ValueNetwork,
    build,
    choice,
    restore,
    tensors,
    values_of,
)
from pipeline.problems.groups.env.evaluation.controllers import decided
from pipeline.problems.groups.env.nouns import SharedCluster

KINDS = ("shared", "per_group")
THREE = CLUSTER._replace(capacity=np.array([12]), groups=3)


def drawn_states(cluster: SharedCluster = CLUSTER, count: int = 5) -> States:
    rng, shape = np.random.default_rng(6), shape_of(cluster)
    told, amounts = (rng.uniform(0, 2, (count, cluster.groups, wide)) for wide in (shape.features, shape.amounts))
    return States(told.astype(np.float32), amounts.astype(np.float32))


def all_values(network: ValueNetwork, seen: States) -> FloatArray:
    return values_of(network, seen, CONFIGURATIONS.units)


def same_weights(one: QNetwork, other: QNetwork) -> bool:
    return all(bool((a == b).all()) for a, b in zip(one.parameters(), other.parameters(), strict=True))


@pytest.mark.parametrize("kind", KINDS)
def test_values_are_those_of_the_networks_formula(kind: str) -> None:
    network = untrained(kind)
    with torch.no_grad():
        for weight in network.parameters():
            weight.zero_()
        network.of_level.weight[:, 1, 0] = 1  # the room, in equal shares
        network.of_state.weight[:, -4, 0] = 1  # of the past: run times of queue 0
        network.past[:, -4] = torch.tensor([0.5, 3.0])
        network.hidden.weight[:, 0, 0] = 2
        network.hidden.bias[:, 0, 0] = -1
        network.value.weight[:, 0, 0] = 1
        network.value.bias[:, 0, 1] = 3
    found = all_values(network, States(*(np.zeros_like(field) for field in drawn_states(count=2))))
    # Rooms of 0, 1 and 2 equal shares of 2 units; group 0: relu(2 * relu(room + 0.5) - 1), group 1: with + 3.
    expected = [[[0, 3], [2, 3], [4, 3]], [[5, 3], [7, 3], [9, 3]]]
    assert_allclose(found, [expected, expected], rtol=1e-6)


def test_a_share_between_levels_has_a_value_between_them_where_nothing_bends() -> None:
    network = untrained()
    seen = drawn_states()._replace(amounts=np.zeros_like(drawn_states().amounts))
    with torch.no_grad():
        for weight in network.parameters():
            weight.zero_()
        network.of_level.weight[:, 0, 0] = network.hidden.weight[:, 0, 0] = network.value.weight[:, 0, 0] = 1
    assert_allclose(values_of(network, seen, np.array([[3]]))[:, :, 0, 0], 1.5)  # 3 of 2 units


@pytest.mark.parametrize("kind", KINDS)
def test_an_arbitrary_share_is_worth_what_the_level_of_as_many_units_is(kind: str) -> None:
    network, seen = untrained(kind), drawn_states()
    level = np.random.default_rng(0).integers(0, 3, (5, 2))
    given = torch.from_numpy(CONFIGURATIONS.units[level].astype("float32"))[:, :, None]
    with torch.no_grad():
        found = network(tensors(seen), given)[:, :, 0].numpy()
    wanted = np.take_along_axis(all_values(network, seen), level[:, :, None, None], axis=2)[:, :, 0]
    assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_networks_of_their_own_do_not_share_weights() -> None:
    network, seen = untrained("per_group"), drawn_states()
    before = all_values(network, seen)
    with torch.no_grad():
        for weight in network.parameters():
            assert len(weight) == 2
            weight[1] += 0.1
    after = all_values(network, seen)
    assert_array_equal(after[:, 0], before[:, 0])
    assert (after[:, 1] != before[:, 1]).all()


def test_networks_of_their_own_begin_apart() -> None:
    alike = States(*(np.repeat(field[:, :1], 2, axis=1) for field in drawn_states()))
    known = np.zeros((2, shape_of(CLUSTER).past), dtype=np.float32)
    apart, shared = (all_values(built(kind, 2, CLUSTER, known), alike) for kind in ("per_group", "shared"))
    assert (apart[:, 0] != apart[:, 1]).all()
    assert_allclose(shared[:, 0], shared[:, 1], rtol=1e-5, atol=1e-7)  # sums are taken in another order


def test_one_network_for_all_does_not_mind_which_group_is_which() -> None:
    network, seen, turned = untrained(cluster=THREE), drawn_states(THREE), [2, 0, 1]
    other = untrained(cluster=THREE)
    other.past.copy_(network.past[turned])
    found = all_values(other, States(*(field[:, turned] for field in seen)))
    assert_allclose(found, all_values(network, seen)[:, turned], rtol=1e-5, atol=1e-6)


def test_one_network_for_all_tells_groups_apart_by_their_past() -> None:
    network, seen = untrained(), drawn_states()
    before = all_values(network, seen)
    network.past[0] += 1
    after = all_values(network, seen)
    assert (after[:, 0] != before[:, 0]).any()
    assert_array_equal(after[:, 1], before[:, 1])


@pytest.mark.parametrize("kind", KINDS)
def test_each_state_has_its_values_whatever_stands_beside_it(kind: str) -> None:
    network, seen = untrained(kind), drawn_states()
    alone = np.concatenate([all_values(network, States(*(field[k : k + 1] for field in seen))) for k in range(5)])
    assert_allclose(all_values(network, seen), alone, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_the_seed_gives_the_initial_weights_and_touches_nobody_elses(kind: str) -> None:
    torch.manual_seed(4)
    expected = torch.rand(2).tolist()
    torch.manual_seed(4)
    one, again, other = (untrained(kind, seed) for seed in (1, 1, 2))
    assert torch.rand(2).tolist() == expected
    assert same_weights(one, again)
    assert not same_weights(one, other)


CARD = GroupsCard(
    problem="groups",
    agent="controller",
    scenario="shares",
    resources={"cores": 4},
    groups=2,
    queues=("short", "long"),
    orders=(("short", "long"), ("long", "short")),
    levels=(0, 1, 2),
    interval=10.0,
    objective="delay",
    against="zero",
    gamma=0.5,
    network=QNetworkConfig(name="q_network", hidden=(8, 6), weights="shared"),
)


@pytest.mark.parametrize("kind", KINDS)
def test_a_restored_network_values_as_before(kind: str) -> None:
    network, seen = untrained(kind), drawn_states()
    network.scale.fill_(7)
    config = QNetworkConfig(name="q_network", hidden=(8, 6), weights=kind)
    again = restore(CARD.model_copy(update={"network": config}), weights_of(network))
    assert_array_equal(all_values(again, seen), all_values(network, seen))
    assert again.scale.tolist() == [7]


@pytest.mark.parametrize("combine", ["q", "reward"])
def test_a_network_that_sums_rewards_chooses_levels_by_them_and_orders_by_values(combine: str) -> None:
    config = QNetworkConfig(name="q_network", hidden=(8, 6), weights="shared", combine=combine)
    network, seen = build(config, CLUSTER, untrained().past.numpy(), seed=2), drawn_states(count=20)
    values = all_values(network, seen)
    chosen = choice(network, seen, CONFIGURATIONS, CLUSTER.capacity)
    assert_array_equal(chosen.order, np.take_along_axis(values.argmax(axis=3), chosen.level[..., None], 2)[..., 0])
    by_value = decided(values, CONFIGURATIONS, CLUSTER.capacity)
    assert np.array_equal(chosen.level, by_value.level) == (combine == "q")
    again = restore(CARD.model_copy(update={"network": config}), weights_of(network))
    assert_array_equal(choice(again, seen, CONFIGURATIONS, CLUSTER.capacity).level, chosen.level)


def test_a_written_value_function_is_restored() -> None:
    found, network = CARD.model_copy(update={"network": WorthConfig(name="worth")}), written()
    with torch.no_grad():
        network.weight += torch.linspace(-1, 1, len(network.weight))
    assert_array_equal(
        all_values(restore(found, weights_of(network)), drawn_states()), all_values(network, drawn_states())
    )


def test_restoring_touches_nobody_elses_randomness() -> None:
    torch.manual_seed(4)
    expected = torch.rand(2).tolist()
    torch.manual_seed(4)
    restore(CARD, weights_of(untrained()))
    assert torch.rand(2).tolist() == expected


WRONG = r"^model of agent 'controller': tensor hidden\.bias: expected 1 x 1 x 6 float32, found 2 x 1 x 6 float32$"


def test_weights_of_another_network_are_refused_in_one_line() -> None:
    with pytest.raises(UserError, match=WRONG):
        restore(CARD, weights_of(untrained("per_group")))


def test_build_follows_the_config() -> None:
    config = QNetworkConfig(name="q_network", hidden=(5, 3), weights="per_group")
    network = build(config, THREE, np.zeros((3, shape_of(THREE).past), dtype=np.float32), seed=0)
    shape = shape_of(THREE)
    assert tuple(network.of_state.weight.shape) == (3, shape.features + shape.past, 5)
    assert tuple(network.value.weight.shape) == (3, 3, 2)
    assert network.part.tolist() == [4]
    assert network.scale.tolist() == [0]  # not known yet
