"""What every action would have brought: the same future for all, by hand where it can be."""

import numpy as np
import pytest
from builders import jobset, random_jobset
from set_learning import sets

from pipeline.core import keys
from pipeline.problems.pool.networks.sets import Sets
from pipeline.problems.pool.nouns import Cluster, JobSet, batch
from pipeline.problems.pool.simulator.compiled.batch import Batched
from pipeline.problems.pool.training.branching import Beyond, Branches, Walk, alike, branches
from pipeline.problems.pool.training.rolling import Roller

THREE = Cluster((3,), 8, 2, 4, False, stall=0)
LONG, SHORT, VOID = 0, 1, 2  # slots of the two jobs: six steps and one; both want all three units
NARROW = Cluster((5, 4), 6, 4, 4, False)


def begun(*jobsets: JobSet, cluster: Cluster = THREE, limit: int = 200) -> Batched:
    return Batched(batch(jobsets), cluster, limit, "slowdown", skip_forced=True)


def tried(
    simulator: Batched,
    network: Sets | None = None,
    draw: float = 0.0,
    unsure: float = 1e-9,
    most: int = 12,
    beyond: Beyond | None = None,
) -> Branches:
    """All that may be tried of the episodes as they stand, unless told otherwise."""
    rows = simulator.rows
    draws = np.full(len(rows), draw)
    return branches(simulator, network or sets(), rows, draws, unsure, most, beyond or Beyond())


def busy(count: int = 6) -> Batched:
    """Episodes of random jobs, some decisions after their beginning."""
    simulator = begun(*(random_jobset(np.random.default_rng(k), NARROW, 40, 60) for k in range(count)), cluster=NARROW)
    number = np.arange(count)
    Walk(simulator, sets(), keys(3, number, number)).go_on(9)
    return simulator


def test_each_action_has_what_it_and_play_behind_it_bring() -> None:
    found = tried(begun(jobset((0, 6, 3), (0, 1, 3))))
    # the short one first: it is there for a step, the long one for seven; the long one first: for six, and seven
    assert found.tried.tolist() == [[True, True, False]]
    assert found.returns == pytest.approx(np.array([[-(1 + 7.0), -(7 / 6 + 1.0), 0.0]]))
    assert found.before.tolist() == [0.0]
    assert found.weight.tolist() == [1.0]


def test_returns_begin_with_the_decision() -> None:
    """A job fills the cluster for two steps before the choice; what it cost is no action's doing."""
    found = tried(begun(jobset((0, 2, 3), (1, 6, 3), (1, 1, 3))))
    assert found.before == pytest.approx([-(0.5 + 0.5 + 1 / 6 + 1.0)])
    first, second = sorted(found.returns[found.tried])
    assert (first, second) == pytest.approx((-8.0, -(1 + 7 / 6)))


def test_all_actions_of_a_decision_meet_the_same_jobs() -> None:
    """Each return is that of a plain play from a copy: the action, then the greedy network."""
    simulator, network = busy(), sets()
    before = simulator.rewards.copy(), simulator.now.copy()
    found = tried(simulator, network)
    like = alike(simulator.observe(found.episode), found.observed.may)
    for d, episode in enumerate(found.episode):
        for action in np.flatnonzero(found.tried[d]):
            copy = simulator.fork(np.array([episode]))
            copy.step(np.array([0]), like[d, [action]])
            Roller(copy, network.compiled(), np.zeros(1, dtype=np.uint64), greedy=True).play()
            assert found.returns[d, action] == pytest.approx(copy.rewards[0, simulator.now[episode] :].sum())
            np.testing.assert_array_equal(copy.jobs.arrival, simulator.jobs.take(np.array([episode])).arrival)
    np.testing.assert_array_equal(simulator.rewards, before[0])
    np.testing.assert_array_equal(simulator.now, before[1])


def test_what_is_seen_does_not_depend_on_jobs_to_come() -> None:
    """Jobsets that agree until now and differ afterwards: the same observation and chances, other returns."""
    one, other = (begun(jobset((0, 6, 3), (0, 1, 3), (3, length, 3))) for length in (1, 5))
    here, there = tried(one), tried(other)
    np.testing.assert_array_equal(here.observed.job, there.observed.job)
    np.testing.assert_array_equal(here.observed.rest, there.observed.rest)
    np.testing.assert_array_equal(here.chance, there.chance)
    assert not np.array_equal(here.returns, there.returns)


