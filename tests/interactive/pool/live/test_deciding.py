"""A decision starts what the simulator would start, and a policy refuses what it does not know."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import ONLY, cluster, random_jobset
from live_pool import in_order, state_of, units_of

from pipeline.core import storage
from pipeline.core.config import Params
from pipeline.errors import UserError
from pipeline.interactive.live.deciding import MOST_STARTS, Decider, LivePolicy, RefusedError, heuristic
from pipeline.interactive.pool.live.deciding import decider, episode_of, worded
from pipeline.interactive.pool.live.state import PoolState
from pipeline.interactive.pool.policies import policy_by_name
from pipeline.learning.stored import weights_of
from pipeline.problems import problem_of
from pipeline.problems.pool.agents.networks.networks import build, card_of, cluster_of
from pipeline.problems.pool.env.nouns import Cluster
from pipeline.problems.pool.heuristics.scores import HEURISTICS
from tests.oracles.pool import Timestep


@pytest.mark.parametrize("ahead", [False, True])
@pytest.mark.parametrize("name", ["sjf", "hold", "easy", "linear"])
def test_what_is_started_is_what_the_simulator_starts(ahead: bool, name: str) -> None:
    rng, looked = np.random.default_rng(1), 0
    for _ in range(4):
        of = cluster(6, 4, horizon=6, slots=4, ahead=ahead)
        simulator = Timestep(random_jobset(rng, of, 15, 12), of, step_limit=100)
        read = partial(episode_of, own=units_of(of), cluster=of)
        decide = Decider(read, heuristic(HEURISTICS[name]), worded, rng)
        while not simulator.done:
            in_order(simulator)
            found, then, before = decide(state_of(simulator)), simulator.now, list(simulator.start)
            while not simulator.done and simulator.now == then:
                simulator.step(ONLY, HEURISTICS[name](simulator.observe(ONLY), np.zeros(1)))
            new = {f"job {j}": at for j, at in enumerate(simulator.start) if at >= 0 and before[j] < 0}
            assert {start.job: start.at for start in found.starts} == new
            looked += bool(new)
    assert looked > 20


def asked(params: Params, **changes: Any) -> PoolState:
    told: Mapping[str, Any] = problem_of(params, "online").live.example(params, "online")
    return PoolState.model_validate({**told, **changes})


def test_sjf_starts_the_shorter_job_first(params: Params) -> None:
    found = decider(params, "online", "sjf", {})(asked(params))
    assert [(job.job, job.score) for job in found.order] == [("18", -1.0), ("17", -2.0)]
    assert [(start.job, start.at) for start in found.starts] == [("18", 12)]


def test_knobs_are_those_that_were_tuned(params: Params) -> None:
    long = decider(params, "online", "hold", {"hold": 2.0})(asked(params))
    assert [job.score for job in long.order][1:] == [None]  # "17" runs for 2 steps: held back while the other waits


def test_sixteen_jobs_start_at_once_and_then_it_is_asked_again(params: Params) -> None:
    jobs = [{"id": f"j{k}", "arrived": 0, "duration": 1, "demand": {}} for k in range(MOST_STARTS + 1)]
    found = decider(params, "online", "sjf", {})(asked(params, waiting=jobs))
    assert (len(found.starts), found.more) == (MOST_STARTS, True)


def test_a_planner_wants_to_know_what_came_so_far(params: Params) -> None:
    decide = decider(params, "online", "plan_sjf", {})
    found = decide(asked(params))
    assert {job.job for job in found.order} == {"17", "18"}
    with pytest.raises(RefusedError, match="expected 'so_far'"):
        decide(asked(params, so_far=None))
    with pytest.raises(RefusedError, match="made for units"):
        decide(asked(params, resources={"cpu": 12, "memory": 10}))


def stored(params: Params, agent: str, folder: Path) -> Path:
    card = card_of(params, agent)
    storage.write_model(folder, storage.Model(card, weights_of(build(card.network, cluster_of(card), seed=1))))
    return folder


@pytest.mark.parametrize("agent", ["deeprm", "deeprm3"])
def test_a_network_chooses_what_it_chooses_in_the_simulator(params: Params, agent: str, tmp_path: Path) -> None:
    folder = str(stored(params, agent, tmp_path / agent))
    decide, row = decider(params, "online", folder, {}), params.pool_scenario("online")
    policy, _ = policy_by_name(folder, row, "online")
    of, rng = Cluster.of(row)._replace(arrivals_end=None), np.random.default_rng(2)
    simulator = Timestep(random_jobset(rng, of, 25, 8), of, step_limit=60)
    knows, looked = replace(decide.policy, check_known=lambda now: None), 0  # the resources have other names here
    decide = replace(decide, policy=knows, from_state=partial(episode_of, own=units_of(of), cluster=of))
    while not simulator.done:
        in_order(simulator)
        found, then, before = decide(state_of(simulator)), simulator.now, list(simulator.start)
        while not simulator.done and simulator.now == then:
            simulator.step(ONLY, policy(simulator.observe(ONLY), np.zeros(1)))
        new = {f"job {j}" for j, at in enumerate(simulator.start) if at >= 0 and before[j] < 0}
        assert {start.job for start in found.starts} == new
        looked += bool(new)
    assert looked


@pytest.mark.parametrize(
    ("agent", "changes", "said"),
    [
        ("deeprm", {"now": 5000, "last_arrival": 11}, "trained for 2000 steps from 0 on; now is 5000"),
        ("deeprm", {"resources": {"cpu": 12, "memory": 10}}, "made for units"),
        ("deeprm", {"resources": {"gpu": 12}, "running": []}, "made for resources cpu, memory; here: gpu"),
        ("deeprm3", {"so_far": None}, "expected 'so_far'"),
    ],
)
def test_a_network_refuses_what_it_never_met(
    params: Params, agent: str, changes: dict[str, Any], said: str, tmp_path: Path
) -> None:
    decide = decider(params, "online", str(stored(params, agent, tmp_path / agent)), {})
    assert decide(asked(params))
    with pytest.raises(RefusedError, match=said):
        decide(asked(params, **changes))


def test_an_action_that_may_not_be_chosen_is_no_answer(params: Params) -> None:
    decide = decider(params, "online", "sjf", {})
    wrong = LivePolicy[Any](lambda view, draws: (np.zeros(10), 7))
    with pytest.raises(RefusedError, match="it chose 7, which may not be chosen"):
        replace(decide, policy=wrong)(asked(params))
    unmasked = replace(decide, policy=replace(wrong, masked=False))
    assert unmasked(asked(params)).starts == ()  # as in the simulator: a step passes


def test_scores_that_are_not_numbers_are_no_answer(params: Params) -> None:
    decide = decider(params, "online", "sjf", {})
    with pytest.raises(RefusedError, match="not numbers"):
        replace(decide, policy=LivePolicy(lambda view, draws: (np.full(10, np.nan), 0)))(asked(params))


def test_an_unknown_policy_is_one_line(params: Params) -> None:
    with pytest.raises(UserError, match=r"^unknown policy 'plan_sjff'"):
        decider(params, "online", "plan_sjff", {})
