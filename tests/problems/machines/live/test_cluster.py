"""A state is seen as the simulator shows it."""

import numpy as np
import pytest
from live_machines import park_like, state_of
from machine_builders import random_problem

from pipeline.config import MachinePark
from pipeline.errors import UserError
from pipeline.problems.machines.live.cluster import cluster_now, observed
from pipeline.problems.machines.live.state import MachinesState
from pipeline.problems.machines.nouns import EASY_ANEW, EASY_SHORTEST, GREEDY


@pytest.mark.parametrize("dispatch", [GREEDY, EASY_ANEW, EASY_SHORTEST])
@pytest.mark.parametrize("seed", range(6))
def test_a_state_shows_what_the_simulator_shows(dispatch: int, seed: int) -> None:
    rng, looked = np.random.default_rng(seed), 0
    for simulator in random_problem(rng, dispatch, 3, whole_times=False).plain():
        while not simulator.done:
            now, never = cluster_now(state_of(simulator), park_like(simulator))
            found = observed(now, simulator.machines.slots, dispatch, simulator.machines.stall, ahead=True)
            for name, mine, its in zip(found._fields, found, simulator.observe(simulator.rows), strict=True):
                np.testing.assert_allclose(mine, its, err_msg=name, atol=1e-9)
            assert never == ()
            looked += 1
            legal = np.flatnonzero(found.legal[0].reshape(-1))
            simulator.step(simulator.rows, rng.choice(legal, 1))
    assert looked


PARK = MachinePark(resources=("cpu",), capacity=((4000,),), kind=(0,), kind_names=("",), unit=1.0)


def cluster(**changes: object) -> MachinesState:
    """Two machines of 4 units, a job on the first of them, and one that waits."""
    state: dict[str, object] = {
        "now": 10.0,
        "machines": [{"name": "a", "has": {"cpu": 4}}, {"name": "b", "has": {"cpu": 4}, "kind": "big"}],
        "waiting": [{"id": "w", "arrived": 5.0, "duration": 2.0, "demand": {"cpu": 3}}],
        "running": [{"id": "r", "started": 8.0, "duration": 6.0, "demand": {"cpu": 2}, "machines": ["a"]}],
    }
    return MachinesState.model_validate(state | changes)


def test_what_is_held_comes_back_when_it_is_told_to_end() -> None:
    now, _ = cluster_now(cluster(), PARK)
    assert now.free.tolist() == [[2000], [4000]]
    assert now.free_at(np.array([0])).tolist() == [[14.0, 10.0]]


def test_a_job_that_overruns_is_told_twice_as_long() -> None:
    late = {"id": "r", "started": 1.0, "duration": 2.0, "demand": {"cpu": 4}, "machines": ["a"]}
    now, _ = cluster_now(cluster(running=[late]), PARK)
    assert now.back.tolist() == [17.0]  # 2, 4, 8, then 16 units of time


def test_a_job_that_no_machine_could_hold_never_starts() -> None:
    wide = [
        {"id": "wide", "arrived": 5.0, "duration": 2.0, "demand": {"cpu": 5}},
        {"id": "two", "arrived": 5.0, "duration": 2.0, "demand": {"cpu": 1}, "nodes": 2, "kinds": ["big"]},
        {"id": "gpu", "arrived": 5.0, "duration": 2.0, "demand": {"gpu": 1}},
    ]
    now, never = cluster_now(cluster(waiting=wide), PARK)
    assert never == ("wide", "two", "gpu")
    assert len(now.waits) == 0


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
        cluster_now(cluster(running=[running]), PARK)
    assert str(refused.value) == said
