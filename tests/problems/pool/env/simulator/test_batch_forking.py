"""Copies of episodes go on exactly as the originals would, and by themselves."""

import numpy as np
import pytest
from builders import cluster, jobset, random_jobset

from pipeline.core.types import CompiledRule, IntArray, keys
from pipeline.problems.pool.env.nouns import Cluster, JobSet, batch
from pipeline.problems.pool.env.simulator.batch import Batched
from pipeline.problems.pool.env.simulator.rules import Players, players

NARROW = Cluster((5, 4), 6, 3, 4, False)
AHEAD = NARROW._replace(place_ahead=True)
STREAM = NARROW._replace(measured=(4, 9))
TO_THE_END = 10_000  # decisions


def jobsets(of: Cluster, estimates: bool) -> list[JobSet]:
    """Five jobsets of different lengths; with estimates, jobs run up to twice the horizon."""
    found = []
    for k in range(5):
        rng = np.random.default_rng(k)
        jobs = random_jobset(rng, of, 12 + 3 * k, 15)
        if estimates:
            count = len(jobs.arrival)
            estimate = rng.integers(1, of.horizon + 1, count)
            jobs = jobs._replace(duration=rng.integers(1, 2 * of.horizon, count), estimate=estimate)
        found.append(jobs)
    return found


def by_chance(episodes: IntArray, seed: int = 1) -> Players:
    """Random players; those of the same episode draw the same numbers."""
    return players([CompiledRule("random")] * len(episodes), keys(seed, episodes, np.zeros_like(episodes)))


def begun(of: Cluster, estimates: bool, decisions: int = 9) -> Batched:
    simulator = Batched(batch(jobsets(of, estimates)), of, 300, "slowdown", skip_forced=True)
    simulator.play(simulator.rows, by_chance(np.arange(5)), decisions)
    return simulator


def jobs_of(simulator: Batched, episode: int) -> slice:
    first = simulator.jobs.first
    return slice(int(first[episode]), int(first[episode + 1]))


def same(copies: Batched, k: int, original: Batched, episode: int) -> None:
    """Compare all that has become of an episode."""
    one, other = copies.schedule(), original.schedule()
    mine, its = jobs_of(copies, k), jobs_of(original, episode)
    for name in ("start", "finish", "withheld"):
        assert np.array_equal(getattr(one, name)[mine], getattr(other, name)[its]), name
    for name in ("steps", "withheld_steps", "used"):
        assert getattr(one, name)[k] == getattr(other, name)[episode], name
    assert np.array_equal(copies.rewards[k], original.rewards[episode])
    assert copies.ended(np.array([k]))[0] == original.ended(np.array([episode]))[0]


@pytest.mark.parametrize(("of", "estimates"), [(NARROW, False), (NARROW, True), (AHEAD, False), (STREAM, True)])
def test_copies_go_on_as_the_originals_do(of: Cluster, estimates: bool) -> None:
    original, chosen = begun(of, estimates), np.array([3, 0, 3, 4])
    copies = original.fork(chosen)
    assert copies.jobs.episodes == 4
    for k, episode in enumerate(chosen):
        same(copies, k, original, episode)
    for one, other in zip(copies.observe(np.arange(4)), original.observe(chosen), strict=True):
        np.testing.assert_array_equal(one, other)
    original.play(original.rows, by_chance(np.arange(5), seed=2), TO_THE_END)
    copies.play(copies.rows, by_chance(chosen, seed=2), TO_THE_END)
    assert copies.ended(np.arange(len(copies.now)))[0].all()
    for k, episode in enumerate(chosen):
        same(copies, k, original, episode)
    counts = (copies.jobs.arrival >= 4) & (copies.jobs.arrival < 9) | (of is not STREAM)
    assert (copies.schedule().finish[counts] >= 0).all()


@pytest.mark.parametrize("estimates", [False, True])
def test_a_copy_leaves_its_original_and_its_sisters_alone(estimates: bool) -> None:
    original, untouched = begun(NARROW, estimates), begun(NARROW, estimates)
    copies = original.fork(np.array([2, 2]))
    copies.play(np.array([0]), by_chance(np.array([7, 8])), TO_THE_END)
    for episode in range(5):
        same(original, episode, untouched, episode)
    same(copies, 1, untouched, 2)
    copies.play(np.array([1]), by_chance(np.array([7, 8])), TO_THE_END)
    first, second = (copies.schedule().start[jobs_of(copies, k)] for k in (0, 1))
    assert not np.array_equal(first, second)  # other draws, another schedule


def test_copies_can_be_copied() -> None:
    original = begun(NARROW, estimates=True)
    again = original.fork(np.array([4, 1])).fork(np.array([1, 1, 0]))
    for k, episode in enumerate((1, 1, 4)):
        same(again, k, original, episode)


def test_an_episode_that_is_over_stays_so() -> None:
    original = begun(NARROW, estimates=False, decisions=TO_THE_END)
    copies = original.fork(np.array([1, 2]))
    assert copies.rows.tolist() == []
    same(copies, 1, original, 2)


def test_as_many_episodes_as_jobs_and_resources_are_not_confused() -> None:
    """Fields are told apart by their length; here all lengths are two."""
    one, other = jobset((0, 2, 1, 1)), jobset((1, 3, 2, 1))
    simulator = Batched(batch([one, other]), cluster(2, 3), 20, "slowdown")
    copies = simulator.fork(np.array([1, 0]))
    copies.play(copies.rows, by_chance(np.arange(2)), TO_THE_END)
    assert copies.jobs.arrival.tolist() == [1, 0]
    assert (copies.schedule().finish >= copies.jobs.arrival + copies.jobs.duration).all()
    assert copies.observe(np.arange(2)).capacity[0, 0].tolist() == [2, 3]


def test_an_episode_that_replaces_another_ends_with_its_own_measured_jobs() -> None:
    jobs = jobsets(STREAM, estimates=False)
    replaced, source = (Batched(batch([jobs[k]] * 2), STREAM, 300, "slowdown") for k in (4, 1))
    source.play(source.rows, by_chance(np.arange(2)), 9)
    replaced.overwrite(np.array([1]), source, np.array([0]))
    source.play(source.rows, by_chance(np.arange(2), seed=2), TO_THE_END)
    replaced.play(np.array([1]), by_chance(np.array([1, 0]), seed=2), TO_THE_END)
    for one, other in zip(replaced.played(np.array([1])), source.played(np.array([0])), strict=True):
        np.testing.assert_array_equal(one, other)
    assert replaced.rows.tolist() == [0]
