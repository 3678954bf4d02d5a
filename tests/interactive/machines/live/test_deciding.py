"""A decision starts what the simulator would start, and a policy refuses what it does not know."""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from live_machines import park_like, state_of
from machine_builders import random_problem

from pipeline.core.config import Params
from pipeline.interactive.live.deciding import MOST_STARTS, Decider, LivePolicy, RefusedError, heuristic
from pipeline.interactive.machines.live.deciding import check_known, decider, episode_of, worded
from pipeline.interactive.machines.live.state import MachinesState
from pipeline.interactive.machines.scheduling import park_of
from pipeline.problems import problem_of
from pipeline.problems.machines.env.nouns import EASY_DYNAMIC, EASY_SHORTEST, GREEDY
from pipeline.problems.machines.heuristics.rules import HEURISTICS


@pytest.mark.parametrize("dispatch", [GREEDY, EASY_DYNAMIC, EASY_SHORTEST])
@pytest.mark.parametrize("whole_times", [True, False])
@pytest.mark.parametrize("seed", range(6))
def test_what_is_started_is_what_the_simulator_starts(dispatch: int, seed: int, whole_times: bool) -> None:
    rng, looked = np.random.default_rng(seed), 0
    sjf = HEURISTICS["sjf"]
    problem = random_problem(rng, dispatch, 3, whole_times)
    for simulator in problem._replace(machines=problem.machines._replace(measured=None)).plain():
        read = partial(episode_of, park=park_like(simulator), like=simulator.machines, ahead=False)
        decide = Decider(read, heuristic(sjf), worded, rng)
        while not simulator.done:
            found, then = decide(state_of(simulator)), simulator.now
            while not simulator.done and simulator.now == then:
                simulator.step(simulator.rows, sjf(simulator.observe(simulator.rows), np.zeros(1)))
            started = {f"job {j}": str(simulator.machine[j]) for j, at in enumerate(simulator.start) if at == then}
            mine = {start.job: start.machines[0] for start in found.starts}
            assert mine.items() <= started.items()
            assert found.more or mine == started
            assert len(mine) <= MOST_STARTS
            looked += 1
    assert looked


def asked(params: Params, **changes: object) -> MachinesState:
    return MachinesState.model_validate({**problem_of(params, "machines").live.example(params, "machines"), **changes})


def saying(decide: Any, scores: Any, action: int) -> Any:
    """A decider whose policy always says the same."""
    return replace(decide, policy=LivePolicy(lambda view, draws: (scores, action)))


def test_sjf_starts_the_shorter_job_first(params: Params) -> None:
    found = decider(params, "machines", "sjf", {})(asked(params))
    assert [job.job for job in found.order] == ["18", "17"]
    assert [(start.job, start.machines) for start in found.starts] == [("18", ("0",)), ("17", ("1",))]


@pytest.mark.parametrize("name", HEURISTICS)
def test_a_heuristic_gives_every_job_a_place_in_the_order(params: Params, name: str) -> None:
    found = decider(params, "machines", name, {})(asked(params))
    assert None not in [job.score for job in found.order]


@pytest.mark.parametrize("dispatch", ["blocking", "easy_within"])
def test_a_job_that_is_held_for_starts_later(params: Params, dispatch: str) -> None:
    row = params.machines_scenario("machines").model_copy(update={"dispatch": dispatch})
    mine = params.model_copy(update={"scenarios": {**params.scenarios, "machines": row}})
    full = {"id": "r", "started": 0, "duration": 200, "demand": {"cpu": 10}, "machines": ["0"]}
    waits = {"id": "w", "arrived": 100, "duration": 1, "demand": {"cpu": 6}, "nodes": 5}
    found = decider(mine, "machines", "fcfs", {})(asked(params, running=[full], waiting=[waits]))
    assert found.starts == ()
    assert found.reserved is not None
    assert (found.reserved.job, found.reserved.at) == ("w", 200.0)


def test_nothing_waits(params: Params) -> None:
    found = decider(params, "machines", "sjf", {})(asked(params, waiting=[]))
    assert (found.order, found.starts, found.never) == ((), (), ())


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"machines": [{"name": "0", "has": {"cpu": 10, "memory": 64}}]}, "trained for 5 machines; here: 1"),
        ({"machines": [{"name": "0", "has": {"cpu": 10, "gpu": 4}}]}, "trained for resources cpu, memory; here: "),
        (
            {"machines": [{"name": str(k), "has": {"cpu": 10, "memory": 64}, "kind": "new"} for k in range(5)]},
            "machine '0' is of a make that it never met",
        ),
        ({"waiting": [{"id": "g", "arrived": 0, "duration": 1, "demand": {"gpu": 1}}]}, "a job asks for 'gpu'"),
    ],
)
def test_a_trained_policy_refuses_what_it_never_met(params: Params, changes: dict[str, object], said: str) -> None:
    decide = decider(params, "machines", "sjf", {})
    state = asked(params, running=[], **changes)
    assert decide(state)
    knows = replace(decide.policy, check_known=partial(check_known, park=park_of(params, "machines")))
    with pytest.raises(RefusedError, match=said):
        replace(decide, policy=knows)(state)


def test_an_action_that_may_not_be_chosen_is_no_answer(params: Params) -> None:
    decide = saying(decider(params, "machines", "sjf", {}), np.zeros(10), 10**6)
    with pytest.raises(RefusedError, match="may not be chosen"):
        decide(asked(params))


def test_scores_that_are_not_numbers_are_no_answer(params: Params) -> None:
    decide = saying(decider(params, "machines", "sjf", {}), np.full(10, np.nan), 0)
    with pytest.raises(RefusedError, match="not numbers"):
        decide(asked(params))
