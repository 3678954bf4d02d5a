"""What DeepRM3 sees: every feature worked by hand once, the same from either side, and the same at any size."""

from math import log

import numpy as np
import pytest
from builders import ONLY, observation, random_jobset, viewed, wander
from set_learning import sets

from pipeline.core import CompiledRule, Observation, keys, legal_actions
from pipeline.problems.pool.networks import relative as at
from pipeline.problems.pool.networks.describing import relative
from pipeline.problems.pool.networks.relative import ELAPSED, ENDS, OF_JOB, OF_REST, TO_END, Relative
from pipeline.problems.pool.nouns import Cluster, JobSet, batch
from pipeline.problems.pool.simulator.compiled.batch import Batched
from pipeline.problems.pool.simulator.compiled.rules import players
from pipeline.problems.pool.training.rolling import Roller
from tests.oracles.pool import Timestep

CLUSTER = Cluster((5, 4), 6, 4, 4, False)
AHEAD = CLUSTER._replace(place_ahead=True)


def hand() -> Observation:
    """Three jobs wait in four slots of a cluster of 4 and 8 units; the last one does not fit before step 2."""
    view = observation(
        duration=[2, 0, 4, 1],
        demand=[[2, 2], [0, 0], [1, 6], [4, 1]],
        free=[[3, 6], [3, 8]],
        capacity=(4, 8),
        waited=[3, 0, 0, 1],
        fits_now=[True, False, True, False],
        backlog=2,
        since_arrival=5,
        horizon=4,
    )
    return view._replace(
        now=np.array([9]), backlog_head=np.array([[8, 4, 2]]), arrived=np.array([[4.0, 6.0, 20.0, 40.0]])
    )


def job(slot: int) -> list[float]:
    return [float(value) for value in relative(hand()).job[0, slot]]


# Of jobs 0, 2 and 3: shares of capacity 1/2 and 1/4, 1/4 and 3/4, 1 and 1/8; 3/4 of both resources are free; the mean
# duration so far is 6 / 4; areas are 2 * 3/8, 4 * 1/2 and 1 * 9/16.
WORKED = {
    "logarithm of its duration": (at.DURATION, [log(2) / 3, log(4) / 3, 0]),
    "its duration beside the mean": (at.DURATION_TO_MEAN, [log(2 / 1.5) / 2, log(4 / 1.5) / 2, log(1 / 1.5) / 2]),
    "how long it has waited": (at.WAITED, [log(1 + 3) / 4, 0, log(1 + 1) / 4]),
    "that beside its duration": (at.STRETCH, [log(1 + 3 / 2) / 3, 0, log(1 + 1) / 3]),
    "its largest share": (at.MOST_DEMAND, [1 / 2, 3 / 4, 1]),
    "its mean share": (at.MEAN_DEMAND, [3 / 8, 1 / 2, 9 / 16]),
    "its smallest share": (at.LEAST_DEMAND, [1 / 4, 1 / 4, 1 / 8]),
    "does it fit now?": (at.FITS, [1, 1, 0]),
    "least share left if it starts": (at.LEAST_LEFT, [1 / 4, 0, -1 / 4]),
    "mean share left": (at.MEAN_LEFT, [(1 / 4 + 1 / 2) / 2, (1 / 2 + 0) / 2, (-1 / 4 + 5 / 8) / 2]),
    "alignment with what is free": (at.ALIGNMENT, [3 / 4 * 3 / 8, 3 / 4 * 1 / 2, 3 / 4 * 9 / 16]),
    "first step with room": (at.FIRST_FIT, [0, 0, log(1 + 2) / 3]),
    "part of the jobs that are shorter": (at.SHORTER, [1 / 3, 2 / 3, 0]),
    "part of smaller area": (at.SMALLER, [1 / 3, 2 / 3, 0]),
    "logarithm of its area": (at.AREA, [log(3 / 4) / 3, log(2) / 3, log(9 / 16) / 3]),
    "part of those that fit which fit beside it": (at.FITTING_BESIDE, [0, 0, 0]),  # 2 + 6 > 6
    "its duration beside the shortest": (at.DURATION_TO_SHORTEST, [log(2) / 2, log(4) / 2, 0]),
    "part of those that fit which are shorter and kept out": (at.KEPT_OUT, [0, 1 / 2, 0]),
    "what is left of what it wants most": (at.LEFT_OF_MOST, [1 / 4, 0, -1 / 4]),
    "one over its duration": (at.HASTE, [1 / 2, 1 / 4, 1]),
    "what is free when it would end": (at.FREE_AT_END, [1, 1, (3 / 4 + 1) / 2]),
}


