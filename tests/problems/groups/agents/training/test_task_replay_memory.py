"""Replay memory: a ring whose decisions know what came after them, and how play is written into it."""

from collections.abc import Sequence

import numpy as np
import pytest
from group_builders import CLUSTER, CONFIGURATIONS, RECIPE, REPLAY, drawn_jobs, tiny_task
from numpy.testing import assert_array_equal

from pipeline.core.types import FloatArray, IntArray
from pipeline.problems.groups.agents.networks.features import Shape, States, states
from pipeline.problems.groups.agents.training.replay import behaviours, filled, mixed, random_setting
from pipeline.problems.groups.agents.training.task import Recorder, ReplayMemory, Transitions
from pipeline.problems.groups.env.nouns import Observation, Setting, batch
from pipeline.problems.groups.env.simulator.rewards import transitions
from pipeline.problems.groups.env.teachers import TEACHERS, equal

SHAPE = Shape(queues=2, orders=2, resources=1)
OVER, GOES_ON = True, False


def memory(size: int) -> ReplayMemory:
    return ReplayMemory(size, groups=2, shape=SHAPE)


def numbered(*numbers: int) -> States:
    """States that are told apart by a number, which fills them."""
    first = np.array(numbers, dtype=np.float32)[:, None, None]
    return States(first * np.ones((2, SHAPE.features)), -first * np.ones((2, SHAPE.amounts)))


def keep(held: ReplayMemory, *numbers: int, over: Sequence[bool] | bool = GOES_ON) -> IntArray:
    """Keep decisions in numbered states; their shares, orders and rewards tell the number, too."""
    each = np.array(numbers)[:, None] + np.zeros((1, 2), dtype=int)
    place = held.add(numbered(*numbers), each[:, :, None], each % 2)
    held.reward(place, each / 10, np.broadcast_to(over, len(numbers)))
    return place


def numbers(found: Transitions) -> list[int]:
    """The numbers of some decisions, all of whose columns agree."""
    number = found.state.features[:, 0, 0]
    for column in (found.state.features, -found.state.amounts, found.share, 10 * found.reward):
        np.testing.assert_allclose(column, number.reshape(-1, *[1] * (column.ndim - 1)) * np.ones_like(column))
    assert_array_equal(found.order, number[:, None].astype(int) % 2 * np.ones((1, 2)))
    known: list[int] = number.astype(int).tolist()
    return known


def test_decisions_are_kept_with_all_that_came_of_them() -> None:
    held = memory(6)
    first = keep(held, 1, 2)
    then = keep(held, 3, 4, over=OVER)
    held.follow(first, then)
    found = held.all()
    assert numbers(found) == [1, 2, 3, 4]
    assert found.over.tolist() == [False, False, True, True]
    assert found.then.features[:2, 0, 0].tolist() == [3, 4]
    assert found.then.amounts[:2, 1, 0].tolist() == [-3, -4]


def test_a_full_memory_forgets_the_oldest_first() -> None:
    held = memory(4)
    for number in range(1, 7):
        keep(held, number, over=OVER)
    assert sorted(numbers(held.all())) == [3, 4, 5, 6]
    assert keep(held, 7, 8, over=OVER).tolist() == [2, 3]
    assert sorted(numbers(held.all())) == [5, 6, 7, 8]


def test_a_ring_goes_round_in_the_middle_of_what_is_kept_at_once() -> None:
    held = memory(5)
    keep(held, 1, 2, over=OVER)
    keep(held, 3, 4, over=OVER)
    assert keep(held, 5, 6, over=OVER).tolist() == [4, 0]
    assert sorted(numbers(held.all())) == [2, 3, 4, 5, 6]


def test_what_a_decision_leads_to_is_never_another_episodes_state() -> None:
    held, lengths = memory(7), np.array([9, 4, 6])
    last = np.full(3, -1)
    for turn in range(9):
        rows = np.flatnonzero(lengths > turn)
        place = keep(held, *(100 * rows + turn), over=lengths[rows] == turn + 1)
        held.follow(last[rows][last[rows] >= 0], place[last[rows] >= 0])
        last[rows] = place
        found = held.all()
        number, ends = np.array(numbers(found)), {8, 103, 205}
        assert_array_equal(found.over, np.isin(number, list(ends)))
        assert_array_equal(found.then.features[~found.over, 0, 0], number[~found.over] + 1)
    assert sorted(number) == [4, 5, 6, 7, 8, 204, 205]  # the latest seven


def test_a_decision_whose_next_state_is_not_known_is_not_drawn() -> None:
    held = memory(10)
    first = keep(held, 1, 2)
    assert len(held) == 0
    later = keep(held, 3, 4)
    held.follow(first, later)
    assert len(held) == 2
    assert set(numbers(held.sample(np.random.default_rng(0), 50))) == {1, 2}
    assert numbers(held.all()) == [1, 2]


def test_a_decision_of_which_nothing_came_yet_is_not_drawn() -> None:
    held = memory(4)
    for number in (1, 2, 3, 4):
        keep(held, number, over=OVER)
    held.add(numbered(5), np.zeros((1, 2, 1)), np.zeros((1, 2)))  # in the place of the first
    assert numbers(held.all()) == [2, 3, 4]


def test_all_that_can_be_learned_from_is_drawn_equally_often() -> None:
    held = memory(8)
    for number in range(5):
        keep(held, number, over=OVER)
    drawn = np.array(numbers(held.sample(np.random.default_rng(1), 5000)))
    assert np.abs(np.bincount(drawn) - [1000] * 5).max() < 120  # 4 sigma


