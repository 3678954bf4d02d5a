"""A state is seen as the simulator shows it."""

import numpy as np
import pytest
from live_machines import park_like, state_of
from machine_builders import random_problem

from pipeline.core.config import MachinePark
from pipeline.errors import UserError
from pipeline.interactive.live.deciding import ONLY
from pipeline.interactive.machines.live.deciding import episode_of
from pipeline.interactive.machines.live.state import MachinesState
from pipeline.problems.machines.env.nouns import EASY_DYNAMIC, EASY_SHORTEST, GREEDY, Machines


@pytest.mark.parametrize("dispatch", [GREEDY, EASY_DYNAMIC, EASY_SHORTEST])
@pytest.mark.parametrize("seed", range(6))
def test_a_state_shows_what_the_simulator_shows(dispatch: int, seed: int) -> None:
    rng, looked = np.random.default_rng(seed), 0
    for simulator in random_problem(rng, dispatch, 3, whole_times=False).plain():
        while not simulator.done:
            now = episode_of(state_of(simulator), park_like(simulator), simulator.machines)
            found = now.simulator.observe(ONLY)
            for name, mine, its in zip(found._fields, found, simulator.observe(simulator.rows), strict=True):
                np.testing.assert_allclose(mine, its, err_msg=name, atol=1e-9)
            assert now.never == ()
            looked += 1
            legal = np.flatnonzero(found.legal[0].reshape(-1))
            simulator.step(simulator.rows, rng.choice(legal, 1))
    assert looked


PARK = MachinePark(resources=("cpu",), capacity=((4000,),), kind=(0,), kind_names=("",), unit=1.0)
LIKE = Machines(np.array([[4000]]), np.array([0]), slots=1, dispatch=GREEDY, pause=1.0, time_limit=10.0)
WAITS = {"id": "w", "arrived": 5.0, "duration": 2.0, "demand": {"cpu": 3}}


def cluster(**changes: object) -> MachinesState:
    """Two machines of 4 units, a job on the first of them, and one that waits."""
    state: dict[str, object] = {
        "now": 10.0,
        "machines": [{"name": "a", "has": {"cpu": 4}}, {"name": "b", "has": {"cpu": 4}, "kind": "big"}],
        "waiting": [WAITS],
        "running": [{"id": "r", "started": 8.0, "duration": 6.0, "demand": {"cpu": 2}, "machines": ["a"]}],
    }
    return MachinesState.model_validate(state | changes)


def test_what_is_held_comes_back_when_it_is_told_to_end() -> None:
    now = episode_of(cluster(), PARK, LIKE)
    assert now.simulator.observe(ONLY).free[0, :, 0].tolist() == [[2000], [4000]]
    both = episode_of(cluster(waiting=[WAITS | {"nodes": 2}]), PARK, LIKE, ahead=False)
    view = both.simulator.observe(ONLY)
    assert (view.fits_in[0].tolist(), both.fits_at(view, 0)) == ([0.0], 14.0)


def test_a_job_that_overruns_is_told_twice_as_long() -> None:
    late = {"id": "r", "started": 1.0, "duration": 2.0, "demand": {"cpu": 4}, "machines": ["a"]}
    now = episode_of(cluster(running=[late], waiting=[WAITS | {"nodes": 2}]), PARK, LIKE)
    assert now.simulator.observe(ONLY).fits_in.tolist() == [[7.0]]  # 2, 4, 8, then 16 units of time, at 17


def test_a_job_that_no_machine_could_hold_never_starts() -> None:
    wide = [
        {"id": "wide", "arrived": 5.0, "duration": 2.0, "demand": {"cpu": 5}},
        {"id": "two", "arrived": 5.0, "duration": 2.0, "demand": {"cpu": 1}, "nodes": 2, "kinds": ["big"]},
        {"id": "gpu", "arrived": 5.0, "duration": 2.0, "demand": {"gpu": 1}},
    ]
    now = episode_of(cluster(waiting=wide), PARK, LIKE)
    assert (now.never, now.ids) == (("wide", "two", "gpu"), [])


def test_a_state_names_as_many_kinds_of_machines_as_can_be_told_apart() -> None:
    machines = [{"name": str(k), "has": {"cpu": 1}, "kind": str(k)} for k in range(63)]
    jobs = [{**WAITS, "id": str(k), "demand": {"cpu": 1}, "kinds": [str(k)]} for k in range(63)]
    now = episode_of(cluster(machines=machines, waiting=jobs[:62], running=[]), PARK, LIKE._replace(slots=62))
    assert (now.simulator.observe(ONLY).legal[0] == np.eye(62, 63, dtype=bool)).all()
    with pytest.raises(UserError, match=r"^waiting jobs name 63 kinds of machines; expected at most 62$"):
        episode_of(cluster(machines=machines, waiting=jobs, running=[]), PARK, LIKE)


@pytest.mark.parametrize(
    ("job", "said"),
    [
        ({"machines": ["c"]}, "running job 'r': unknown machine 'c'"),
        ({"demand": {"gpu": 1}}, "running job 'r': no machine has any 'gpu'"),
        ({"demand": {"cpu": 5}}, "machine 'a': running jobs hold 5 of cpu; it has 4"),
    ],
)
def test_a_state_that_contradicts_itself_is_refused(job: dict[str, object], said: str) -> None:
    running = {"id": "r", "started": 8.0, "duration": 6.0, "demand": {"cpu": 2}, "machines": ["a"]} | job
    with pytest.raises(UserError) as refused:
        episode_of(cluster(running=[running]), PARK, LIKE)
    assert str(refused.value) == said