def test_jobs_that_are_alike_are_tried_once_and_have_the_same_return() -> None:
    simulator = begun(jobset((0, 2, 2), (0, 2, 2), (0, 1, 2)), cluster=THREE._replace(slots=3))
    found = tried(simulator)
    assert found.returns[0, 0] == found.returns[0, 1]
    assert found.returns[0, 2] != found.returns[0, 0]
    view = simulator.observe(simulator.rows)
    assert alike(view, found.observed.may)[0].tolist() == [0, 0, 2, 3]


def test_where_all_jobs_are_alike_and_void_is_refused_there_is_nothing_to_try() -> None:
    assert len(tried(begun(jobset((0, 2, 2), (0, 2, 2)))).episode) == 0


def test_the_likeliest_actions_are_tried() -> None:
    whole, few = tried(busy()), tried(busy(), most=2)
    assert (few.tried.sum(axis=1) >= 2).all()
    assert few.tried.sum() < whole.tried.sum()
    for all_of, kept in zip(whole.chance, few.chance, strict=True):
        assert all_of[kept > 0].min() >= np.sort(all_of[all_of > 0])[::-1][:2].min()
    assert few.chance.sum(axis=1) == pytest.approx(1.0)


def test_a_decision_is_tried_by_its_doubt_and_stands_for_those_that_were_not() -> None:
    """Weighted, as many decisions as there are; of 400 drawn ones within a tenth."""
    network, whole = sets(), tried(busy(), sets())
    doubt = 1 - (whole.chance**2).sum(axis=1)
    assert doubt.max() < 1
    draws = (np.arange(400) + 0.5) / 400
    count = np.zeros(len(whole.episode))
    for draw in draws[::20]:
        found = tried(busy(), network, draw, unsure=1.0)
        count[np.isin(whole.episode, found.episode)] += found.weight
    assert count / 20 == pytest.approx(np.ones(len(count)), abs=0.1)


def test_a_window_ends_for_all_actions_at_the_same_step_with_what_is_left() -> None:
    """At step 1 the long job, or the short one, waits or runs; all that is left then counts, at the mean rate."""
    jobs = jobset((0, 6, 3), (0, 1, 3))
    plain = tried(begun(jobs), beyond=Beyond(1))
    assert plain.returns[0, :2] == pytest.approx([-(1 + 1 / 6)] * 2)
    beyond = Beyond(1, (3.0, 2.0), np.array([1.0]))
    found = tried(begun(jobs), beyond=beyond)
    rate = 1 + 1 / 6  # of one step
    # the long one first: one waits, and 5 + 1 steps of work are left; the short one first: one waits, and 6 are
    assert found.returns[0, :2] == pytest.approx([-rate * (1 + 3 + 2 * 6)] * 2)
    twice = tried(begun(jobs), beyond=Beyond(1, (3.0, 2.0), np.array([2.0])))
    assert twice.returns[0, LONG] == pytest.approx(-rate * (1 + 2 * (3 + 2 * 6)))


def test_a_walk_in_pieces_is_the_same_walk() -> None:
    number, key = np.arange(4), keys(9, np.arange(4), np.zeros(4, dtype=np.int64))
    jobsets = [random_jobset(np.random.default_rng(k), NARROW, 30, 30) for k in number]
    one, other = begun(*jobsets, cluster=NARROW), begun(*jobsets, cluster=NARROW)
    Roller(one, sets().compiled(), key).play()
    walk = Walk(other, sets(), key)
    while len(walk.go_on(3)):
        pass
    np.testing.assert_array_equal(one.schedule().start, other.schedule().start)


def test_a_walk_decides_nothing_from_a_step_on() -> None:
    simulator = begun(*(random_jobset(np.random.default_rng(k), NARROW, 30, 30) for k in range(4)), cluster=NARROW)
    walk = Walk(simulator, sets(), keys(9, np.arange(4), np.zeros(4, dtype=np.int64)))
    assert len(walk.go_on(1000, until=5)) == 0
    assert simulator.now.min() >= 5
    assert len(simulator.rows)
