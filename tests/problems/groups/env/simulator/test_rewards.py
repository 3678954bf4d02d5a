"""What a decision was worth to each group, by hand, against every baseline."""

from collections.abc import Sequence

import numpy as np
import pytest
from group_builders import CLUSTER, CONFIGURATIONS, Job, drawn_jobs, give, jobset
from numpy.testing import assert_allclose, assert_array_equal

from pipeline.problems.groups.agents.training.replay import random_setting
from pipeline.problems.groups.env.nouns import Observation, Setting, SharedCluster, batch
from pipeline.problems.groups.env.simulator.batch import GroupsSimulator
from pipeline.problems.groups.env.simulator.rewards import AGAINST, WAITING, Transition, transitions

# 4 units. Of group 0, two jobs of 2 units wait at 0, of which the first runs until 4; of group 1, one arrives at 2.
JOBS = jobset(Job(0, 4, 2, group=0), Job(0, 20, 2, group=0), Job(2, 3, 2, group=1))


def play(
    against: str, *settings: Sequence[int], objective: str = "delay", cluster: SharedCluster = CLUSTER
) -> list[Transition]:
    """Play one setting of shares an interval, and the last of them on to the end."""
    jobs = batch([JOBS])
    left = list(settings)

    def acts(rows: np.ndarray, view: Observation) -> Setting:
        return give(*(left.pop(0) if len(left) > 1 else left[0]))

    return list(transitions(GroupsSimulator(jobs, cluster, WAITING[objective](jobs)), acts, against))


def rewards(*played: Transition) -> list[list[float]]:
    return [transition.reward[0].tolist() for transition in played]


def test_a_reward_is_the_waiting_saved_against_the_shares_before() -> None:
    # Of equal shares, the second job waits until 4. Given all 4 units instead, it does not wait, and the third job
    # does: from 2 to 10. At 10 that costs another 10 if shares stay; given 2 units, it starts.
    assert rewards(*play("present", [4, 0], [2, 2])) == [[4 - 0, 0 - 8], [0 - 0, 10 - 0]]


def test_a_setting_that_was_there_before_is_worth_nothing() -> None:
    assert rewards(*play("present", [2, 2])) == [[0, 0]]  # at first, the shares are equal
    assert rewards(*play("present", [4, 0], [4, 0], [2, 2]))[1] == [0, 0]


def test_a_reward_is_the_waiting_saved_against_nothing() -> None:
    # With nothing, both jobs of group 0 would wait for 10, and that of group 1 from 2 on.
    assert rewards(*play("nothing", [2, 2])) == [[20 - 4, 8 - 0]]


def test_a_group_that_is_given_nothing_is_worth_nothing() -> None:
    played = play("nothing", [4, 0], [4, 0], [0, 4])
    assert rewards(*played) == [[20, 0], [0, 0], [0, 10]]


@pytest.mark.parametrize("seed", range(5))
def test_a_group_that_is_given_nothing_is_worth_nothing_whatever_happens(seed: int) -> None:
    episodes, rng = [drawn_jobs(300, k) for k in range(4)], np.random.default_rng(seed)
    jobs, control = batch(episodes), random_setting(CLUSTER, CONFIGURATIONS)
    groups, given = GroupsSimulator(jobs, CLUSTER, WAITING["slowdown"](jobs)), []
    for transition in transitions(groups, lambda rows, view: control(view, rng.random(len(rows))), "nothing"):
        without = (transition.setting.share == 0).all(axis=2)
        assert_allclose(transition.reward[without], 0, atol=1e-9)
        given.append(transition.reward[~without])
        assert given[-1].min(initial=0) >= -1e-9  # and nobody is worth less
    assert np.concatenate(given).max() > 0


def test_a_reward_against_zero_is_what_waiting_costs() -> None:
    played = play("zero", [4, 0], [2, 2])
    assert rewards(*played) == [[0, -8], [0, 0]]
    assert [transition.cost[0].tolist() for transition in played] == [[0, 8], [0, 0]]


def test_a_slow_start_costs_a_long_job_less() -> None:
    # Jobs shorter than 10 count as if they ran for 10; waited: 4 of a job that runs for 20, 8 of one that runs for 3.
    assert_allclose(rewards(*play("zero", [2, 2], objective="slowdown")), [[-4 / 20, 0]])
    assert_allclose(rewards(*play("zero", [4, 0], objective="slowdown"))[0], [0, -8 / 10])


def test_against_the_shares_before_what_is_idle_is_lent_both_ways() -> None:
    # With borrowing, the second job starts at once, and the third waits until 4, when the first ends: 2 time units.
    lending = CLUSTER._replace(borrowing=True)
    assert rewards(*play("present", [4, 0], cluster=lending)) == [[0, 0]]
    assert rewards(*play("nothing", [4, 0], cluster=lending)) == [[20, 6]]


@pytest.mark.parametrize("against", AGAINST)
def test_measuring_changes_nothing_of_what_happens(against: str) -> None:
    episodes = [drawn_jobs(100, 0), drawn_jobs(100, 1, count=3), drawn_jobs(100, 2)]
    jobs, control = batch(episodes), random_setting(CLUSTER, CONFIGURATIONS)
    served, cost, over = [], [], np.zeros(3, dtype=int)
    for word in (against, "zero"):
        groups, rng = GroupsSimulator(jobs, CLUSTER, WAITING["delay"](jobs)), np.random.default_rng(5)
        played = list(transitions(groups, lambda rows, view, rng=rng: control(view, rng.random(len(rows))), word))
        served.append(groups.served().start)
        cost.append(np.concatenate([transition.cost for transition in played]))
    assert_array_equal(*served)
    assert_array_equal(*cost)
    for transition in played:
        assert not over[transition.rows].any()
        over[transition.rows] += transition.over
    assert over.tolist() == [1, 1, 1]


def test_an_episode_that_is_cut_is_over_there() -> None:
    played = play("zero", [2, 0], cluster=CLUSTER._replace(time_limit=25.0))
    assert [transition.over.tolist() for transition in played] == [[False], [False], [True]]
    assert [transition.view.now.tolist() for transition in played] == [[0], [10], [20]]
    assert rewards(*played) == [[-4, -8], [0, -10], [0, -10]]
