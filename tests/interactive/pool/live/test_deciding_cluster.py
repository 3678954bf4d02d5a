"""A state is seen as the simulator shows it."""

from typing import Any

import numpy as np
import pytest
from builders import ONLY, cluster, jobset, random_jobset
from live_pool import in_order, state_of, units_of

from pipeline.core.types import legal_actions
from pipeline.errors import UserError
from pipeline.interactive.live.deciding import ONLY as ONE
from pipeline.interactive.pool.live.deciding import PoolNow, episode_of
from pipeline.interactive.pool.live.state import PoolState
from pipeline.problems.pool.env.nouns import JobSet
from tests.oracles.pool import Timestep


@pytest.mark.parametrize("ahead", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_a_state_shows_what_the_simulator_shows(ahead: bool, seed: int) -> None:
    rng, looked = np.random.default_rng(seed), 0
    of = cluster(4, 3, horizon=6, slots=3, ahead=ahead)
    jobs = random_jobset(rng, of, 15, 12)
    if seed % 2 and not ahead:  # told an estimate: some end early, others run on
        jobs = JobSet(jobs.arrival, jobs.duration, jobs.demand, rng.integers(1, of.horizon + 1, len(jobs.arrival)))
    simulator = Timestep(jobs, of, step_limit=100)
    while not simulator.done:
        in_order(simulator)
        shown = simulator.observe(ONLY)
        asked = state_of(simulator)
        now = episode_of(asked, units_of(of), of)
        rows = now.simulator.rows
        assert len(rows) == bool(asked.waiting or asked.running)  # an episode without jobs is over
        for name, mine, its in zip(shown._fields, now.simulator.observe(rows), shown.take(rows), strict=True):
            np.testing.assert_array_equal(mine, its, err_msg=name)
        assert now.never == ()
        looked += 1
        simulator.step(ONLY, rng.choice(np.flatnonzero(legal_actions(shown)[0]), 1))
    assert looked > 15


OF = cluster(4, horizon=5)


def state(**changes: Any) -> PoolState:
    """Four units, of which a job holds three for two more steps, and one job that waits."""
    told: dict[str, Any] = {
        "now": 10,
        "waiting": [{"id": "w", "arrived": 8, "duration": 2, "demand": {"first": 2}}],
        "running": [{"id": "r", "started": 9, "duration": 3, "demand": {"first": 3}}],
    }
    return PoolState.model_validate(told | changes)


def free(now: PoolNow) -> list[int]:
    """The units free in each step to come."""
    return now.simulator.observe(ONE).free[0, 0, :, 0].tolist()


def test_what_is_held_comes_back_when_it_is_told_to_end() -> None:
    assert free(episode_of(state(), {"first": 4}, OF)) == [1, 1, 4, 4, 4]


def test_the_end_of_arrivals_is_what_the_state_says() -> None:
    found = [
        episode_of(state(arrivals_end=end), {"first": 4}, OF).simulator.observe(ONE).to_end[0] for end in (None, 9, 50)
    ]
    assert found == [np.inf, 0, 40]  # now is 10
    with pytest.raises(ValueError, match="arrivals_end is 8, but a job arrived at 8"):
        state(arrivals_end=8)


def test_the_load_is_what_the_state_says() -> None:
    found = [episode_of(state(load=load), {"first": 4}, OF).simulator.observe(ONE).load[0] for load in (None, 72.5)]
    np.testing.assert_array_equal(found, [np.nan, 72.5])
    for wrong in (0, -5, float("nan"), 1e9):
        with pytest.raises(ValueError, match="load"):
            state(load=wrong)


def test_a_job_that_overruns_seems_to_end_after_this_step() -> None:
    late = {"id": "r", "started": 2, "duration": 3, "demand": {"first": 3}}
    assert free(episode_of(state(running=[late]), {"first": 4}, OF)) == [1, 4, 4, 4, 4]


def test_a_job_has_its_place_ahead_where_the_scenario_lets_it() -> None:
    ahead = {"id": "r", "started": 12, "duration": 2, "demand": {"first": 3}}
    assert free(episode_of(state(running=[ahead]), {"first": 4}, OF._replace(place_ahead=True))) == [4, 4, 1, 1, 4]
    with pytest.raises(UserError, match=r"^running job 'r' starts at 12, after now, 10$"):
        episode_of(state(running=[ahead]), {"first": 4}, OF)


def test_a_job_that_the_cluster_cannot_hold_never_starts() -> None:
    waiting = [
        {"id": "wide", "arrived": 5, "duration": 2, "demand": {"first": 5}},
        {"id": "long", "arrived": 5, "duration": 6, "demand": {"first": 1}},
        {"id": "gpu", "arrived": 5, "duration": 2, "demand": {"gpu": 1}},
    ]
    now = episode_of(state(waiting=waiting), {"first": 4}, OF)
    assert (now.never, now.ids) == (("wide", "long", "gpu"), [])


@pytest.mark.parametrize(
    ("job", "said"),
    [
        ({"demand": {"gpu": 1}}, "running job 'r': there is no 'gpu'"),
        ({"demand": {"first": 5}}, "step 10: running jobs hold 5 of first; it has 4"),
    ],
)
def test_a_state_that_contradicts_itself_is_refused(job: dict[str, Any], said: str) -> None:
    running = {"id": "r", "started": 9, "duration": 3, "demand": {"first": 2}} | job
    with pytest.raises(UserError) as refused:
        episode_of(state(running=[running]), {"first": 4}, OF)
    assert str(refused.value) == said


def test_the_first_of_the_backlog_moves_up_into_a_slot() -> None:
    simulator = Timestep(jobset((0, 1, 1), (0, 2, 1), (0, 3, 1)), cluster(4, slots=2), 10)
    episode = episode_of(state_of(simulator), {"first": 4}, cluster(4, slots=2)).simulator
    episode.step(ONE, np.array([0]))
    assert episode.observe(ONE).duration.tolist() == [[3, 2]]
    assert np.isnan(episode.played(ONE).start).tolist() == [False, True, True]


@pytest.mark.parametrize("started", [9, -(10**6)])  # the simulator counts run times in 16 bits
def test_what_runs_ends_as_the_state_says_when_the_episode_is_played_on(started: int) -> None:
    job = {"id": "r", "started": started, "duration": 12 - started, "demand": {"first": 3}}
    episode = episode_of(state(running=[job]), {"first": 4}, OF).simulator
    for _ in range(2):  # void: the job that runs ends at 12
        episode.step(ONE, np.array([OF.slots]))
    assert (episode.now.tolist(), episode.observe(ONE).free[0, 0, :, 0].tolist()) == ([12], [4, 4, 4, 4, 4])
    assert episode.played(ONE).finish[0] == 12
