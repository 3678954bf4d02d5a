"""Controllers that try configurations first: what they choose in states made by hand, and what they know."""

import numpy as np
import pytest
from group_builders import CLUSTER, CONFIGURATIONS, Job, drawn_jobs, jobset, observed
from numpy.testing import assert_allclose, assert_array_equal

from pipeline.problems.groups.env.evaluation.controllers import foresight, saved
from pipeline.problems.groups.env.nouns import Setting, batch
from pipeline.problems.groups.env.simulator.batch import GroupsSimulator
from pipeline.problems.groups.env.teachers import equal

KNOWS = {"lookahead": True, "oracle": False}


def begin(*rows: Job) -> GroupsSimulator:
    """Begin an episode of 4 units, two groups of two queues, an interval of 10."""
    return GroupsSimulator(batch([jobset(*rows)]), CLUSTER, np.ones(len(rows)))


def chosen(groups: GroupsSimulator, who: str) -> tuple[list[int], list[int]]:
    """Return the shares and orders that are set."""
    rows = groups.rows
    setting = foresight(CLUSTER, CONFIGURATIONS, KNOWS[who])(groups, rows, groups.observe(rows), np.zeros(len(rows)))
    return setting.share[0, :, 0].tolist(), setting.order[0].tolist()


@pytest.mark.parametrize("who", KNOWS)
def test_units_go_where_they_save_most_waiting(who: str) -> None:
    # Two jobs of 2 units in each group. Of group 0 they run for 20: with 0, 2 and 4 units 20, 10 and 0 are waited; of
    # group 1 for 2: 20, 2 and 0. Of 4 units, 2 + 2 cost 12, all for one 20.
    long, short = [Job(0, 20, 2, group=0)] * 2, [Job(0, 2, 2, group=1)] * 2
    assert chosen(begin(*long, *short), who)[0] == [2, 2]


@pytest.mark.parametrize("who", KNOWS)
def test_all_units_go_to_one_group_where_that_costs_least(who: str) -> None:
    # Of group 0, one behind the other, 20 are waited with 0 or 2 units, and 1 with 4; of group 1, 10 with nothing.
    # All for one costs 11, and 2 + 2 costs 20.
    jobs = Job(0, 1, 4, group=0), Job(0, 3, 2, group=0), Job(0, 20, 2, group=1)
    assert chosen(begin(*jobs), who)[0] == [4, 0]


@pytest.mark.parametrize("who", KNOWS)
def test_the_order_of_queues_is_the_one_in_which_least_is_waited(who: str) -> None:
    # All 4 units go to group 0. Its job of 4 units for 20 first: the other waits 10. The other first: 3 are waited.
    jobs = Job(0, 20, 4, group=0), Job(0, 3, 2, group=0, queue=1)
    assert chosen(begin(*jobs), who) == ([4, 0], [1, 0])


# At 0, two jobs of group 0, of 2 units for 5: with 0, 2 and 4 units 20, 5 and 0 are waited. Then come three of group 1,
# of 2 units for 20, at 1: 27, 18 and 9. All for one group costs 27 or 29, 2 + 2 only 23.
ARRIVING = (*[Job(0, 5, 2, group=0)] * 2, *[Job(1, 20, 2, group=1)] * 3)


def test_the_oracle_knows_who_will_arrive() -> None:
    assert chosen(begin(*ARRIVING), "oracle")[0] == [2, 2]


def test_looking_ahead_does_not_tell_who_will_arrive() -> None:
    assert chosen(begin(*ARRIVING), "lookahead")[0] == [4, 0]


# All units go to group 0. Told 2 and 4, the first had better go first; in truth they run for 9 and 1.
MISTOLD = Job(0, 9, 4, group=0, estimate=2), Job(0, 1, 4, group=0, queue=1, estimate=4)


def test_looking_ahead_goes_by_estimates_of_run_times() -> None:
    assert chosen(begin(*MISTOLD), "lookahead") == ([4, 0], [0, 0])


