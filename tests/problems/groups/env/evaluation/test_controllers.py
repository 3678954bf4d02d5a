"""From values to a setting: the knapsack's optimum, every unit handed out, unmet demand first."""

from itertools import product

import numpy as np
import pytest
import torch
from group_builders import CLUSTER, CONFIGURATIONS, observed, untrained
from numpy.testing import assert_array_equal

from pipeline.core.types import FloatArray, IntArray
from pipeline.problems.groups.agents.networks.q_network import QNetwork, controller
from pipeline.problems.groups.env.evaluation.controllers import Decided, decided, own, setting_of
from pipeline.problems.groups.env.nouns import Configurations, Observation

EIGHT = CLUSTER._replace(capacity=np.array([8]))


def best_by_trying(values: FloatArray, configurations: Configurations, total: IntArray) -> float:
    """The most that any choice is worth in one state [G, L, O], of all there are units for."""
    places = product(range(len(configurations.units)), range(configurations.orders))
    worth = []
    for choice in product(list(places), repeat=len(values)):
        level, order = (list(column) for column in zip(*choice, strict=True))
        if (configurations.units[level].sum(axis=0) <= total).all():
            worth.append(values[range(len(values)), level, order].sum())
    return float(max(worth))


@pytest.mark.parametrize(
    ("units", "total"),
    [([[0], [1], [3]], [4]), ([[0, 0], [1, 2], [2, 5]], [4, 6]), ([[0], [2], [9]], [5])],
    ids=["one resource", "two resources", "a level that is out of reach"],
)
def test_nothing_that_there_are_units_for_is_worth_more_than_what_is_decided(
    units: list[list[int]], total: list[int]
) -> None:
    configurations, most = Configurations(np.array(units), orders=2), np.array(total)
    values = np.random.default_rng(1).normal(size=(40, 3, 3, 2))
    chosen = decided(values, configurations, most)
    for k in range(40):
        assert chosen.value[k].sum() == pytest.approx(best_by_trying(values[k], configurations, most))
        assert_array_equal(values[k, range(3), chosen.level[k], chosen.order[k]], chosen.value[k])
        assert (configurations.units[chosen.level[k]].sum(axis=0) <= most).all()


def test_the_order_is_the_best_one_at_the_level() -> None:
    # Of group 0, order 1 is best at 2 units and order 0 at 4; both at 4 would be worth 9 + 6, but there are 4 units.
    values = np.array([[[[0, 0], [3, 7], [9, 1]], [[1, 0], [2, 5], [6, 0]]]], dtype=np.float32)
    chosen = decided(values, CONFIGURATIONS, np.array([4]))
    assert chosen.level.tolist() == [[1, 1]]  # 7 + 5; 9 + 1 and 0 + 6 are less
    assert chosen.order.tolist() == [[1, 1]]
    assert chosen.value.tolist() == [[7, 5]]
    chosen = decided(values, CONFIGURATIONS, np.array([6]))
    assert (chosen.level.tolist(), chosen.order.tolist()) == ([[2, 1]], [[0, 1]])  # 9 + 5


def test_with_rewards_levels_are_chosen_by_these_in_the_order_of_most_value() -> None:
    values = np.array([[[[0, 0], [3, 7], [9, 1]], [[1, 0], [2, 5], [6, 0]]]], dtype=np.float32)
    rewards = np.array([[[[0, 0], [9, 1], [2, 9]], [[0, 0], [9, 1], [8, 0]]]], dtype=np.float32)
    # In those orders group 0 is rewarded 0, 1 and 2, and group 1 0, 1 and 8; by value it would be 2 units for each.
    chosen = decided(values, CONFIGURATIONS, np.array([4]), rewards=rewards)
    assert (chosen.level.tolist(), chosen.order.tolist()) == ([[0, 2]], [[0, 0]])
    assert chosen.value.tolist() == [[0, 6]]  # what the network expects


