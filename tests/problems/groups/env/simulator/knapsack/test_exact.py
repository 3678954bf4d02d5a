"""Shares of user groups: worked by hand, and held to every choice there is on small instances."""

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from pipeline.core.types import FloatArray, IntArray
from pipeline.problems.groups.env.simulator.knapsack import several
from pipeline.problems.groups.env.simulator.knapsack.exact import best_shares, best_shares_two, own_best, squeezed
from pipeline.problems.groups.env.simulator.knapsack.several import lagrangian, plan

INSTANCES = 300


class Instance(NamedTuple):
    """One question of shares; the values of some are whole, so that there are ties."""

    value: FloatArray  # [B, G, L]
    units: IntArray  # [L, R]
    total: IntArray  # [R]

    def best(self) -> FloatArray:
        """Return the optimum [B] over all choices, one by one."""
        most = np.full(len(self.value), -np.inf)
        groups, levels = self.value.shape[1:]
        for choice in product(range(levels), repeat=groups):
            if (self.units[list(choice)].sum(axis=0) <= self.total).all():
                most = np.maximum(most, self.value[:, range(groups), choice].sum(axis=1))
        return most

    def holds(self, level: IntArray) -> bool:
        """Are there the units, in every state?"""
        return bool((self.units[level].sum(axis=1) <= self.total).all())

    def worth(self, level: IntArray) -> FloatArray:
        """Return what levels are worth [B]."""
        groups = np.arange(self.value.shape[1])
        return np.array([state[groups, chosen].sum() for state, chosen in zip(self.value, level, strict=True)])


