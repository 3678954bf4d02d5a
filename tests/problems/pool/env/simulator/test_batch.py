"""Two simulators, one truth: they agree move by move on random problems, and no rule of the cluster is ever broken."""

import numba
import numpy as np
import pytest
from builders import ONLY, act, clusters, jobset, jobsets, random_jobset, start, units_in_use, wander
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.core.types import Observation, Policy, idle, keys, legal_actions
from pipeline.problems.pool.env.nouns import Cluster, JobSet, Schedule, batch, compact
from pipeline.problems.pool.env.simulator.batch import Batched
from pipeline.problems.pool.env.simulator.rewards import OBJECTIVES
from pipeline.problems.pool.heuristics.scores import HEURISTICS
from pipeline.simulation.rollout import play
from tests.oracles.pool import Timestep

Problem = tuple[Cluster, list[JobSet], int, np.random.Generator]


@st.composite
def problems(draw: st.DrawFn, most: int = 3) -> Problem:
    """A cluster, some jobsets, a step limit, and where random moves come from."""
    of = draw(clusters())
    several = draw(st.lists(jobsets(of), min_size=1, max_size=most))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    if not of.place_ahead:
        several = [estimated(jobs, of, rng) if draw(st.booleans()) else jobs for jobs in several]
    several = [jobs._replace(load=draw(st.sampled_from([None, 30.0, 190.0]))) for jobs in several]
    return of, several, draw(st.integers(1, 60)), rng


def estimated(jobs: JobSet, of: Cluster, rng: np.random.Generator) -> JobSet:
    """The same jobs under any estimates, some beyond the horizon; half of them run three times as long."""
    longer = np.where(rng.random(len(jobs.duration)) < 0.5, 3, 1)
    return jobs._replace(duration=jobs.duration * longer, estimate=rng.integers(1, of.horizon + 3, len(jobs.duration)))


def assert_same_view(plain: Observation, compiled: Observation) -> None:
    for name, one, other in zip(Observation._fields, plain, compiled, strict=True):
        assert one.shape == other.shape, name
        np.testing.assert_array_equal(one, other, name)


def jobs_of(schedule: Schedule, first: int, last: int) -> list[list[int]]:
    return [column[first:last].tolist() for column in (schedule.start, schedule.finish, schedule.withheld)]


def assert_agreement(of: Cluster, several: list[JobSet], limit: int, objective: str, rng: np.random.Generator) -> None:
    """Play any moves in both simulators, side by side, to the end."""
    jobs = batch(several)
    plain = [Timestep(one, of, limit, objective) for one in several]
    compiled = Batched(jobs, of, limit, objective)
    while len(rows := compiled.rows):
        assert rows.tolist() == [b for b, one in enumerate(plain) if len(one.rows)]
        views = compiled.observe(rows)
        observed = compiled.compact_buffer(len(rows))
        compiled.observe_compact(rows, observed)
        assert all(np.array_equal(one, other) for one, other in zip(compact(views), observed, strict=True))
        actions = wander(views, rng.random(len(rows)))
        for i, b in enumerate(rows):
            assert_same_view(plain[b].observe(ONLY), views.take(np.array([i])))
            plain[b].step(ONLY, actions[i : i + 1])
        compiled.step(rows, actions)
    assert all(one.done for one in plain)
    both = compiled.schedule()
    for b, one in enumerate(plain):
        own = one.schedule()
        assert jobs_of(own, 0, len(own.start)) == jobs_of(both, jobs.first[b], jobs.first[b + 1])
        assert (own.steps[0], own.withheld_steps[0]) == (both.steps[b], both.withheld_steps[b])
        assert own.used[0] == pytest.approx(both.used[b], abs=1e-9)
        assert one.rewards == pytest.approx(compiled.rewards[b, : len(one.rewards)].tolist(), abs=1e-9)
        assert not compiled.rewards[b, len(one.rewards) :].any()


@settings(max_examples=200)
@given(problem=problems(), objective=st.sampled_from(OBJECTIVES))
def test_plain_and_compiled_agree_move_by_move(problem: Problem, objective: str) -> None:
    of, several, limit, rng = problem
    assert_agreement(of, several, limit, objective, rng)


@pytest.mark.parametrize("ahead", [False, True])
def test_plain_and_compiled_agree_on_the_cluster_of_deeprm(ahead: bool) -> None:
    rng = np.random.default_rng(8)
    of = Cluster((10, 10), 20, 10, 60, ahead)
    assert_agreement(of, [random_jobset(rng, of, 40, 50) for _ in range(2)], 2000, "slowdown", rng)


