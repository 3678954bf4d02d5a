"""Compiled roll-outs of `sets`: what is kept is what was played, however it is cut into pieces."""

import numba
import numpy as np
import pytest
from builders import ONLY, random_jobset
from set_learning import sets

from pipeline.core import CompiledRule, keys, legal_actions, uniform
from pipeline.learning.sampling import best, sample
from pipeline.problems.pool.networks.relative import Relative
from pipeline.problems.pool.nouns import Cluster, JobSet, Schedule, batch
from pipeline.problems.pool.simulator.compiled.batch import Batched
from pipeline.problems.pool.simulator.compiled.rules import players
from pipeline.problems.pool.training import rolling
from pipeline.problems.pool.training.rolling import Roller, Rollout
from tests.oracles.pool import Timestep

NARROW = Cluster((5, 4), 6, 4, 4, False)
NUMBER = np.arange(4)
KEY = keys(9, NUMBER, np.zeros_like(NUMBER))


def jobsets(estimates: bool = False) -> list[JobSet]:
    """Four jobsets; the first one asks for more decisions than one call of a kernel keeps."""
    found = []
    for k, count in enumerate((90, 20, 25, 30)):
        rng = np.random.default_rng(k)
        jobs = random_jobset(rng, NARROW, count, count)
        if estimates:
            estimate = rng.integers(1, 7, count)
            jobs = jobs._replace(duration=rng.integers(1, 9, count), estimate=estimate)
        found.append(jobs)
    return found


def begun(estimates: bool = False) -> Batched:
    return Batched(batch(jobsets(estimates)), NARROW, 600, "slowdown", skip_forced=True)


def roller(simulator: Batched, greedy: bool = False) -> Roller:
    return Roller(simulator, sets(seed=4).compiled(), KEY, greedy)


def in_order(played: Rollout) -> Rollout:
    """The same decisions, episode by episode, each in the order of its turns."""
    rows = np.lexsort((played.turn, played.episode))
    return Rollout(played.observed.take(rows), *(column[rows] for column in played[1:]))


def equal(one: Rollout, other: Rollout) -> None:
    for mine, its in zip((*one.observed, *one[1:]), (*other.observed, *other[1:]), strict=True):
        np.testing.assert_array_equal(mine, its)


def joined(one: Rollout, other: Rollout) -> Rollout:
    observed = Relative._make(np.concatenate(pair) for pair in zip(one.observed, other.observed, strict=True))
    return in_order(Rollout(observed, *(np.concatenate(pair) for pair in zip(one[1:], other[1:], strict=True))))


def same(one: Schedule, other: Schedule) -> bool:
    return all(np.array_equal(mine, its) for mine, its in zip(one, other, strict=True))


@pytest.mark.parametrize("estimates", [False, True])
def test_kept_decisions_make_the_same_schedule_in_the_plain_simulator(estimates: bool) -> None:
    simulator = begun(estimates)
    played = in_order(roller(simulator).keep())
    assert not len(simulator.rows)
    found, first = simulator.schedule(), simulator.jobs.first
    for episode, jobs in enumerate(jobsets(estimates)):
        plain, mine = Timestep(jobs, NARROW, 600), played.episode == episode
        for action, now in zip(played.action[mine], played.now[mine], strict=True):
            while (may := legal_actions(plain.observe(ONLY))).sum() == 1:
                plain.step(ONLY, may.argmax(axis=1))
            assert plain.now == now
            plain.step(ONLY, np.array([action]))
        while len(plain.rows):
            plain.step(ONLY, legal_actions(plain.observe(ONLY)).argmax(axis=1))
        assert np.array_equal(found.start[first[episode] : first[episode + 1]], plain.schedule().start)
        assert simulator.rewards[episode, : plain.now] == pytest.approx(np.array(plain.rewards))


@pytest.mark.parametrize("greedy", [False, True])
def test_turns_count_every_decision_of_an_episode(greedy: bool) -> None:
    played = in_order(roller(begun(), greedy).keep())
    counts = np.bincount(played.episode)
    assert counts[0] > rolling.AT_ONCE
    assert played.turn.tolist() == [turn for count in counts for turn in range(count)]
    assert (np.diff(played.now)[np.diff(played.episode) == 0] >= 0).all()


def test_the_turns_of_heuristics_count_on_too() -> None:
    going = roller(begun()).led_by(players([CompiledRule("sjf")] * 4, KEY))
    early, late = going.keep(until=10), going.keep()
    played = joined(early, late)
    assert played.turn.tolist() == [turn for count in np.bincount(played.episode) for turn in range(count)]


@pytest.mark.parametrize("greedy", [False, True])
def test_two_pieces_are_as_one(greedy: bool) -> None:
    whole, pieces, half = begun(), begun(), begun()
    expected = in_order(roller(whole, greedy).keep())
    going = roller(pieces, greedy)
    early = going.keep(until=13)
    assert early.now.max() < 13
    assert (pieces.now >= 13).all()
    late = going.keep()
    assert late.now.min() >= 13
    equal(joined(early, late), expected)
    going = roller(half, greedy)
    equal(in_order(going.keep(until=13)), in_order(early))
    going.play()
    assert same(half.schedule(), whole.schedule())
    assert np.array_equal(half.rewards, whole.rewards)


def test_played_then_kept_is_as_kept_from_the_beginning() -> None:
    whole, half = begun(), begun()
    expected = in_order(roller(whole).keep())
    going = roller(half)
    going.play(until=13)
    late = in_order(going.keep())
    rows = expected.now >= 13
    equal(late, Rollout(expected.observed.take(np.flatnonzero(rows)), *(column[rows] for column in expected[1:])))


def test_how_many_decisions_are_kept_at_once_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = in_order(roller(begun()).keep())
    monkeypatch.setattr(rolling, "AT_ONCE", 3)
    equal(in_order(roller(begun()).keep()), expected)


def test_actions_are_those_of_the_network_on_what_was_seen() -> None:
    forward = sets(seed=4).frozen()
    played = roller(begun()).keep()
    draws = uniform(KEY[played.episode], played.turn)
    assert np.array_equal(sample(forward(played.observed), played.observed.may, True, draws), played.action)
    played = roller(begun(), greedy=True).keep()
    assert np.array_equal(best(forward(played.observed), played.observed.may, True), played.action)


def test_heuristics_play_as_they_do_by_themselves() -> None:
    led, alone = begun(), begun()
    rules = [CompiledRule("sjf"), CompiledRule("random"), CompiledRule("hold", 4.0), CompiledRule("packer")]
    played = roller(led).led_by(players(rules, KEY)).keep()
    alone.play(alone.rows, players(rules, KEY), 10_000)
    assert same(led.schedule(), alone.schedule())
    assert len(played.action) == len(played.now) == len(played.observed.may)


@pytest.mark.usefixtures("two_threads")
def test_threads_change_nothing() -> None:
    two = in_order(roller(begun()).keep())
    numba.set_num_threads(1)
    equal(in_order(roller(begun()).keep()), two)


def test_nothing_to_decide_is_kept_as_nothing() -> None:
    simulator = begun()
    going = roller(simulator)
    going.play()
    assert len(going.keep().action) == 0