def instances(resources: int) -> Iterator[Instance]:
    """Draw small ones: levels in any order or beyond the total, units that repeat or are 0, a total of 0."""
    for k in range(INSTANCES):
        rng = np.random.default_rng([resources, k])
        groups, levels, scale = rng.integers(1, 5), rng.integers(1, 5), rng.integers(1, 4)
        units = scale * rng.integers(0, 1 + rng.integers(1, 12 // scale + 1), (levels, resources))
        units[0] = 0
        whole = rng.integers(-4, 5, (3, groups, levels))
        value = whole.astype(float) if k % 2 else rng.normal(size=whole.shape)
        yield Instance(value, units, rng.integers(0, 13, resources))


def test_a_choice_that_lost_is_not_walked_back() -> None:
    # One unit; group 0 is worth 5 with it, group 1 only 1. V[1, 1] = 5 beats 1 + V[1, 0] = 1, so group 1 has nothing.
    # As printed, line 6 has R[2, 1] = 1 all the same: with line 14 repaired (u = 0 then, and R[1, 0] = 0) group 1 would
    # have the unit, worth 1; as it stands u stays 1, R[1, 1] = 1, and both would have the one unit there is.
    found = best_shares(np.array([[[0.0, 5.0], [0.0, 1.0]]]), np.array([0, 1]), total=1)
    assert found.level.tolist() == [[1, 0]]
    assert found.value.tolist() == [5.0]


def test_two_small_shares_are_worth_more_than_one_large() -> None:
    # 2 + 1 units: 6 + 4 = 10; 1 + 2: 5 + 4.5 = 9.5; all 3 to one: 7 or 4.5.
    found = best_shares(np.array([[[0.0, 5.0, 6.0, 7.0], [0.0, 4.0, 4.5, 4.5]]]), np.arange(4), total=3)
    assert found.level.tolist() == [[2, 1]]
    assert found.value.tolist() == [10.0]


def test_a_group_given_nothing_is_worth_what_it_is_worth_then() -> None:
    # Both lose when they wait: group 0 goes from -9 to -1 with a unit (8), group 1 from -1 to 0 (1).
    found = best_shares(np.array([[[-9.0, -1.0], [-1.0, 0.0]]]), np.array([0, 1]), total=1)
    assert found.level.tolist() == [[1, 0]]
    assert found.value.tolist() == [-2.0]


def test_of_equals_a_later_group_has_nothing_and_the_fewest_units_are_given() -> None:
    same = np.array([[[0.0, 3.0, 3.0, 3.0], [0.0, 3.0, 3.0, 3.0]]])
    assert best_shares(same, np.array([0, 2, 1, 1]), total=1).level.tolist() == [[2, 0]]
    assert best_shares(same, np.array([0, 2, 1, 1]), total=4).level.tolist() == [[2, 2]]


def test_groups_may_have_levels_of_their_own() -> None:
    # Of 4 units group 0 can have 3, group 1 none or 2: 7 with 3 of them, 5 with 2.
    worth = np.array([[[0.0, 7.0], [0.0, 5.0]], [[0.0, 4.0], [0.0, 5.0]]])
    assert best_shares(worth, np.array([[0, 3], [0, 2]]), total=4).level.tolist() == [[1, 0], [0, 1]]


def test_one_resource_is_shared_as_well_as_any_choice() -> None:
    for asked in instances(1):
        found = best_shares(asked.value, asked.units[:, 0], int(asked.total[0]))
        assert asked.holds(found.level)
        assert_allclose(asked.worth(found.level), asked.best(), atol=1e-12)
        assert_allclose(found.value, asked.best(), atol=1e-12)


def test_two_resources_are_shared_as_well_as_any_choice() -> None:
    for asked in instances(2):
        found = best_shares_two(asked.value, asked.units, asked.total)
        assert asked.holds(found.level)
        assert_allclose(found.value, asked.best(), atol=1e-12)
        assert_allclose(asked.worth(found.level), asked.best(), atol=1e-12)


@pytest.mark.parametrize("resources", [1, 2, 3])
def test_a_relaxation_fits_and_bounds_the_best(resources: int) -> None:
    exact = 0
    for asked in instances(resources):
        found, best = lagrangian(asked.value, asked.units, asked.total), asked.best()
        assert asked.holds(found.level)
        assert_allclose(asked.worth(found.level), found.value, atol=1e-12)
        assert (found.value <= best + 1e-9).all()
        assert (best <= found.bound + 1e-9).all()
        exact += int((found.value >= best - 1e-9).sum())
    assert exact > 0.97 * 3 * INSTANCES


def test_a_bound_is_the_least_that_prices_leave() -> None:
    # 3 units, and two groups that want 2 for a worth of 1: one has them. At a price p of all units, groups are worth
    # 2 max(0, 1 - 2/3 p) + p, which is least at p = 1.5.
    found = lagrangian(np.array([[[0.0, 1.0], [0.0, 1.0]]]), np.array([[0], [2]]), np.array([3]))
    assert found.value.tolist() == [1.0]
    assert_allclose(found.bound, [1.5], rtol=1e-6)


def test_a_relaxation_of_some_groups_bounds_the_exact_knapsack() -> None:
    short = 0
    for k in range(50):
        rng = np.random.default_rng([8, k])
        units = rng.integers(0, 13, (6, 2))
        units[0] = 0
        value, total = rng.random((1, 8, 6)) + 0.1 * units.sum(axis=1), rng.integers(5, 40, 2)
        found, best = lagrangian(value, units, total), best_shares_two(value, units, total).value
        assert found.value[0] <= best[0] + 1e-9 <= found.bound[0] + 2e-9
        short += int(found.value[0] < best[0] - 1e-9)
    assert 0 < short < 25


def test_a_relaxation_of_many_groups_is_close_to_its_bound() -> None:
    rng = np.random.default_rng(1)
    units = np.sort(rng.integers(0, 120, (30, 3)), axis=0)
    units[0] = 0
    value = np.sort(rng.random((2, 80, 30)), axis=2)
    found = lagrangian(value, units, np.full(3, 1000))
    assert (units[found.level].sum(axis=1) <= 1000).all()
    assert ((found.bound - found.value) / found.value < 0.01).all()


@pytest.mark.parametrize("resources", [1, 2])
def test_a_plan_for_one_or_two_resources_is_the_best(resources: int) -> None:
    for asked in instances(resources):
        level = plan(asked.value, asked.units, asked.total)
        assert asked.holds(level)
        assert_allclose(asked.worth(level), asked.best(), atol=1e-12)


def test_a_plan_for_three_resources_fits() -> None:
    for asked in instances(3):
        level = plan(asked.value, asked.units, asked.total)
        assert asked.holds(level)
        assert (asked.worth(level) <= asked.best() + 1e-9).all()


def test_a_plan_by_the_scarcest_resource_needs_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    # Memory is 4 times the processors, in units and in total: what fits the processors fits the memory.
    monkeypatch.delattr(several, "best_shares_two")
    monkeypatch.delattr(several, "lagrangian")
    one = np.arange(4)
    value = np.random.default_rng(2).random((5, 3, 4))
    level = plan(value, np.stack([one, 4 * one], axis=1), np.array([5, 20]))
    assert_array_equal(level, best_shares(value, one, 5).level)


def test_a_plan_for_two_resources_of_many_units_is_relaxed(monkeypatch: pytest.MonkeyPatch) -> None:
    # Either resource alone has room for all three, worth 7; both have it for one of either kind, worth 3 + 3.
    monkeypatch.setattr(several, "QUICK_WORK", 0)
    monkeypatch.delattr(several, "best_shares_two")
    value = np.array([[[0.0, 1.0, 1.0], [0.0, 3.0, 2.0], [0.0, 2.0, 3.0]]])
    level = plan(value, np.array([[0, 0], [5, 1], [1, 5]]), np.array([7, 7]))
    assert level.tolist() == [[0, 1, 2]]


def test_a_plan_of_no_states_is_empty() -> None:
    assert plan(np.zeros((0, 2, 3)), np.array([[0], [1], [2]]), np.array([3])).shape == (0, 2)


def test_each_group_alone_takes_what_it_likes_most() -> None:
    assert own_best(np.array([[[0.0, 2.0, 1.0], [0.0, 2.0, 2.0]]])).tolist() == [[1, 1]]


def test_shares_beyond_the_cluster_are_squeezed_from_the_widest() -> None:
    # 5 + 5 + 2 = 12 of 8: group 0 goes to 2 (9), then group 1 to 2 (6).
    assert squeezed(np.array([[2, 2, 1], [0, 1, 2]]), np.array([0, 2, 5]), 8).tolist() == [[1, 1, 1], [0, 1, 2]]


def test_every_resource_is_squeezed() -> None:
    # 12 units of memory of 8: group 0 goes to (2, 1), and 5 processors and 7 units are held.
    units = np.array([[0, 0], [2, 1], [3, 6]])
    assert squeezed(np.array([[2, 2]]), units, np.array([10, 8])).tolist() == [[1, 2]]
    assert squeezed(np.array([[2, 2]]), units, np.array([0, 8])).tolist() == [[0, 0]]


def test_the_resource_that_is_shortest_is_squeezed_first() -> None:
    # Processors: 10 of 6; memory: 8 of 4, which is shorter. Its widest is group 1 (6): one level down it holds (8, 2).
    # Then processors, 16 of 6: group 0 goes to (2, 2), group 1 too, and 4 of each are held.
    units = np.array([[0, 0], [2, 2], [8, 2], [2, 6]])
    assert squeezed(np.array([[2, 3]]), units, np.array([6, 4])).tolist() == [[1, 1]]


def test_what_is_squeezed_is_left_alone() -> None:
    level = np.array([[2, 2]])
    squeezed(level, np.array([0, 2, 5]), 5)
    assert level.tolist() == [[2, 2]]


def test_a_knapsack_of_too_many_steps_is_refused() -> None:
    # 80 groups x 30 levels x 1,001 x 1,001 amounts
    units = np.stack([np.arange(30)] * 2, axis=1)
    with pytest.raises(ValueError, match="would take 2,404,802,400 steps; expected at most 200,000,000"):
        best_shares_two(np.zeros((1, 80, 30)), units, np.array([1000, 1000]))


@pytest.mark.parametrize(
    ("value", "units", "total", "said"),
    [
        (np.zeros((1, 2, 3)), np.array([0, 1]), 1, "do not match"),
        (np.zeros((2, 3)), np.array([0, 1, 2]), 1, "do not match"),
        (np.zeros((1, 2, 3)), np.zeros((4, 3), dtype=np.int64), 1, "do not match"),
        (np.zeros((1, 1, 2)), np.array([1, 2]), 1, r"level 0: expected 0 units, got \[1\]"),
        (np.zeros((1, 1, 2)), np.array([0, -2]), 1, "at least 0, got -2 and 1"),
        (np.zeros((1, 1, 2)), np.array([0, 2]), -1, "at least 0, got 0 and -1"),
        (np.array([[[0.0, np.nan]]]), np.array([0, 2]), 1, "expected finite numbers"),
    ],
)
def test_what_is_no_question_of_shares_is_refused(value: FloatArray, units: IntArray, total: int, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        best_shares(value, units, total)


def test_a_total_for_another_number_of_resources_is_refused() -> None:
    with pytest.raises(ValueError, match="a total of"):
        plan(np.zeros((1, 1, 2)), np.array([[0, 0], [1, 1]]), np.array([1]))