def test_each_state_is_decided_for_itself() -> None:
    values = np.random.default_rng(2).normal(size=(6, 2, 3, 2))
    whole = decided(values, CONFIGURATIONS, np.array([4]))
    for k in range(6):
        alone = decided(values[k : k + 1], CONFIGURATIONS, np.array([4]))
        assert_array_equal(alone.level[0], whole.level[k])


def shares(level: list[int], view: Observation, total: int = 8) -> list[int]:
    chosen = Decided(np.array([level]), np.zeros((1, 2), dtype=int), np.zeros((1, 2)))
    found: list[int] = setting_of(chosen, view, CONFIGURATIONS, np.array([total])).share[0, :, 0].tolist()
    return found


def wanting(used: list[int], waiting: list[int], lately: tuple[float, float] = (0, 0)) -> Observation:
    """Groups that use units, wait for more in both of their queues, and of which work lately arrived."""
    wanted = [[[units - units // 2], [units // 2]] for units in waiting]
    recent = [[work / 2, work / 2] for work in lately]
    return observed(EIGHT, used=[[units] for units in used], waiting_demand=wanted, recent_work=recent)


def test_unmet_demand_has_first_of_what_is_left_over() -> None:
    # 2 + 2 of 8 units are decided. Group 0 holds 2 and wants 3 more: 3 are missing; group 1 has what it wants. The last
    # unit goes by the work that lately arrived, 1 to 3.
    assert shares([1, 1], wanting([2, 0], [3, 1], (1, 3))) == [5, 3]


def test_unmet_demand_shares_what_is_left_over_where_it_does_not_do() -> None:
    # 4 units are left over for 6 and 3 that are missing: 2 2/3 and 1 1/3.
    assert shares([1, 1], wanting([2, 2], [6, 3], (0, 9))) == [5, 3]


def test_what_nobody_wants_follows_the_work_that_lately_arrived() -> None:
    assert shares([0, 0], wanting([0, 0], [0, 0], (1, 3))) == [2, 6]
    assert shares([0, 0], wanting([0, 0], [0, 0])) == [4, 4]  # none did


def test_what_is_decided_for_a_group_is_not_taken_from_it() -> None:
    assert shares([0, 2], wanting([0, 0], [8, 0]), total=4) == [0, 4]


ALL_TO_THE_FIRST = Decided(np.array([[2, 0]]), np.array([[0, 0]]), np.zeros((1, 2)))  # 4 of 4 units


def shares_where(running: list[int], wants: list[int], waited: list[float]) -> list[int]:
    """Return the shares when all was decided for the first group, and each group's second queue has one job."""
    view = observed(
        CLUSTER,
        running=running,
        used=[[number] for number in running],
        waiting=[[0, 1], [0, 1]],
        waiting_demand=[[[0], [units]] for units in wants],
        head_demand=[[[0], [units]] for units in wants],
        head_waited=[[0.0, time] for time in waited],
    )
    found: list[int] = setting_of(ALL_TO_THE_FIRST, view, CONFIGURATIONS, np.array([4])).share[0, :, 0].tolist()
    return found


def test_while_nothing_runs_the_group_that_has_waited_longest_is_given_what_its_job_wants() -> None:
    assert shares_where(running=[0, 0], wants=[4, 3], waited=[5.0, 7.0]) == [1, 3]


def test_while_something_runs_a_group_may_be_left_with_nothing() -> None:
    assert shares_where(running=[1, 0], wants=[3, 3], waited=[5.0, 7.0]) == [4, 0]


def test_who_has_waited_longest_and_has_the_units_keeps_what_was_decided() -> None:
    assert shares_where(running=[0, 0], wants=[3, 3], waited=[9.0, 7.0]) == [4, 0]


def test_orders_are_set_as_decided() -> None:
    chosen = Decided(np.array([[0, 1]]), np.array([[1, 0]]), np.zeros((1, 2)))
    setting = setting_of(chosen, wanting([0, 0], [1, 1]), CONFIGURATIONS, np.array([8]))
    assert setting.order.tolist() == [[1, 0]]


@pytest.mark.parametrize("seed", range(20))
def test_the_whole_cluster_is_handed_out_and_nobody_has_less_than_decided(seed: int) -> None:
    rng = np.random.default_rng(seed)
    cluster = CLUSTER._replace(capacity=np.array([11, 30]), groups=3)
    configurations = Configurations(np.array([[0, 0], [3, 8], [5, 20]]), orders=2)
    view = observed(
        cluster,
        used=rng.integers(0, 4, (3, 2)),
        waiting_demand=rng.integers(0, 5, (3, 2, 2)),
        recent_work=rng.random((3, 2)),
    )
    chosen = decided(rng.normal(size=(1, 3, 3, 2)), configurations, cluster.capacity)
    share = setting_of(chosen, view, configurations, cluster.capacity).share
    assert share.sum(axis=1).tolist() == [[11, 30]]
    assert (share >= configurations.units[chosen.level]).all()


def test_each_groups_own_best_is_brought_down_to_what_there_is() -> None:
    # Each would rather have 4 of the 6 units. Of equals the first goes down: by what it is worth, not by the knapsack.
    values = np.array([[[0.0, 1.0, 9.0], [0.0, 4.0, 5.0]]])
    assert own(values, CONFIGURATIONS.units, np.array([8])).tolist() == [[2, 2]]
    assert own(values, CONFIGURATIONS.units, np.array([6])).tolist() == [[1, 2]]
    chosen = decided(values[..., None], CONFIGURATIONS._replace(orders=1), np.array([6]))
    assert chosen.level.tolist() == [[2, 1]]  # 9 + 4 instead of 1 + 5


@pytest.mark.parametrize("total", [[3, 9], [7, 7], [40, 40]])
def test_own_best_levels_fit_the_cluster(total: list[int]) -> None:
    units, values = np.array([[0, 0], [2, 1], [4, 3], [6, 7]]), np.random.default_rng(3).normal(size=(50, 4, 4))
    level = own(values, units, np.array(total))
    assert (units[level].sum(axis=1) <= total).all()
    assert (level <= values.argmax(axis=2)).all()
    if min(total) == 40:
        assert_array_equal(level, values.argmax(axis=2))


def likes(order: int, *worth: float) -> QNetwork:
    """A network of two groups to which it is worth something that the head of queue 0 fits, in one order."""
    network = untrained("per_group")
    with torch.no_grad():
        for weight in network.parameters():
            weight.zero_()
        network.of_level.weight[:, 6, 0] = 1  # does that head fit?
        network.hidden.weight[:, 0, 0] = 1
        network.value.weight[:, 0, order] = torch.tensor(worth)
    return network


@pytest.mark.parametrize("order", [0, 1])
def test_a_network_makes_a_controller_that_sets_what_it_values_most(order: int) -> None:
    # A head waits in queue 0 of group 1 alone, and takes more than 2 units.
    view = observed(CLUSTER, head_demand=[[[0], [1]], [[3], [0]]], waiting_demand=[[[0], [1]], [[3], [0]]])
    setting = controller(likes(order, 1, 1), CLUSTER, CONFIGURATIONS)(view, np.zeros(1))
    assert setting.share[0, :, 0].tolist() == [0, 4]
    assert setting.order.tolist() == [[0, order]]


def test_a_controller_may_leave_the_knapsack_aside() -> None:
    # Heads that fit into 4 and into 2 units, worth 5 and 1: of 4 units the knapsack gives all to the first. Left to
    # themselves the groups would have 4 + 2, and the one that has most goes down.
    view = observed(CLUSTER, head_demand=[[[3], [0]], [[2], [0]]], waiting_demand=[[[3], [0]], [[2], [0]]])
    network = likes(0, 5, 1)
    assert controller(network, CLUSTER, CONFIGURATIONS)(view, np.zeros(1)).share.tolist() == [[[4], [0]]]
    assert controller(network, CLUSTER, CONFIGURATIONS, own)(view, np.zeros(1)).share.tolist() == [[[2], [2]]]
