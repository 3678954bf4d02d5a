"""Values in DeepRM3's rows that must fit together; if they do not, the error is one line."""

import copy
from functools import cache
from typing import Any

import pytest
from builders import REPOSITORY
from ruamel.yaml import YAML

from pipeline.core.config import Params, Recipe, check_params
from pipeline.errors import UserError
from pipeline.problems.pool.env.teachers import TEACHERS
from pipeline.problems.pool.heuristics.scores import HEURISTICS, check

CLONE = {
    "name": "clone",
    "teacher": "sjf",
    "loads": [110],
    "jobsets": 10,
    "epochs": 1,
    "patience": 1,
    "batch": 8,
    "learning_rate": 0.01,
    "entropy": 0.0,
}
MLP = {"name": "mlp", "hidden": 20, "clock": False}


@cache
def raw() -> dict[str, Any]:
    loaded: dict[str, Any] = YAML(typ="safe").load(REPOSITORY / "params.yaml")
    return loaded


def changed(**places: Any) -> dict[str, Any]:
    """Return the file with other values; `__` separates the keys of a place."""
    edited = copy.deepcopy(raw())
    for place, value in places.items():
        *way, last = place.split("__")
        at = edited
        for key in way:
            at = at[key]
        at[last] = value
    return edited


def checked(values: dict[str, Any]) -> Params:
    params = check_params(values, "params.yaml")
    check(params)
    return params


def refusal(**places: Any) -> str:
    with pytest.raises(UserError) as caught:
        checked(changed(**places))
    line = str(caught.value)
    assert "\n" not in line
    return line.removeprefix("params.yaml: ")


WRONG: list[tuple[str, Any, str]] = [
    (
        "agents__deeprm3__pretrain",
        CLONE,
        "agents.deeprm3.pretrain.name: expected none for a network 'scores', got 'clone'",
    ),
    (
        "agents__deeprm3__network",
        MLP,
        "agents.deeprm3.finetune.name: expected reinforce for a network 'mlp', got 'evolution'",
    ),
    (
        "agents__deeprm__network",
        {"name": "scores", "hidden": 0},
        "agents.deeprm.finetune.name: expected evolution for a network 'scores', got 'reinforce'",
    ),
    (
        "agents__deeprm__network",
        {"name": "sets", "hidden": 32, "elapsed": False},
        "agents.deeprm.network.name: unknown 'sets'; there are: 'mlp', 'cnn', 'scores'",
    ),
    (
        "recipes__ours__baseline",
        "time",
        "recipes.ours.baseline: expected 'decision', 'leave_one_out' or 'value', got 'time'",
    ),
    (
        "scenarios__online__place_ahead",
        "agent",
        "scenarios.online.place_ahead: expected true, false or agents, got 'agent'",
    ),
    ("recipes__ours__loads_alike", True, "recipes.ours.loads_alike: this key is called 'equal_loads' now"),
    ("recipes__ours__annealed", True, "recipes.ours.annealed: unknown key"),
    ("recipes__ours__near", 0.5, "recipes.ours.near: unknown key"),
    ("recipes__ours__falling", True, "recipes.ours.falling: unknown key"),
    (
        "recipes__ours__play",
        "luck",
        "recipes.ours.play: expected 'greedy' or 'sampled', got 'luck'",
    ),
    (
        "agents__deeprm__finetune__loads",
        [60],
        "agents.deeprm.finetune.loads: 60 is not a load of scenario 'online'",
    ),
    (
        "agents__deeprm__finetune__episodes",
        1,
        "agents.deeprm.finetune.episodes: expected greater than or equal to 2, got 1",
    ),
]


@pytest.mark.parametrize(("place", "value", "said"), WRONG)
def test_what_does_not_go_together_is_refused(place: str, value: Any, said: str) -> None:
    assert refusal(**{place: value}) == said


def test_a_value_network_is_the_baseline_of_reinforce_alone_and_only_where_it_is_asked_for() -> None:
    value = {"hidden": 20, "learning_rate": 0.003, "steps": 16}
    for given in ({"recipes__ours__baseline": "value"}, {"recipes__ours__value": value}):
        baseline = given.get("recipes__ours__baseline", "leave_one_out")
        assert refusal(**given) == (
            f"recipes.ours: value: expected with baseline value, and with no other; got baseline {baseline}"
        )
    checked(changed(recipes__ours__baseline="value", recipes__ours__value=value))


@pytest.mark.parametrize("baseline", ["decision", "leave_one_out"])
@pytest.mark.parametrize("play", ["greedy", "sampled"])
def test_a_recipe_has_every_baseline_and_play(baseline: str, play: str) -> None:
    recipe = checked(changed(recipes__ours__baseline=baseline, recipes__ours__play=play)).pool_recipe("deeprm")
    assert isinstance(recipe, Recipe)
    assert (recipe.baseline, recipe.play) == (baseline, play)


def test_streams_may_have_loads_that_the_scenario_has_not() -> None:
    params = checked(changed(agents__deeprm3__finetune__streams__loads=[57]))
    assert 57 not in params.pool_scenario("online").loads


def test_demands_are_mixed_from_those_there_are() -> None:
    assert refusal(agents__deeprm3__finetune__demands=["code", "wild"]) == (
        "agents.deeprm3.finetune.demands: unknown 'wild'; there are: code, text, wide; did you mean 'wide'?"
    )
    assert (
        refusal(agents__deeprm3__finetune__demands=[]) == "agents.deeprm3.finetune.demands: expected at least 1, got []"
    )
    checked(changed(agents__deeprm3__finetune__demands=["text"]))
    checked(changed(agents__deeprm3__finetune__demands=None))


def test_every_demand_of_a_mix_can_be_drawn() -> None:
    tiny = {"dominant": [0.01, 0.02], "other": [0.01, 0.02]}
    assert refusal(demands__tiny=tiny, agents__deeprm3__finetune__demands=["code", "tiny"]) == (
        "agents.deeprm3.finetune: demand 'tiny': no whole unit lies within 0.01-0.02 of 10 units; give more units"
    )


def test_a_network_may_start_untaught() -> None:
    assert checked(changed(agents__deeprm2__pretrain={"name": "none"})).agent("deeprm2").pretrain.name == "none"


def test_a_teacher_must_be_a_heuristic() -> None:
    said = refusal(agents__deeprm2__pretrain__teacher="sfj")
    assert said.startswith("agents.deeprm2.pretrain.teacher: unknown 'sfj'; there are: easy, ")
    assert said.endswith("did you mean 'sjf'?")


def test_a_teacher_needs_no_compiled_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TEACHERS, "slow", HEURISTICS["sjf"])
    agent = checked(changed(agents__deeprm2__pretrain__teacher="slow")).agents["deeprm2"]
    assert agent.pretrain.model_dump()["teacher"] == "slow"


@pytest.mark.parametrize("stall", [0, 7])
def test_a_stall_is_kept_in_what_is_written_of_a_scenario_and_when_its_cluster_is_changed(stall: int) -> None:
    scenario = checked(changed(scenarios__online__stall=stall)).pool_scenario("online")
    assert scenario.model_dump()["stall"] == stall
    assert scenario.changed(capacity=5, slots=None, horizon=None).stall == stall


def test_without_a_stall_of_its_own_nothing_is_written_of_it() -> None:
    assert "stall" not in checked(raw()).pool_scenario("offline").model_dump()