def test_a_state_that_is_taken_over_gives_the_same_samples() -> None:
    held, other = memory(5), memory(5)
    keep(held, 9, 8, over=OVER)
    held.follow(keep(held, 1, 2), keep(held, 3, 4, over=OVER))
    other.load_state_dict({name: value.clone() for name, value in held.state_dict().items()})
    for one in (held, other):
        keep(one, 5, over=OVER)  # goes where the oldest is
    found, again = (one.sample(np.random.default_rng(2), 30) for one in (held, other))
    assert numbers(found) == numbers(again)
    assert_array_equal(found.then.features, again.then.features)
    assert_array_equal(found.over, again.over)
    assert set(numbers(found)) == {1, 2, 3, 4, 5}


@pytest.mark.parametrize("count", [3, 6])
def test_more_at_once_than_can_keep_their_next_states_are_refused(count: int) -> None:
    held = memory(5)
    with pytest.raises(ValueError, match=f"^{count} decisions at once; a memory of 5 cannot keep their next states$"):
        keep(held, *range(count))
    keep(held, 1, 2)


def equally(rows: IntArray, view: Observation) -> Setting:
    return equal(CLUSTER, 0)(view, np.zeros(len(rows)))


def known_by(told: FloatArray) -> list[bytes]:
    return [state.tobytes() for state in told]


@pytest.mark.parametrize("size", [8, 11, 200])
def test_every_interval_of_play_is_recorded_with_the_one_that_followed(size: int) -> None:
    task, held, noted = tiny_task(), memory(size), 0
    recorder, expected, last = Recorder(held, CLUSTER, 4), set(), [b""] * 4
    jobsets = [drawn_jobs(100, 7, count=3), *task.train[100][:2], drawn_jobs(100, 8, count=6)]  # some end earlier
    for transition in transitions(task.begin(jobsets), equally, "zero"):
        recorder.note(transition)
        noted += len(transition.rows)
        assert len(held) == min(noted, size) - (~transition.over).sum()  # what comes after these is not known yet
        told = known_by(states(transition.view, CLUSTER).features)
        for state, row, over in zip(told, transition.rows, transition.over, strict=True):
            expected |= {(last[row], state)} | ({(state, b"over")} if over else set())
            last[row] = state
    found = held.all()
    after = known_by(found.then.features)
    then = [b"over" if over else state for over, state in zip(found.over, after, strict=True)]
    assert len(found.over) == min(noted, size)
    assert set(zip(known_by(found.state.features), then, strict=True)) <= expected


def test_the_generator_fills_a_memory_with_all_of_its_replays() -> None:
    task = tiny_task()
    found, groups = filled(task, REPLAY).all(), task.begin(task.train[100])
    for transition in transitions(groups, mixed(task, REPLAY), "zero"):
        assert_array_equal(transition.reward, -transition.cost)
    served, jobs = groups.served(), batch(task.train[100])
    assert found.over.sum() == 4
    assert len(found.over) == groups.interval.sum()
    waited = np.fmin(served.start, groups.now[jobs.episode]) - jobs.arrival  # until the cut, if it never started
    assert -found.reward.sum() == pytest.approx(waited.sum(), rel=1e-5)


def test_replays_are_controlled_at_random_or_by_each_rule_in_turn() -> None:
    task = tiny_task()
    config = REPLAY.model_copy(update={"jobsets": 20, "random": 0.25, "noise": 0.0})
    rules = [make(CLUSTER, order) for order in (0, 1) for make in TEACHERS.values()]
    groups = task.begin(task.train[100] * 5)
    rows = groups.rows
    groups.step(rows, equal(CLUSTER, 0)(groups.observe(rows), np.zeros(20)))
    view = groups.observe(rows)
    setting = mixed(task, config)(rows, view)
    for row in range(5, 20):  # 5 of 20 are controlled at random
        expected = rules[row % 8](view, np.zeros(20))
        assert setting.share[row].tolist() == expected.share[row].tolist()
        assert setting.order[row].tolist() == expected.order[row].tolist()
    few = np.array([3, 7, 19])  # of an episode that is over, nothing is asked
    some = mixed(task, config)(few, groups.observe(few))
    assert_array_equal(some.share, setting.share[few])
    assert_array_equal(some.order, setting.order[few])
    levels = {0, 2, 4}
    assert all(set(setting.share[row, :, 0].tolist()) <= levels for row in range(5))
    assert len(behaviours(task, 0.0)) == 1 + len(rules)


def test_draws_of_random_replays_differ_from_interval_to_interval() -> None:
    task = tiny_task()
    config = REPLAY.model_copy(update={"random": 1.0})
    acts, groups = mixed(task, config), task.begin(task.train[100])
    view = groups.observe(groups.rows)
    drawn = [acts(groups.rows, view) for _ in range(8)]
    assert len({one.share[0].tobytes() + one.order[0].tobytes() for one in drawn}) > 2
    again = mixed(task, config)(groups.rows, view)
    assert_array_equal(again.share, drawn[0].share)
    other = mixed(task._replace(seed=4), config)
    assert any((other(groups.rows, view).share != one.share).any() for one in drawn)
    assert random_setting(CLUSTER, CONFIGURATIONS)(view, np.zeros(4)).share.sum(axis=1).max() <= 4


def test_rewards_are_against_what_the_recipe_says() -> None:
    for against in ("zero", "nothing", "present"):
        task = tiny_task(RECIPE.model_copy(update={"against": against}))
        expected = [one.reward for one in transitions(task.begin(task.train[100]), mixed(task, REPLAY), against)]
        total = sum(one.sum() for one in expected)
        assert filled(task, REPLAY).all().reward.sum() == pytest.approx(total, rel=1e-4, abs=1e-3)