@pytest.mark.parametrize("what", list(WORKED))
def test_a_jobs_feature_is_as_worked_by_hand(what: str) -> None:
    place, expected = WORKED[what]
    assert [job(slot)[place] for slot in (0, 2, 3)] == pytest.approx(expected, abs=1e-6)


def test_every_feature_of_a_job_is_worked_here() -> None:
    assert sorted(place for place, _ in WORKED.values()) == list(range(OF_JOB))
    assert job(1) == [0.0] * OF_JOB  # an empty slot


def test_jobs_that_fit_side_by_side_are_told() -> None:
    view = observation(duration=[3, 2, 5], demand=[[5, 5], [5, 5], [6, 1]])
    # 5 + 5 leaves room; 5 + 6 does not: of three that fit, each of the first two has one beside it, the last has none
    assert relative(view).job[0, :, at.FITTING_BESIDE] == pytest.approx([1 / 3, 1 / 3, 0])
    # the first keeps out nobody shorter, nor does the second; the last keeps out both
    assert relative(view).job[0, :, at.KEPT_OUT] == pytest.approx([0, 0, 2 / 3])


def test_the_rest_is_as_worked_by_hand() -> None:
    work = [(2 * 2 + 4 * 1 + 1 * 4) / 4, (2 * 2 + 4 * 6 + 1 * 1) / 8]
    expected = [
        *(3 / 4, 3 / 4, 7 / 8, 3 / 4),  # free now and in the next step: mean and least share
        *(1,) * 8,  # in 2, 4, 8 and 16
        log(1 + 3) / 3,  # jobs in slots
        log(1 + 2) / 3,  # and behind them
        (20 / 4 + 40 / 8) / 10 / 2,  # load so far: ten steps
        log(1.5) / 3,
        log(1 + 5) / 3,  # since an arrival
        2 / 3,  # part that fits
        log(1 + sum(work) / 2) / 3,
        (work[1] - sum(work) / 2) / work[1],  # how much more one resource is wanted
        log(8 / 1.5) / 2,  # the backlog's head: its duration, its largest share
        1,
        1 / 3,  # part that runs more than twice the mean
        log(1 + 4 / 3) / 4,
        1,  # there is a backlog
        log(1 + 9) / 8,
        0,  # nothing is said of the end of arrivals
        0,
    ]
    assert len(expected) == OF_REST
    assert relative(hand()).rest[0] == pytest.approx(expected, abs=1e-6)
    assert (ELAPSED, ENDS, TO_END) == (OF_REST - 3, OF_REST - 2, OF_REST - 1)


def test_nothing_to_see_is_no_error() -> None:
    assert relative(hand().take(slice(0))).job.shape == (0, 4, OF_JOB)


# The simulator's own state and an observation


def crowd(seed: int, of: Cluster, estimates: bool) -> JobSet:
    rng = np.random.default_rng(seed)
    known = random_jobset(rng, of, 25, 15)
    estimate = rng.integers(1, of.horizon + 1, 25)
    return known._replace(duration=rng.integers(1, 2 * of.horizon, 25), estimate=estimate) if estimates else known


def to_a_choice(simulator: Timestep) -> None:
    """Play moves that leave no choice, as the compiled simulator does."""
    while len(simulator.rows) and (may := legal_actions(simulator.observe(ONLY))).sum() == 1:
        simulator.step(ONLY, may.argmax(axis=1))


@pytest.mark.parametrize(("of", "estimates"), [(CLUSTER, False), (CLUSTER, True), (AHEAD, False)])
def test_state_and_observation_show_the_same_along_random_play(of: Cluster, estimates: bool) -> None:
    jobsets = [crowd(seed, of, estimates) for seed in range(6)]
    number = np.arange(6)
    key = keys(5, number, np.zeros_like(number))
    simulator = Batched(batch(jobsets), of, 200, skip_forced=True)
    played = Roller(simulator, sets().compiled(), key).led_by(players([CompiledRule("random")] * 6, key)).keep()
    assert len(played.action) > 150
    for episode, jobs in enumerate(jobsets):
        plain = Timestep(jobs, of, 200)
        for row in np.flatnonzero(played.episode == episode):
            to_a_choice(plain)
            found = relative(plain.observe(ONLY))
            for one, other in zip(found, played.observed.take(np.array([row])), strict=True):
                np.testing.assert_array_equal(one, other)
            plain.step(ONLY, played.action[[row]])


# Other sizes


def alike(one: Relative, other: Relative) -> None:
    for mine, its in zip(one, other, strict=True):
        np.testing.assert_allclose(mine, its, rtol=1e-5, atol=1e-6)


