"""What a controller's network sees, by hand: amounts in equal shares, times in intervals."""

from math import log1p

import numpy as np
import pytest
import torch
from group_builders import CLUSTER, Job, drawn_jobs, jobset, observed
from numpy.testing import assert_allclose, assert_array_equal

from pipeline.problems.groups.agents.networks.features import MOST_SHARES, States, of_levels, past, shape_of, states
from pipeline.problems.groups.env.nouns import Jobs, SharedCluster, batch
from pipeline.problems.groups.env.simulator.batch import GroupsSimulator
from pipeline.problems.groups.env.teachers import equal

TWO = SharedCluster(np.array([8, 16]), 2, np.array([[0, 1], [1, 0]]), 10.0, False, 100.0)  # an equal share: 4 and 8
VIEW = observed(
    TWO,
    waiting=[[3, 0], [0, 1]],
    waiting_demand=[[[6, 4], [0, 0]], [[0, 0], [4, 8]]],
    waiting_work=[[5, 0], [0, 10]],
    waited=[[30, 0], [0, 5]],
    head_waited=[[20, 0], [0, 5]],
    head_demand=[[[2, 8], [0, 0]], [[0, 0], [4, 8]]],
    head_estimate=[[40, 0], [0, 20]],
    running=[2, 1],
    used=[[3, 4], [3, 4]],
    left=[15, 0],
    releasing=[[2, 0], [0, 0]],
    recent_jobs=[[1.5, 0], [0, 0]],
    recent_work=[[10, 0], [0, 0]],
    share=[[4, 4], [4, 12]],
    order=[1, 0],
)


def test_queues_are_counted_in_equal_shares_and_intervals() -> None:
    features = states(VIEW, TWO).features
    # 6 of 4 units and 4 of 8: the larger. Of its first job 2 of 4 and 8 of 8. Work: times 2 groups, over 10.
    first = [log1p(3), log1p(1.5), log1p(1), log1p(3), log1p(2), 1, log1p(4), log1p(1.5), log1p(2)]
    assert_allclose(features[0, 0, :9], first, rtol=1e-6)
    assert_array_equal(features[0, 0, 9:18], 0)
    second = [log1p(1), log1p(1), log1p(2), log1p(0.5), log1p(0.5), 1, log1p(2), 0, 0]
    assert_allclose(features[0, 1, 9:18], second, rtol=1e-6)


def test_groups_and_the_cluster_are_counted_so_too() -> None:
    features = states(VIEW, TWO).features
    # Runs 2; uses 3 of 4 and 4 of 8; work left 15 * 2 / 10; given 4 of 4 and 4 of 8: the smaller; order 1 of 2.
    assert_allclose(features[0, 0, 18:24], [log1p(2), 0.75, log1p(3), 0.5, 0, 1], rtol=1e-6)
    # The other group wants 4 of 4 and 8 of 8, one share of the two; of 8 and 16 units, 2 and 8 are idle: the scarcer.
    assert_allclose(features[0, 0, 24:], [log1p(0.5), 0.25], rtol=1e-6)
    assert_allclose(features[0, 1, 18:], [log1p(1), 0.75, 0, 1, 1, 0, log1p(0.75), 0.25], rtol=1e-6)


def test_amounts_are_kept_for_every_resource() -> None:
    amounts = states(VIEW, TWO).amounts
    used, releasing, share, wanted, first, second = [0.75, 0.5], [0.5, 0], [1, 0.5], [1.5, 0.5], [0.5, 1], [0, 0]
    assert_allclose(amounts[0, 0], [*used, *releasing, *share, *wanted, *first, *second])


def test_what_a_group_could_not_use_is_not_told_apart() -> None:
    plenty = SharedCluster(np.array([100]), 100, np.array([[0, 1]]), 10.0, False, 100.0)
    features = [
        states(observed(plenty, share=[[units], *[[0]] * 99]), plenty).features[0, 0, 21] for units in (20, 21, 90)
    ]
    assert features == [MOST_SHARES] * 3


def test_widths_are_those_of_the_shape() -> None:
    shape, found = shape_of(TWO), states(VIEW, TWO)
    assert found.features.shape == (1, 2, shape.features) == (1, 2, 2 * 9 + 4 + 2 + 2)
    assert found.amounts.shape == (1, 2, shape.amounts) == (1, 2, 2 * (4 + 2))
    assert (found.features.dtype, found.amounts.dtype) == (np.float32, np.float32)


def _after(jobs: Jobs, cluster: SharedCluster, turns: int) -> States:
    """What is seen of an episode after some intervals of equal shares."""
    groups, rows = GroupsSimulator(batch([jobs]), cluster, np.ones(len(jobs.arrival))), np.array([0])
    for _ in range(turns):
        groups.step(rows, equal(cluster, 0)(groups.observe(rows), np.zeros(1)))
    return states(groups.observe(rows), cluster)


