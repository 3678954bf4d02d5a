"""Policies know estimates, jobs run as long as they run: followed by hand, and held on random problems."""

import numpy as np
import pytest
from builders import ONLY, act, cluster, jobset, random_jobset, rewards, start, wander

from pipeline.core.types import Observation, keys
from pipeline.problems.pool.env.evaluation.metrics import outcome
from pipeline.problems.pool.env.nouns import Cluster, JobSet, batch
from pipeline.problems.pool.env.simulator.batch import Batched
from pipeline.problems.pool.env.simulator.rules import players
from pipeline.problems.pool.heuristics.scores import HEURISTICS
from pipeline.simulation.rollout import compiled_rule_of, play
from tests.oracles.pool import Timestep

VOID = 2  # of two slots
NARROW = Cluster((5, 4), 6, 3, 4, False)


@pytest.fixture(params=["plain", "compiled"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def estimated(jobs: JobSet, *steps: int) -> JobSet:
    """The same jobs under estimates."""
    return jobs._replace(estimate=np.array(steps))


def view(simulator: Timestep | Batched) -> Observation:
    return simulator.observe(ONLY)


def free(simulator: Timestep | Batched) -> list[int]:
    return [int(units) for units in view(simulator).free[0, 0, :, 0]]


def crowd(seed: int, of: Cluster = NARROW, jobs: int = 30) -> JobSet:
    """Jobs that run up to twice the horizon and request anything within it."""
    rng = np.random.default_rng(seed)
    known = random_jobset(rng, of, jobs, 20)
    return known._replace(
        duration=rng.integers(1, 2 * of.horizon + 1, jobs), estimate=rng.integers(1, of.horizon + 1, jobs)
    )


def test_a_job_reserves_what_was_told(kind: str) -> None:
    simulator = start(kind, estimated(jobset((0, 1, 2), (0, 2, 2)), 3, 2), cluster(3))
    assert view(simulator).duration.tolist() == [[3, 2]]
    act(simulator, 0)
    assert free(simulator) == [1, 1, 1, 3]


def test_a_job_that_ends_early_gives_back_the_rest_at_once(kind: str) -> None:
    simulator = start(kind, estimated(jobset((0, 1, 2), (0, 2, 2)), 3, 2), cluster(3))
    act(simulator, 0)
    assert view(simulator).fits_now[0, :, 0].tolist() == [False, False]
    act(simulator, VOID)
    assert free(simulator) == [3, 3, 3, 3]
    assert view(simulator).fits_now[0, :, 0].tolist() == [False, True]
    act(simulator, 1, VOID)
    assert free(simulator) == [1, 3, 3, 3]  # what was given back is not given back again
    act(simulator, VOID)
    assert simulator.schedule().finish.tolist() == [1, 3]
    assert simulator.rows.tolist() == []


def test_a_job_that_overruns_keeps_its_units_a_step_at_a_time(kind: str) -> None:
    simulator = start(kind, estimated(jobset((0, 3, 2), (0, 1, 2)), 1, 1), cluster(3))
    act(simulator, 0)
    for step in range(3):
        assert view(simulator).now.tolist() == [step]
        assert free(simulator) == [1, 3, 3, 3]
        assert view(simulator).fits_now[0, :, 0].tolist() == [False, False]
        act(simulator, 1)  # the other one does not fit: a step passes
    assert free(simulator) == [3, 3, 3, 3]
    assert simulator.schedule().finish.tolist() == [3, -1]
    act(simulator, 1, VOID)
    assert simulator.schedule().start.tolist() == [0, 3]


def test_estimates_are_cut_to_the_horizon_and_a_job_may_outrun_it(kind: str) -> None:
    simulator = start(kind, estimated(jobset((0, 6, 2)), 9), cluster(3))
    assert view(simulator).duration.tolist() == [[4, 0]]
    act(simulator, 0)
    observed = []
    for _ in range(6):
        observed.append(free(simulator))
        act(simulator, VOID)
    assert observed == [[1] * 4, [1, 1, 1, 3], [1, 1, 3, 3], [1, 3, 3, 3], [1, 3, 3, 3], [1, 3, 3, 3]]
    assert simulator.schedule().finish.tolist() == [6]


def test_backlog_and_arrivals_are_told_by_estimates(kind: str) -> None:
    simulator = start(kind, estimated(jobset((0, 1, 1), (0, 2, 2), (0, 3, 1)), 3, 1, 2), cluster(3))
    assert view(simulator).backlog_head.tolist() == [[2, 1]]
    assert view(simulator).arrived.tolist() == [[3, 3 + 1 + 2, 3 * 1 + 1 * 2 + 2 * 1]]


@pytest.mark.parametrize("objective", ["slowdown", "utilisation"])
def test_rewards_know_how_long_jobs_really_run(kind: str, objective: str) -> None:
    # The first runs one step of the three requested, the second three of the one requested.
    simulator = start(kind, estimated(jobset((0, 1, 1), (0, 3, 2)), 3, 1), cluster(3), objective=objective)
    act(simulator, 0, 1, VOID, VOID, VOID)
    by_step = {"slowdown": [-(1 + 1 / 3), -1 / 3, -1 / 3], "utilisation": [1.0, 2 / 3, 2 / 3]}
    assert rewards(simulator) == pytest.approx(by_step[objective])


def test_slowdown_is_of_the_true_duration() -> None:
    jobs = estimated(jobset((0, 2, 3), (0, 1, 3)), 4, 3)
    simulator = start("plain", jobs, cluster(3))
    act(simulator, 1, VOID, 0, VOID, VOID)
    assert outcome(batch([jobs]), simulator.schedule(), 100).slowdown.tolist() == [3 / 2, 1.0]


def test_estimates_are_refused_where_jobs_may_be_placed_ahead(kind: str) -> None:
    jobs = jobset((0, 2, 1), (0, 3, 1))
    with pytest.raises(ValueError, match=r"^job 1 requests 4 steps and runs 3: jobs can be placed ahead only where"):
        start(kind, estimated(jobs, 2, 4), cluster(ahead=True))
    act(start(kind, estimated(jobs, 2, 3), cluster(ahead=True)), 0)


@pytest.mark.parametrize("seed", range(5))
def test_the_present_row_is_what_running_jobs_leave_and_rows_never_fall(kind: str, seed: int) -> None:
    jobs, rng = crowd(seed), np.random.default_rng(seed)
    simulator = start(kind, jobs, NARROW, step_limit=300)
    while len(simulator.rows):
        observed = view(simulator)
        begun, now = simulator.schedule().start, int(observed.now[0])
        runs = (begun >= 0) & (begun + jobs.duration > now)
        assert (observed.free[0, 0, 0] == NARROW.capacity - jobs.demand[runs].sum(axis=0)).all()
        assert (np.diff(observed.free[0, 0], axis=0) >= 0).all()
        assert (observed.free >= 0).all()
        assert (observed.free[0, 0] <= NARROW.capacity).all()
        simulator.step(ONLY, wander(observed, rng.random(1)))
    assert (simulator.schedule().finish >= 0).all()


def play_by(jobsets: list[JobSet], policy: str, compiled: bool) -> Batched:
    """Every jobset played to its end, with rewards."""
    simulator = Batched(batch(jobsets), NARROW, 300, "slowdown", skip_forced=compiled)
    number = np.arange(len(jobsets))
    key = keys(3, number, np.zeros_like(number))
    rule = compiled_rule_of(HEURISTICS[policy])
    assert rule is not None
    if compiled:
        simulator.play(simulator.rows, players([rule] * len(jobsets), key), 10_000)
    else:
        play(simulator, HEURISTICS[policy], key)
    return simulator


@pytest.mark.parametrize("policy", ["sjf", "packer", "hold"])
def test_heuristics_and_their_compiled_rules_go_by_what_is_told(policy: str) -> None:
    jobsets = [crowd(seed) for seed in range(10)]
    asked, compiled = play_by(jobsets, policy, False), play_by(jobsets, policy, True)
    assert all(np.array_equal(one, other) for one, other in zip(asked.schedule(), compiled.schedule(), strict=True))
    known = play_by([jobs._replace(estimate=None) for jobs in jobsets], "sjf", True)
    assert not np.array_equal(known.schedule().start, compiled.schedule().start)


def test_durations_told_as_they_are_change_nothing() -> None:
    rng = np.random.default_rng(2)
    known = [random_jobset(rng, NARROW, 25, 20) for _ in range(6)]
    exact = [jobs._replace(estimate=jobs.duration.copy()) for jobs in known]
    for policy in ("sjf", "random"):
        alone, beside = play_by(known, policy, True), play_by([*exact, crowd(1)], policy, True)
        jobs = len(alone.schedule().start)
        for one, other in zip(alone.schedule(), beside.schedule(), strict=True):
            assert np.array_equal(one, other[: len(one)])
        assert np.array_equal(alone.rewards, beside.rewards[:6])  # to the last bit
        assert jobs == 150


def test_a_jobset_without_estimates_tells_its_durations_among_others() -> None:
    one, other = estimated(jobset((0, 2, 1), (1, 3, 1)), 4, 1), jobset((0, 1, 2))
    several = batch([one, other])
    assert several.requested.tolist() == [4, 1, 1]
    assert several.take(np.array([1, 0])).requested.tolist() == [1, 4, 1]
    assert batch([other]).estimate is None
    assert batch([other]).requested.tolist() == [1]