def stubborn(view: Observation, draws: np.ndarray) -> np.ndarray:
    """A legal move told from the view alone, with no preference of any use; often void, and often none at all."""
    legal = legal_actions(view)
    mixed = 7 * view.now + 3 * view.duration.sum(axis=1) + 5 * view.free.sum(axis=(1, 2, 3)) + view.backlog
    return np.asarray((legal.cumsum(axis=1) > (mixed % legal.sum(axis=1))[:, None]).argmax(axis=1))


@settings(max_examples=100)
@given(problem=problems(), policy=st.sampled_from([stubborn, HEURISTICS["sjf"], HEURISTICS["packer"]]))
def test_skipping_forced_moves_changes_nothing(problem: Problem, policy: Policy) -> None:
    of, several, limit, _ = problem
    number = np.arange(len(several))
    played = [
        Batched(batch(several), of, limit, objective, skip_forced=skip)
        for objective, skip in (("slowdown", False), ("slowdown", True), (None, True))
    ]
    for simulator in played:
        play(simulator, policy, keys(0, number, np.zeros_like(number)))
    asked, skipped, unrewarded = played
    for one, two, three in zip(asked.schedule(), skipped.schedule(), unrewarded.schedule(), strict=True):
        assert np.array_equal(one, two)
        assert np.array_equal(one, three)
    assert np.array_equal(asked.rewards, skipped.rewards)


@pytest.mark.parametrize("limit", [5, 1_000, 3_000_000])
def test_skipping_forced_moves_goes_through_long_silences(limit: int) -> None:
    jobs = jobset((0, 2, 1), (900, 3, 1), (2_999_000, 1, 1), (2_999_000, 1, 1))
    simulator = Batched(batch([jobs]), Cluster((1,), 4, 2, 4, False), limit, skip_forced=True)
    play(simulator, HEURISTICS["sjf"], keys(0, np.array([0]), np.array([0])))
    schedule = simulator.schedule()
    began = [begin if begin < limit else -1 for begin in (0, 900, 2_999_000, 2_999_001)]
    assert schedule.start.tolist() == began
    assert schedule.steps.tolist() == [min(limit, 2_999_002)]
    assert schedule.used.tolist() == [sum(int(jobs.duration[k]) for k in range(4) if began[k] >= 0)]


@settings(max_examples=100)
@given(problem=problems())
def test_every_move_asked_for_leaves_a_choice_where_forced_ones_are_skipped(
    problem: Problem,
) -> None:
    of, several, limit, _ = problem
    choices = []

    def watch(rows: np.ndarray, view: Observation, actions: np.ndarray) -> None:
        choices.extend(legal_actions(view).sum(axis=1).tolist())

    simulator = Batched(batch(several), of, limit, skip_forced=True)
    play(simulator, stubborn, keys(0, np.arange(len(several)), np.zeros(len(several), dtype=np.int64)), watch)
    assert all(count > 1 for count in choices)


@pytest.mark.parametrize("kind", ["plain", "compiled"])
@settings(max_examples=75)
@given(problem=problems(most=1))
def test_jobs_start_once_never_early_and_never_overbook(kind: str, problem: Problem) -> None:
    of, (jobs,), limit, rng = problem
    simulator = start(kind, jobs, of, limit)
    begun = np.full(len(jobs.arrival), -1)
    while len(simulator.rows):
        view = simulator.observe(ONLY)
        assert (view.free >= 0).all()
        assert (view.free <= view.capacity[:, :, None]).all()
        simulator.step(ONLY, wander(view, rng.random(1)))
        now_begun = simulator.schedule().start
        assert (now_begun[begun >= 0] == begun[begun >= 0]).all()
        assert (now_begun >= 0).sum() <= (begun >= 0).sum() + 1
        begun = now_begun
    assert_sound(jobs, of, limit, simulator.schedule())


def test_units_in_use_are_told_from_starts_and_durations() -> None:
    jobs = jobset((0, 2, 2, 1), (0, 1, 1, 1), (0, 1, 1, 1))
    schedule = Schedule(
        np.array([0, 1, -1]), np.array([2, 2, -1]), np.zeros(3, int), np.array([2]), np.array([0]), np.array([0.0])
    )
    held = units_in_use(jobs, schedule, Cluster((3, 3), 4, 2, 0, False))
    assert held[:2].tolist() == [[2, 1], [3, 2]]