def test_the_oracle_knows_run_times() -> None:
    assert chosen(begin(*MISTOLD), "oracle") == ([4, 0], [1, 0])


def test_what_no_level_uses_up_is_handed_out_as_the_learned_controller_does() -> None:
    # Nobody waits yet: nothing is worth more than nothing, and no work arrived lately.
    assert chosen(begin(Job(25, 5, 2, group=1)), "lookahead")[0] == [2, 2]


@pytest.mark.parametrize("who", KNOWS)
def test_no_other_two_configurations_cost_less_over_the_interval(who: str) -> None:
    # Without borrowing groups that fit do not meet, so that what is saved by each is saved by both.
    episodes = [drawn_jobs(400, k) for k in range(6)]
    groups = GroupsSimulator(batch(episodes), CLUSTER, np.ones(6 * 16))
    act = foresight(CLUSTER, CONFIGURATIONS, KNOWS[who])
    for _ in range(4):
        rows = groups.rows
        setting = act(groups, rows, groups.observe(rows), np.zeros(len(rows)))
        found = groups.what_if(rows, setting, isolated=True, by_estimate=KNOWS[who]).sum(axis=1)
        assert_array_equal(setting.share.sum(axis=1), 4)
        for level in ((0, 2), (1, 1), (2, 0)):
            for order in ((0, 0), (0, 1), (1, 0), (1, 1)):
                share = np.broadcast_to(CONFIGURATIONS.units[list(level)], (len(rows), 2, 1))
                other = Setting(share, np.broadcast_to(order, (len(rows), 2)))
                others = groups.what_if(rows, other, isolated=True, by_estimate=KNOWS[who])
                assert (found <= others.sum(axis=1) + 1e-9).all()
        groups.step(rows, equal(CLUSTER, 0)(groups.observe(rows), np.zeros(len(rows))))


@pytest.mark.parametrize("who", KNOWS)
def test_trying_changes_nothing(who: str) -> None:
    groups = begin(MISTOLD[0], *ARRIVING)
    before = groups.observe(groups.rows)
    chosen(groups, who)
    for field, same in zip(groups.observe(groups.rows), before, strict=True):
        assert_allclose(field, same)


# Jobs that are expected


@pytest.mark.parametrize(("expected", "shares"), [(1.0, [4, 0]), (2.0, [2, 2])])
def test_units_are_kept_for_expected_jobs_once_these_would_wait_longer(expected: float, shares: list[int]) -> None:
    # Two jobs of group 0, of 2 units for 5: with 2 units 5 are waited, with 4 none. Of group 1, each expected job saves
    # 10 / 2 * (1 - exp(-2)) = 4.3 with an equal share, so that two are worth more than 5 and one is not.
    groups = begin(*[Job(0, 5, 2, group=0)] * 2)
    view = groups.observe(groups.rows)._replace(recent_jobs=np.array([[[0.0, 0.0], [expected, 0.0]]]))
    act = foresight(CLUSTER, CONFIGURATIONS, by_estimate=True, order=1)
    setting = act(groups, groups.rows, view, np.zeros(1))
    assert (setting.share[0, :, 0].tolist(), setting.order[0].tolist()) == (shares, [1, 1])


def test_what_is_kept_is_what_nobody_uses_or_waits_for_with_what_is_given_back() -> None:
    view = observed(
        CLUSTER,
        used=[[2], [0]],
        releasing=[[1], [0]],
        waiting_demand=[[[0], [0]], [[1], [0]]],
        recent_jobs=[[1.0, 0.0], [2.0, 2.0]],
    )
    left = np.array([[0, 0.5, 1.5], [0, 0.5, 1.5]])  # equal shares, of 0, 1 and 2 at the levels
    assert_allclose(saved(view, CLUSTER, CONFIGURATIONS), 0.5 * np.array([[[1.0], [4.0]]]) * (1 - np.exp(-left / 0.5)))
