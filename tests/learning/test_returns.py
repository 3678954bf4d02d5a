"""Returns and baselines, worked by hand."""

import numpy as np
import pytest

from pipeline.learning.returns import decision_baseline, discounted, leave_one_out


def test_a_return_is_the_sum_of_rewards_to_come() -> None:
    assert discounted(np.array([-1.0, -2.0, -3.0]), gamma=1.0).tolist() == [-6.0, -5.0, -3.0]


def test_a_reward_k_steps_ahead_counts_gamma_to_the_k() -> None:
    assert discounted(np.array([0.0, 0.0, 8.0]), gamma=0.5).tolist() == [2.0, 4.0, 8.0]


def test_each_episode_has_returns_of_its_own() -> None:
    rewards = np.array([[1.0, 1.0, 1.0], [4.0, 0.0, 2.0]])
    assert discounted(rewards, gamma=0.5).tolist() == [[1.75, 1.5, 1.0], [4.5, 1.0, 2.0]]


@pytest.mark.parametrize("rewards", [[7.0], []])
def test_one_step_or_none_is_its_own_return(rewards: list[float]) -> None:
    assert discounted(np.array(rewards), gamma=0.9).tolist() == rewards


def test_whole_rewards_are_not_cut_and_stay_as_they_were() -> None:
    rewards = np.array([1, 1])
    assert discounted(rewards, gamma=0.5).tolist() == [1.5, 1.0]
    assert rewards.tolist() == [1, 1]


def test_leave_one_out_takes_the_mean_of_the_others_at_the_same_time() -> None:
    returns = np.array([[-6.0, -3.0], [-4.0, -1.0], [-2.0, 0.0]])
    # step 0: -6 - (-3), -4 - (-4), -2 - (-5); step 1: -3 - (-0.5), -1 - (-1.5), 0 - (-2)
    assert leave_one_out(returns, episodes=3).tolist() == [[-3.0, -2.5], [0.0, 0.5], [3.0, 2.0]]


def test_leave_one_out_compares_episodes_of_one_jobset_only() -> None:
    returns = np.array([[1.0], [3.0], [100.0], [300.0]])
    assert leave_one_out(returns, episodes=2).ravel().tolist() == [-2.0, 2.0, -200.0, 200.0]


def test_an_episode_that_is_over_has_nothing_more_to_come() -> None:
    assert leave_one_out(np.array([[-5.0, -2.0], [-1.0, 0.0]]), episodes=2)[:, 1].tolist() == [-2.0, 2.0]


def test_the_decision_baseline_is_a_mean_over_the_episodes_that_got_so_far() -> None:
    # Two episodes of jobset 0, of three and of two decisions.
    returns = np.array([-9.0, -5.0, -6.0, -3.0, -1.0])
    turn = np.array([0, 0, 1, 1, 2])
    baseline = decision_baseline(returns, np.zeros(5, dtype=np.int64), turn)
    assert baseline.tolist() == [-7.0, -7.0, -4.5, -4.5, -1.0]


def test_the_decision_baseline_keeps_jobsets_apart() -> None:
    returns = np.array([1.0, 3.0, 10.0, 30.0])
    jobset, turn = np.array([0, 0, 2, 2]), np.array([0, 0, 0, 1])
    assert decision_baseline(returns, jobset, turn).tolist() == [2.0, 2.0, 10.0, 30.0]