def assert_sound(jobs: JobSet, of: Cluster, limit: int, schedule: Schedule) -> None:
    """Check a schedule against its jobs alone."""
    steps = int(schedule.steps[0])
    started, finished = schedule.start >= 0, schedule.finish >= 0
    assert (schedule.start[started] >= jobs.arrival[started]).all()
    assert (schedule.finish[finished] == (schedule.start + jobs.duration)[finished]).all()
    stream = of.measured is not None
    assert (finished == (started & (stream | (schedule.start + jobs.duration <= steps)))).all()
    held = units_in_use(jobs, schedule, of)
    assert (held <= of.capacity).all()
    shares = (held[:steps] / np.array(of.capacity)).sum()
    assert schedule.used[0] == pytest.approx(shares, abs=1e-9)
    if (
        of.measured is not None
        and started[counts := (jobs.arrival >= of.measured[0]) & (jobs.arrival < of.measured[1])].all()
    ):
        assert of.place_ahead or steps == schedule.start[counts].max(initial=0)
    elif finished.all():
        assert steps == schedule.finish.max()
    else:
        assert steps == limit


@settings(max_examples=75)
@given(problem=problems())
def test_an_episode_is_the_same_in_any_company(
    problem: Problem,
) -> None:
    of, several, limit, _ = problem
    together = Batched(batch(several), of, limit)
    number = np.arange(len(several))
    key = keys(5, number, np.zeros_like(number))
    play(together, HEURISTICS["random"], key)
    first = together.jobs.first
    for b, jobs in enumerate(several):
        alone = Batched(batch([jobs]), of, limit)
        play(alone, HEURISTICS["random"], key[b : b + 1])
        assert jobs_of(alone.schedule(), 0, len(jobs.arrival)) == jobs_of(together.schedule(), first[b], first[b + 1])


@pytest.mark.usefixtures("two_threads")
def test_the_number_of_threads_changes_nothing() -> None:
    rng = np.random.default_rng(4)
    of = Cluster((5, 5), 8, 4, 4, True)
    jobs = batch([random_jobset(rng, of, 20, 20) for _ in range(50)])
    number = np.arange(50)
    played = []
    for threads in (numba.get_num_threads(), 1):
        numba.set_num_threads(threads)
        simulator = Batched(jobs, of, 200, "slowdown", skip_forced=True)
        play(simulator, HEURISTICS["random"], keys(2, number, np.zeros_like(number)))
        played.append((*simulator.schedule(), simulator.rewards))
    assert all(np.array_equal(one, other) for one, other in zip(*played, strict=True))


def test_an_idle_cluster_is_one_where_no_step_ahead_is_booked_either() -> None:
    jobs = jobset((0, 1, 2), (0, 1, 1))
    simulator = start("compiled", jobs, Cluster((2,), 4, 2, 0, True, stall=0))
    assert idle(simulator.observe(ONLY)).tolist() == [True]
    assert legal_actions(simulator.observe(ONLY)).tolist() == [[True, True, False]]
    simulator.step(ONLY, np.array([0]))
    assert idle(simulator.observe(ONLY)).tolist() == [False]
    assert legal_actions(simulator.observe(ONLY)).tolist() == [[False, True, True]]


@pytest.mark.parametrize("kind", ["plain", "compiled"])
def test_void_is_refused_once_nothing_runs_and_no_job_has_arrived_for_the_stall(kind: str) -> None:
    simulator = start(kind, jobset((0, 1, 1), (2, 1, 1)), Cluster((2,), 4, 2, 0, False, stall=3))
    legal = []
    for _ in range(6):
        legal.append(bool(legal_actions(simulator.observe(ONLY))[0, -1]))
        simulator.step(ONLY, np.array([2]))
    assert legal == [True, True, True, True, True, False]  # the last arrival is that of step 2


@pytest.mark.parametrize("kind", ["plain", "compiled"])
def test_a_cluster_without_a_stall_of_its_own_waits_for_its_horizon(kind: str) -> None:
    simulator = start(kind, jobset((0, 1, 1)), Cluster((2,), 4, 2, 0, False))
    for _ in range(4):
        assert legal_actions(simulator.observe(ONLY))[0, -1]
        simulator.step(ONLY, np.array([2]))
    assert not legal_actions(simulator.observe(ONLY))[0, -1]


@pytest.mark.parametrize("kind", ["plain", "compiled"])
def test_a_policy_is_told_how_long_arrivals_go_on_if_the_scenario_says_so(kind: str) -> None:
    for end, expected in ((None, [np.inf] * 4), (2, [2.0, 1.0, 0.0, 0.0])):
        simulator = start(kind, jobset((0, 1, 1)), Cluster((2,), 4, 2, 0, False, arrivals_end=end))
        told = []
        for _ in range(4):
            told.append(float(simulator.observe(ONLY).to_end[0]))
            simulator.step(ONLY, np.array([2]))
        assert told == expected