def met() -> Observation:
    """A few dozen observations along a random walk."""
    return viewed(CLUSTER, wander, episodes=4)


def test_a_cluster_twice_as_large_with_demands_twice_as_large_looks_the_same() -> None:
    view = met()
    work, head = view.arrived.copy(), view.backlog_head.copy()
    work[:, 2:] *= 2
    head[:, 1:] *= 2
    large = view._replace(
        free=2 * view.free, demand=2 * view.demand, capacity=2 * view.capacity, arrived=work, backlog_head=head
    )
    one, other = relative(view), relative(large)
    assert all(np.array_equal(mine, its) for mine, its in zip(one, other, strict=True))


def test_a_resource_that_is_told_twice_changes_nothing() -> None:
    view = met().take(slice(30))
    twice = [0, 1, 0, 1]
    more = view._replace(
        free=view.free[..., twice],
        demand=view.demand[..., twice],
        capacity=view.capacity[..., twice],
        backlog_head=view.backlog_head[:, [0, 1, 2, 1, 2]],
        arrived=view.arrived[:, [0, 1, 2, 3, 2, 3]],
    )
    alike(relative(view), relative(more))


def wider(view: Observation, empty: int) -> Observation:
    """The same jobs, and more empty slots."""
    grown = {}
    for name in ("demand", "duration", "waited", "legal", "fits_now", "nodes", "fits_in"):
        field = getattr(view, name)
        none = np.zeros((len(field), empty, *field.shape[2:]), dtype=field.dtype)
        grown[name] = np.concatenate([field, none], axis=1)
    return view._replace(**grown)


def shuffled(view: Observation, order: list[int]) -> Observation:
    """The same jobs in other slots."""
    names = ("demand", "duration", "waited", "legal", "fits_now", "nodes", "fits_in")
    return view._replace(**{name: getattr(view, name)[:, order] for name in names})


def scores(observed: Relative) -> np.ndarray:
    """The logits of legal actions; 0 elsewhere."""
    return sets(hidden=16, elapsed=True).frozen()(observed) * observed.may


def test_more_empty_slots_change_neither_features_nor_scores() -> None:
    one, other = relative(met()), relative(wider(met(), empty=3))
    alike(one, Relative(other.job[:, :4], other.rest, np.delete(other.may, [4, 5, 6], axis=1)))
    assert not other.job[:, 4:].any()
    assert not other.may[:, 4:7].any()
    np.testing.assert_array_equal(scores(one), np.delete(scores(other), [4, 5, 6], axis=1))


def test_jobs_in_other_slots_have_the_same_features_and_scores() -> None:
    order = [2, 0, 3, 1]
    one, other = relative(met()), relative(shuffled(met(), order))
    moved = Relative(one.job[:, order], one.rest, one.may[:, [*order, 4]])
    alike(moved, other)
    np.testing.assert_allclose(scores(one)[:, [*order, 4]], scores(other), rtol=1e-4, atol=1e-6)
    assert len(np.unique(scores(one)[:, :4])) > 20


def test_a_job_without_room_within_the_horizon_is_told_its_end() -> None:
    view = observation(duration=[2], demand=[[3]], free=[[1]] * 3, capacity=(3,), horizon=3, fits_now=[False])
    assert relative(view).job[0, 0, 11] == pytest.approx(log(1 + 3) / 3)


def test_what_is_looked_up_is_of_the_observation_that_is_shown() -> None:
    """Durations and waits on both sides of those that are looked up, under other means and other free units."""
    views = [
        hand()._replace(
            duration=np.array([[steps, 0, 4, steps + 1]]),
            waited=np.array([[waited, 0, waited + 1, 2]]),
            arrived=np.array([[4.0, mean * 4.0, 20.0, 40.0]]),
            free=hand().free - less,
        )
        for steps, waited, mean, less in [(2, 3, 1.5, 0), (2, 9, 7.0, 1), (255, 255, 9.0, 0), (256, 256, 9.0, 1)]
    ]
    together = relative(Observation(*map(np.concatenate, zip(*views, strict=True))))
    for i, view in enumerate(views):
        alike(together.take(slice(i, i + 1)), relative(view))
    long = together.job[3, 0]
    assert long[at.DURATION] == pytest.approx(log(256) / 3)
    assert long[at.WAITED] == pytest.approx(log(257) / 4)
    assert long[at.DURATION_TO_MEAN] == pytest.approx(log(256 / 9) / 2)
    assert [together.job[i, 0, at.DURATION_TO_MEAN] for i in (0, 1)] == pytest.approx(
        [log(2 / 1.5) / 2, log(2 / 7) / 2]
    )
