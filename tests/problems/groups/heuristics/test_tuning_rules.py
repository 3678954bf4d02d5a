"""Rules hand out the whole cluster, each by its own measure; random settings fit, and depend on their draws alone."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.core.types import FloatArray, IntArray, keys, uniform
from pipeline.problems.groups.agents.training.replay import noisy, random_setting
from pipeline.problems.groups.env.nouns import (
    Configurations,
    Controller,
    Observation,
    Setting,
    SharedCluster,
    equal_shares,
)
from pipeline.problems.groups.env.teachers import (
    drf,
    equal,
    fixed,
    progressive_filling,
    proportional,
    shortest_first,
    whole,
)
from pipeline.problems.groups.heuristics.tuning import HEURISTICS, capacity

Amounts = Sequence[Sequence[object]]
LEVELS = Configurations(np.array([[0], [2], [4], [8]]), orders=2)
MAKERS: dict[str, Callable[[SharedCluster, int], Controller]] = {
    **HEURISTICS,
    "fixed": lambda cluster, order: fixed(cluster, order, np.arange(0.0, cluster.groups)),
    "capacity": lambda cluster, order: capacity(cluster, order, np.arange(1.0, cluster.groups + 1)),
    "weighted drf": lambda cluster, order: drf(cluster, order, np.arange(1.0, cluster.groups + 1)),
}


def cluster(*units: int, groups: int) -> SharedCluster:
    return SharedCluster(np.array(units), groups, np.array([[0, 1], [1, 0]]), 1.0, False, 100.0)


def observation(used: IntArray, waiting: IntArray, demand: IntArray, work: FloatArray) -> Observation:
    """Return what a rule may look at; used [B, G, R], waiting [B, G, Q], demand [B, G, Q, R], work [B, G, Q]."""
    episodes, groups, _ = used.shape
    queue, group = np.zeros(waiting.shape), np.zeros((episodes, groups), dtype=np.int64)
    return Observation(
        now=np.zeros(episodes),
        waiting=waiting,
        waiting_demand=demand,
        waiting_work=work,
        waited=queue,
        head_waited=queue,
        head_demand=np.zeros_like(demand),
        head_estimate=queue,
        running=group,
        used=used,
        left=group.astype(float),
        releasing=np.zeros_like(used),
        recent_jobs=queue,
        recent_work=queue,
        share=np.zeros_like(used),
        order=group,
    )


def wanting(used: Amounts, wanted: Amounts) -> Observation:
    """Return an observation of one episode in which each group wants units [G, R] for one job of its first queue."""
    demand = np.stack([np.array(wanted), np.zeros_like(np.array(wanted))], axis=1)[None]
    return observation(np.array(used)[None], np.array([[[1, 0]] * len(wanted)]), demand, np.ones((1, len(wanted), 2)))


def units(controller: Controller, view: Observation) -> list[list[int]]:
    return [list(group) for group in controller(view, np.zeros(1)).share[0].tolist()]


@st.composite
def situations(draw: st.DrawFn) -> tuple[SharedCluster, Observation]:
    groups, resources, episodes = draw(st.integers(2, 6)), draw(st.integers(1, 3)), draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    amounts = rng.integers(groups, 60, resources)
    used = rng.multinomial(1, np.ones(groups) / groups, (episodes, resources)).transpose(0, 2, 1)
    waiting = rng.integers(0, 4, (episodes, groups, 2))
    demand = rng.integers(0, 12, (*waiting.shape, resources)) * waiting[..., None]
    return cluster(*amounts, groups=groups), observation(used, waiting, demand, waiting * rng.random(waiting.shape))


@pytest.mark.parametrize("name", MAKERS)
@given(situations())
def test_every_rule_hands_out_the_whole_cluster_and_sets_its_order(
    name: str, situation: tuple[SharedCluster, Observation]
) -> None:
    shared, view = situation
    share, order = MAKERS[name](shared, 1)(view, np.zeros(len(view.now)))
    assert share.shape == view.used.shape
    assert share.min() >= 0
    assert (share.sum(axis=1) == shared.capacity).all()
    assert order.shape == view.order.shape
    assert (order == 1).all()


@pytest.mark.parametrize("name", MAKERS)
@given(situations())
def test_a_rule_treats_each_episode_as_if_it_were_alone(
    name: str, situation: tuple[SharedCluster, Observation]
) -> None:
    shared, view = situation
    control = MAKERS[name](shared, 0)
    last = Observation._make(field[-1:] for field in view)
    np.testing.assert_array_equal(control(last, np.zeros(1)).share[0], control(view, np.zeros(len(view.now))).share[-1])


@pytest.mark.parametrize("name", ["equal", "proportional", "drf", "shortest_first"])
def test_a_cluster_that_nobody_wants_is_shared_equally(name: str) -> None:
    shared = cluster(10, 7, groups=4)
    nobody = wanting([[0, 0]] * 4, [[0, 0]] * 4)
    assert units(HEURISTICS[name](shared, 0), nobody) == equal_shares(shared).tolist()


def test_equal_is_equal_whatever_is_wanted() -> None:
    view = wanting([[9], [0], [0], [0]], [[5], [0], [9], [0]])
    assert units(equal(cluster(10, groups=4), 0), view) == [[3], [3], [2], [2]]


def test_fixed_shares_go_by_weight() -> None:
    nobody = wanting([[0, 0]] * 3, [[0, 0]] * 3)
    assert units(fixed(cluster(12, 6, groups=3), 0, [3, 0, 1]), nobody) == [[9, 5], [0, 0], [3, 1]]  # 4.5 and 1.5: tie


def test_proportional_shares_go_by_what_is_held_and_wanted() -> None:
    # CPU: 1 + 2 and 3 + 6 of 12, so 20 units are 5 and 15; nobody wants memory.
    view = wanting([[1, 0], [3, 0]], [[2, 0], [6, 0]])
    assert units(proportional(cluster(20, 8, groups=2), 0), view) == [[5, 4], [15, 4]]


def test_odd_units_go_to_the_largest_remainders_and_then_to_the_lowest_groups() -> None:
    # 10 units by 1 : 1 : 4 are 1.67, 1.67 and 6.67: all remainders alike, and two units are left after 1, 1, 6.
    assert whole(np.array([[[1.0], [1.0], [4.0]]]), np.array([10]))[0, :, 0].tolist() == [2, 2, 6]
    # 10 units by 1 : 2 : 4 are 1.43, 2.86 and 5.71.
    assert whole(np.array([[[1.0], [2.0], [4.0]]]), np.array([10]))[0, :, 0].tolist() == [1, 3, 6]
    assert whole(np.full((1, 3, 1), 0.1), np.array([1_000_000]))[0, :, 0].tolist() == [333_334, 333_333, 333_333]


def test_drf_gives_what_the_paper_does() -> None:
    # 9 CPU and 18 GB; tasks of <1 CPU, 4 GB> and <3 CPU, 1 GB>: 3 and 2 of them, both dominant shares 2/3. Nobody
    # wants the 4 GB that are left, as there is no CPU: 2 for each group.
    assert units(drf(cluster(9, 18, groups=2), 0), wanting([[0, 0]] * 2, [[100, 400], [300, 100]])) == [[3, 14], [6, 4]]


def test_drf_leaves_those_behind_who_want_little() -> None:
    # 4 of 30 is met at once; the others share the 26 that are left.
    assert units(drf(cluster(30, groups=3), 0), wanting([[2], [0], [20]], [[2], [90], [0]])) == [[4], [13], [13]]


def test_weighted_drf_lets_dominant_shares_rise_by_weight() -> None:
    assert units(drf(cluster(12, groups=2), 0, [1, 3]), wanting([[0], [0]], [[50], [50]])) == [[3], [9]]


def test_what_weighted_drf_has_left_over_is_handed_out_equally() -> None:
    assert units(drf(cluster(12, groups=2), 0, [1, 3]), wanting([[0], [0]], [[1], [3]])) == [[5], [7]]


@given(situations())
def test_whom_filling_leaves_unsatisfied_nobody_beats_at_a_used_up_resource(
    situation: tuple[SharedCluster, Observation],
) -> None:
    shared, view = situation
    wanted = (view.used + view.waiting_demand.sum(axis=2)) / shared.capacity
    given_to = progressive_filling(wanted, np.ones(shared.groups))
    dominant = given_to.max(axis=2)
    used_up = given_to.sum(axis=1) > 1 - 1e-9
    assert (given_to.sum(axis=1) < 1 + 1e-9).all()
    for b, g in zip(*np.nonzero((given_to < wanted - 1e-9).any(axis=2)), strict=True):
        rivals = [dominant[b, given_to[b, :, r] > 0].max() for r in np.flatnonzero(used_up[b] & (wanted[b, g] > 0))]
        assert min(rivals) <= dominant[b, g] + 1e-9  # and there is one: no work is left that could run


def test_capacity_lends_what_its_owner_does_not_want() -> None:
    # 40 units, guaranteed 20, 10, 10. The first wants 4; its other 16 go in equal parts, but the second needs only 3
    # of its 8, so that the third has 10 + 13.
    view = wanting([[4], [0], [0]], [[0], [13], [50]])
    assert units(capacity(cluster(40, groups=3), 0, [2, 1, 1]), view) == [[4], [13], [23]]


def test_capacity_shares_what_nobody_wants_by_guarantees() -> None:
    # 4, 5 and 7 are wanted; the 24 that are left go 12 : 6 : 6.
    view = wanting([[4], [0], [0]], [[0], [5], [7]])
    assert units(capacity(cluster(40, groups=3), 0, [2, 1, 1]), view) == [[16], [11], [13]]


def test_shortest_first_serves_the_smallest_jobs_of_all_groups() -> None:
    # Work per job: 9 and 1 in the first group, 2 in the second. 16 units, 2 in use: 5 jobs of 1 unit (5), then one
    # whole job of 5 of the second group's two, and nothing of the job of 9. The 4 units that are left go by what is
    # still wanted, 9 and 5: 2.57 and 1.43.
    view = observation(
        used=np.array([[[2], [0]]]),
        waiting=np.array([[[1, 5], [2, 0]]]),
        demand=np.array([[[[9], [5]], [[10], [0]]]]),
        work=np.array([[[9.0, 5.0], [4.0, 0.0]]]),
    )
    assert units(shortest_first(cluster(16, groups=2), 0), view) == [[10], [6]]


@given(situations())
def test_shortest_first_leaves_groups_what_they_use(situation: tuple[SharedCluster, Observation]) -> None:
    shared, view = situation
    assert (shortest_first(shared, 0)(view, np.zeros(len(view.now))).share >= view.used).all()


@pytest.mark.parametrize(("weights", "zero"), [([0, 0, 0], True), ([1, 2], True), ([1, 0, 1], False)])
def test_weights_that_share_nothing_are_refused(weights: list[int], zero: bool) -> None:
    wanted = "3 numbers at least 0, and one above" if zero else "3 numbers above 0"
    with pytest.raises(ValueError, match=wanted):
        (fixed if zero else capacity)(cluster(9, groups=3), 0, weights)


def test_an_order_that_there_is_not_is_refused() -> None:
    with pytest.raises(ValueError, match="order 2 of the queues; expected 0 to 1"):
        equal(cluster(9, groups=3), 2)


def nothing_happens(episodes: int, groups: int) -> Observation:
    none = np.zeros((episodes, groups, 2), dtype=np.int64)
    return observation(none[:, :, :1], none, none[..., None], none.astype(float))


def drawn(episodes: int) -> FloatArray:
    return uniform(keys(1, np.arange(episodes), np.arange(episodes)), np.arange(episodes))


def test_random_settings_are_configurations_that_fit_and_are_all_met() -> None:
    shared = cluster(12, groups=3)
    share, order = random_setting(shared, LEVELS)(nothing_happens(2000, 3), drawn(2000))
    assert set(share.ravel()) == {0, 2, 4, 8}
    assert (share.sum(axis=1) <= 12).all()
    assert abs(order.mean() - 0.5) < 0.03
    assert np.ptp(share.mean(axis=(0, 2))) < 0.3  # no group has the better of the others


def test_random_settings_that_fit_are_equally_likely() -> None:
    share = random_setting(cluster(99, groups=3), LEVELS)(nothing_happens(2000, 3), drawn(2000)).share
    shares = [(share == level).mean() for level in (0, 2, 4, 8)]
    np.testing.assert_allclose(shares, 0.25, atol=0.03)


def test_a_random_setting_goes_down_no_further_than_it_must() -> None:
    by_one = Configurations(np.arange(6)[:, None], orders=1)
    total, full = (
        random_setting(cluster(units, groups=3), by_one)(nothing_happens(500, 3), drawn(500)).share.sum(axis=1)
        for units in (7, 99)
    )
    np.testing.assert_array_equal(total, np.minimum(full, 7))


def test_random_settings_depend_on_their_draw_alone() -> None:
    control, draws = random_setting(cluster(12, groups=3), LEVELS), drawn(50)
    together = control(nothing_happens(50, 3), draws)
    alone = control(nothing_happens(1, 3), draws[7:8])
    np.testing.assert_array_equal(together.share[7], alone.share[0])
    np.testing.assert_array_equal(together.order[7], alone.order[0])


def test_noise_by_no_chance_leaves_the_setting_alone() -> None:
    control = noisy(cluster(13, groups=3), equal(cluster(13, groups=3), 1), LEVELS, chance=0.0)
    share, order = control(nothing_happens(5, 3), drawn(5))
    assert (share == [[5], [4], [4]]).all()
    assert (order == 1).all()


def test_noise_disturbs_as_many_groups_as_it_should_and_fits() -> None:
    # 1 unit is on no level, and 99 are never too few: whoever still has 1 was left alone.
    def ones(view: Observation, _: FloatArray) -> Setting:
        return Setting(np.ones_like(view.used), view.order)

    share = noisy(cluster(99, groups=3), ones, LEVELS, chance=0.2)(nothing_happens(2000, 3), drawn(2000)).share
    assert abs((share != 1).mean() - 0.2) < 0.02
    tight = noisy(cluster(12, groups=3), equal(cluster(12, groups=3), 0), LEVELS, chance=0.2)
    assert (tight(nothing_happens(2000, 3), drawn(2000)).share.sum(axis=1) <= 12).all()


def test_a_share_between_levels_goes_down_to_the_next_one() -> None:
    def five_each(view: Observation, _: FloatArray) -> Setting:
        return Setting(np.full_like(view.used, 5), view.order)

    share = noisy(cluster(14, groups=3), five_each, LEVELS, chance=0.0)(nothing_happens(50, 3), drawn(50)).share
    assert {tuple(sorted(row)) for row in share[:, :, 0].tolist()} == {(4, 5, 5)}


def test_every_step_down_draws_its_group_anew() -> None:
    # Three groups of 5 units must come down to 9: 6 steps, of which each group takes 2 in 90 of the 3^6 = 729 ways.
    def five_each(view: Observation, _: FloatArray) -> Setting:
        return Setting(np.full_like(view.used, 5), view.order)

    by_one = Configurations(np.arange(6)[:, None], orders=1)
    control = noisy(cluster(9, groups=3), five_each, by_one, chance=0.0)
    share = control(nothing_happens(4000, 3), drawn(4000)).share
    assert abs((share == 3).all(axis=(1, 2)).mean() - 90 / 729) < 0.02
