"""Scores put jobs in the order in which heuristics choose them; policies made elsewhere decide for live clusters."""

from pathlib import Path

import numpy as np
import pytest
from builders import cluster, viewed
from elsewhere import POLICIES
from live_machines import park_like, state_of
from machine_builders import random_problem

from pipeline.core.config import Params
from pipeline.external.guard import PolicyError
from pipeline.interactive.live.deciding import ONLY, heuristic
from pipeline.interactive.machines.live.deciding import episode_of
from pipeline.problems import problem_of
from pipeline.problems.machines.env.nouns import EASY_DYNAMIC
from pipeline.problems.machines.heuristics import rules
from pipeline.problems.pool.heuristics.scores import HEURISTICS, KNOBS, heuristics_with
from pipeline.simulation.rollout import Heuristic

SPANS = {f"{rule}{end}": knob for rule in ("hold_until", "hold_long") for end, knob in (("_long", 3.0), ("", 6.0))}
TUNED = {"tetris": 0.3, "hold": 4.0} | SPANS
ORDERED = sorted(set(HEURISTICS) - {"random"}), sorted(set(rules.HEURISTICS) - {"random"})


@pytest.mark.parametrize("name", ORDERED[0])
@pytest.mark.parametrize("tuned", [{}, TUNED])
def test_the_best_scored_job_of_a_pooled_cluster_is_the_one_that_is_chosen(name: str, tuned: dict[str, float]) -> None:
    view = viewed(cluster(6, 4, horizon=6, slots=4), HEURISTICS["sjf"])
    policy = heuristics_with(tuned)[name]
    assert isinstance(policy, Heuristic)
    assert policy.score is not None
    action = policy(view, np.zeros(len(view.now)))
    scores = np.where(view.legal[:, :, 0], policy.score(view), -np.inf)
    chosen = np.flatnonzero(action < 4)
    assert len(chosen) > 5
    assert (scores[chosen, action[chosen]] == scores[chosen].max(axis=1)).all()
    assert np.isneginf(scores[action == 4]).all()


def test_knobs_are_known() -> None:
    assert {*TUNED} - {"hold_until_long", "hold_long_long"} | {"linear"} == {*KNOBS}


@pytest.mark.parametrize("name", ORDERED[1])
def test_the_best_scored_job_of_many_machines_is_the_one_that_is_chosen(name: str) -> None:
    rng, looked = np.random.default_rng(3), 0
    asked = heuristic(rules.HEURISTICS[name]).asked
    for simulator in random_problem(rng, EASY_DYNAMIC, 1, whole_times=False).plain():
        while not simulator.done:
            now = episode_of(state_of(simulator), park_like(simulator), simulator.machines)
            scores, action = asked(now.simulator.observe(ONLY), np.zeros(1))
            mine = scores[: len(now.ids)]
            assert mine[action // len(simulator.machines.kind)] == pytest.approx(mine.max())
            looked += 1
            simulator.step(simulator.rows, np.array([action]))
    assert looked


FILE = "elsewhere_policies.py"


@pytest.mark.parametrize(
    ("scenario", "name", "rule"), [("online", "sjf", "sjf"), ("machines", "sjf", "sjf"), ("shares", "equal", "equal")]
)
def test_it_decides_as_the_same_rule_of_this_project_and_one_that_fails_is_named(
    params: Params, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scenario: str, name: str, rule: str
) -> None:
    (tmp_path / FILE).write_text(POLICIES)
    monkeypatch.chdir(tmp_path)
    live = problem_of(params, scenario).live
    state = live.state.model_validate(live.example(params, scenario))
    ours, theirs = (live.decider(params, scenario, word, {})(state) for word in (rule, f"{FILE}:{name}"))
    assert theirs.model_dump(exclude={"order"}) == ours.model_dump(exclude={"order"})
    if scenario != "shares":
        assert theirs.model_dump()["starts"]
        first = theirs.model_dump()["starts"][0]["job"]
        assert theirs.model_dump()["order"][0]["job"] == first
    with pytest.raises(PolicyError, match=rf"^{FILE}:raising: call 1: raised ValueError: no idea$"):
        live.decider(params, scenario, f"{FILE}:raising", {})(state)