def _same(one: States, other: States) -> None:
    assert one.features.any()
    for found, expected in zip(one, other, strict=True):
        assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("turns", range(4))
def test_a_cluster_twice_as_large_with_jobs_twice_as_wide_looks_the_same(turns: int) -> None:
    jobs = drawn_jobs(300, 7)
    wide, large = jobs._replace(demand=2 * jobs.demand), CLUSTER._replace(capacity=2 * CLUSTER.capacity)
    _same(_after(wide, large, turns), _after(jobs, CLUSTER, turns))


@pytest.mark.parametrize("turns", range(4))
def test_a_cluster_whose_time_runs_slower_looks_the_same(turns: int) -> None:
    jobs = drawn_jobs(300, 7)
    slow = jobs._replace(arrival=4 * jobs.arrival, duration=4 * jobs.duration, estimate=4 * jobs.estimate)
    _same(_after(slow, CLUSTER._replace(interval=40.0), turns), _after(jobs, CLUSTER, turns))


def test_a_group_looks_the_same_among_twice_as_many_in_a_cluster_twice_as_large() -> None:
    jobs = drawn_jobs(300, 7)
    twice = Jobs(*(np.repeat(column, 2, axis=0) for column in jobs))
    twice = twice._replace(group=2 * twice.group + np.tile([0, 1], len(jobs.arrival)))
    more = CLUSTER._replace(capacity=2 * CLUSTER.capacity, groups=4)
    few, many = _after(jobs, CLUSTER, 3), _after(twice, more, 3)
    others = -2  # the only feature that is of the other groups: a group's double is one of them
    for k in range(4):
        assert_allclose(many.amounts[0, k], few.amounts[0, k // 2], rtol=1e-6)
        kept = np.delete(many.features[0, k], others), np.delete(few.features[0, k // 2], others)
        assert_allclose(*kept, rtol=1e-6)


def _levels(*units: tuple[int, int], group: int = 0) -> torch.Tensor:
    """What levels would mean to a group of VIEW."""
    given = torch.tensor(units, dtype=torch.float32) / torch.tensor([4.0, 8.0])
    return of_levels(shape_of(TWO), torch.from_numpy(states(VIEW, TWO).amounts), given)[0, group]


def test_a_level_says_what_room_it_leaves_and_which_heads_fit() -> None:
    # Group 0 uses 3/4 and 1/2 of equal shares, gets 1/2 and 0 back, has 1 and 1/2, wants 3/2 and 1/2; its head wants
    # 1/2 and 1. Given 2 and 1, there is room for 5/4 and 1/2: 5/6 and all of what it wants, but not the head.
    found = _levels((8, 8), (8, 16))
    assert_allclose(found[0], [1, 0.5, 0.5, 5 / 6, log1p(0.25), 0.5, 0, 0], rtol=1e-6)
    # Given 2 and 2, room for 5/4 and 3/2: the head fits; nobody is the head of the other queue.
    assert_allclose(found[1], [2, 1.25, 1.5, 5 / 6, log1p(0.25), 1, 1, 0], rtol=1e-6)


def test_nothing_leaves_less_than_no_room() -> None:
    assert_allclose(_levels((0, 0))[0], [0, -0.75, -0.5, 0, log1p(1.5), -1, 0, 0], rtol=1e-6)


def test_a_head_fits_that_takes_all_the_room() -> None:
    # Group 1 uses 3 and 4 units, and its head wants 4 and 8.
    assert _levels((7, 12), (6, 12), (7, 11), group=1)[:, -1].tolist() == [1, 0, 0]


def test_the_past_of_a_group_is_its_queues_parts_and_means() -> None:
    rows = (Job(0, 10, 2, 0), Job(1, 9, 6, 0, estimate=30), Job(2, 20, 4, 0, queue=1), Job(3, 5, 8, 1, queue=1))
    cluster = CLUSTER._replace(capacity=np.array([8]), groups=3)
    found = past({60: [jobset(*rows[:2])], 80: [jobset(*rows[2:])]}, cluster)
    # Told 10 and 30, and 20, in intervals of 10; demands of 2 and 6 units, and 4, in equal shares of 8 / 3.
    group = [2 / 3, 1 / 3, log1p(2), log1p(2), log1p(1.5), log1p(1.5)]
    assert_allclose(found[0], group, rtol=1e-6)
    assert_allclose(found[1], [0, 1, 0, log1p(0.5), 0, log1p(3)], rtol=1e-6)
    assert_array_equal(found[2], 0)  # nobody of it was there
    assert found.shape == (3, shape_of(cluster).past)