@pytest.mark.parametrize("kind", ["plain", "compiled"])
def test_a_policy_knows_the_load_of_its_jobset_or_else_that_of_the_cluster(kind: str) -> None:
    for own, of_all, expected in ((None, None, np.nan), (70.0, None, 70.0), (None, 40.0, 40.0), (70.0, 40.0, 70.0)):
        jobs = jobset((0, 1, 1))._replace(load=own)
        simulator = start(kind, jobs, Cluster((2,), 4, 2, 0, False, load=of_all))
        np.testing.assert_array_equal(simulator.observe(ONLY).load, [expected])


def test_episodes_of_several_loads_keep_their_own_when_copied_and_overwritten() -> None:
    low, high, unknown = (jobset((0, 1, 1))._replace(load=load) for load in (10.0, 190.0, None))
    simulator = Batched(batch([low, high, unknown]), Cluster((2,), 4, 2, 0, False), 9)
    copies = simulator.fork(np.array([2, 1, 1]))
    np.testing.assert_array_equal(copies.observe(copies.rows).load, [np.nan, 190.0, 190.0])
    simulator.overwrite(np.array([0]), copies, np.array([1]))
    np.testing.assert_array_equal(simulator.observe(simulator.rows).load, [190.0, 190.0, np.nan])
    assert simulator.jobs.load is not None
    np.testing.assert_array_equal(simulator.jobs.take(np.array([2, 0])).load, [np.nan, 190.0])


def test_without_an_objective_there_are_no_rewards() -> None:
    assert Batched(batch([jobset((0, 1, 1))]), Cluster((1,), 2, 1, 0, False), 5).rewards.shape == (1, 0)


def test_only_the_rows_that_are_named_move() -> None:
    one = jobset((0, 1, 1), (0, 1, 1))
    simulator = Batched(batch([one, one, one]), Cluster((1,), 2, 2, 0, False), 5)
    simulator.step(np.array([2, 0]), np.array([2, 1]))
    assert simulator.schedule().start.tolist() == [-1, 0, -1, -1, -1, -1]
    assert simulator.observe(np.array([0, 1, 2])).now.tolist() == [0, 0, 1]
    assert simulator.observe(np.array([2, 1])).now.tolist() == [1, 0]
    assert simulator.ended(np.arange(3))[0].tolist() == [False, False, False]


@pytest.mark.parametrize("kind", ["plain", "compiled"])
def test_a_stream_ends_as_soon_as_the_last_measured_job_has_started(kind: str) -> None:
    # Measured: jobs 1 and 2. When both have begun, job 0 still runs, job 3 waits, and job 4 has not arrived.
    jobs = jobset((0, 4, 1), (1, 3, 1), (2, 2, 1), (3, 1, 1), (9, 1, 1))
    simulator = start(kind, jobs, Cluster((3,), 4, 3, 0, False, measured=(1, 3)))
    act(simulator, 0, 3, 0, 3, 3)  # job 0 at step 0, job 1 at step 1
    assert simulator.rows.tolist() == [0]
    act(simulator, 0)  # job 2 at step 3
    assert simulator.rows.tolist() == []
    ended = simulator.schedule()
    assert ended.start.tolist() == [0, 1, 3, -1, -1]
    assert ended.finish.tolist() == [4, 4, 5, -1, -1]  # those that run will end
    assert ended.steps.tolist() == [3]


@pytest.mark.parametrize("kind", ["plain", "compiled"])
def test_a_stream_is_cut_where_a_measured_job_has_not_started(kind: str) -> None:
    jobs = jobset((0, 4, 1), (1, 3, 1))
    simulator = start(kind, jobs, Cluster((1,), 4, 3, 0, False, measured=(1, 3)), step_limit=3)
    act(simulator, 0, 3, 3, 3)
    assert simulator.rows.tolist() == []
    assert simulator.schedule().start.tolist() == [0, -1]
    assert simulator.schedule().finish.tolist() == [4, -1]


@pytest.mark.parametrize("kind", ["plain", "compiled"])
def test_a_stream_without_a_measured_job_is_over_at_once(kind: str) -> None:
    simulator = start(kind, jobset((0, 4, 1)), Cluster((1,), 4, 3, 0, False, measured=(1, 3)))
    assert simulator.rows.tolist() == []


def test_what_became_of_a_streams_jobs_is_told_once_it_is_over() -> None:
    simulator = start("compiled", jobset((0, 4, 1), (1, 3, 1)), Cluster((3,), 4, 3, 0, False, measured=(1, 3)))
    act(simulator, 0, 3)
    assert np.isnan(simulator.played(ONLY).finish).all()
    act(simulator, 0)
    assert simulator.played(ONLY).finish.tolist() == [4.0, 4.0]
    assert simulator.ended(ONLY)[0].tolist() == [True]
