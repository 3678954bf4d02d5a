"""What of DeepRM3's rows must go together, refused in one line."""

import copy
from functools import cache
from typing import Any

import pytest
from builders import REPOSITORY
from ruamel.yaml import YAML

from pipeline.config import Params, check_params
from pipeline.errors import UserError
from pipeline.problems.pool.checks import check_teachers
from pipeline.problems.pool.heuristics.scores import HEURISTICS
from pipeline.problems.pool.heuristics.teachers import TEACHERS
from pipeline.problems.pool.workload.synthetic import check_synthetic

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
    more = YAML(typ="safe").load(REPOSITORY / "tests" / "support" / "gradient.yaml")
    return loaded | {name: loaded[name] | rows for name, rows in more.items()}


def changed(**places: Any) -> dict[str, Any]:
    """The file with other values; `__` stands between the keys of a place."""
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
    check_teachers(params)
    check_synthetic(params)
    return params


def refusal(**places: Any) -> str:
    with pytest.raises(UserError) as caught:
        checked(changed(**places))
    line = str(caught.value)
    assert "\n" not in line
    return line.removeprefix("params.yaml: ")


WRONG: list[tuple[str, Any, str]] = [
    (
        "agents__gradient__pretrain",
        CLONE,
        "agents.gradient.pretrain.name: expected none or imitate for a network 'sets', got 'clone'",
    ),
    (
        "agents__gradient__network",
        MLP,
        "agents.gradient.pretrain.name: expected none or clone for a network 'mlp', got 'imitate'",
    ),
    (
        "agents__deeprm__network",
        {"name": "sets", "hidden": 32, "elapsed": False},
        "agents.deeprm.finetune.name: expected mixture for a network 'sets', got 'reinforce'",
    ),
    (
        "recipes__gradient__masked",
        False,
        "recipes.gradient.masked: expected true for the mixture of agent 'gradient', got false",
    ),
    (
        "recipes__gradient__optimizer",
        "rmsprop",
        "recipes.gradient.optimizer: expected adam for the mixture of agent 'gradient', got rmsprop",
    ),
    (
        "recipes__gradient__minibatches",
        2,
        "recipes.gradient.minibatches: expected 1 for the mixture of agent 'gradient', got 2",
    ),
    (
        "recipes__ours__baseline",
        "time",
        "recipes.ours.baseline: expected decision or leave_one_out for the reinforce of agent 'deeprm', got time",
    ),
    (
        "scenarios__online__place_ahead",
        "agent",
        "scenarios.online.place_ahead: expected true, false or agents, got 'agent'",
    ),
    (
        "recipes__ours__annealed",
        True,
        "recipes.ours.annealed: expected false for the reinforce of agent 'deeprm', got true",
    ),
    (
        "recipes__ours__near",
        0.5,
        "recipes.ours.near: expected 0 for the reinforce of agent 'deeprm', got 0.5",
    ),
    (
        "recipes__ours__falling",
        True,
        "recipes.ours.falling: expected false for the reinforce of agent 'deeprm', got true",
    ),
    (
        "recipes__gradient__play",
        "luck",
        "recipes.gradient.play: expected 'greedy' or 'sampled', got 'luck'",
    ),
    (
        "agents__gradient__finetune__loads",
        [60],
        "agents.gradient.finetune.loads: 60 is not a load of scenario 'online'",
    ),
    (
        "agents__gradient__finetune__episodes",
        1,
        "agents.gradient.finetune.episodes: expected greater than or equal to 2, got 1",
    ),
    (
        "agents__gradient__network__hidden",
        20,
        "agents.gradient.network.hidden: expected a multiple of 8, got 20",
    ),
]


@pytest.mark.parametrize(("place", "value", "said"), WRONG)
def test_what_does_not_go_together_is_refused(place: str, value: Any, said: str) -> None:
    assert refusal(**{place: value}) == said


def test_something_must_be_played() -> None:
    assert refusal(agents__gradient__finetune__jobsets=0, agents__gradient__finetune__streams=None) == (
        "agents.gradient.finetune: expected jobsets above 0, or streams; got neither"
    )
    checked(changed(agents__gradient__finetune__jobsets=0))
    checked(changed(agents__gradient__finetune__streams=None))


def test_a_value_network_is_the_baseline_of_reinforce_alone_and_only_where_it_is_asked_for() -> None:
    value = {"hidden": 20, "learning_rate": 0.003, "steps": 16}
    for given in ({"recipes__ours__baseline": "value"}, {"recipes__ours__value": value}):
        baseline = given.get("recipes__ours__baseline", "leave_one_out")
        assert refusal(**given) == (
            f"recipes.ours: value: expected with baseline value, and with no other; got baseline {baseline}"
        )
    checked(changed(recipes__ours__baseline="value", recipes__ours__value=value))
    assert refusal(recipes__gradient__baseline="value", recipes__gradient__value=value) == (
        "recipes.gradient.baseline: expected decision or leave_one_out for the mixture of agent 'gradient', got value"
    )


@pytest.mark.parametrize("baseline", ["decision", "time", "leave_one_out"])
@pytest.mark.parametrize("play", ["greedy", "sampled"])
def test_a_mixture_has_every_baseline_and_play(baseline: str, play: str) -> None:
    recipe = checked(changed(recipes__gradient__baseline=baseline, recipes__gradient__play=play)).pool_recipe(
        "gradient"
    )
    assert (recipe.baseline, recipe.play) == (baseline, play)


def test_streams_may_have_loads_that_the_scenario_has_not() -> None:
    own = {
        "agents__gradient__finetune__streams__loads": [57],
        "agents__gradient__finetune__streams__left_by_load": [1.0],
    }
    params = checked(changed(**own, agents__gradient__pretrain__streams=None))
    assert 57 not in params.pool_scenario("online").loads


def test_what_is_left_counts_at_every_load_or_alike() -> None:
    said = refusal(agents__gradient__finetune__streams__left_by_load=[1.0, 2.0])
    assert said == "agents.gradient.finetune.streams: left_by_load: expected 6 numbers, as `loads` has, got 2"
    checked(changed(agents__gradient__finetune__streams__left_by_load=None))


def test_demands_are_mixed_from_those_there_are() -> None:
    assert refusal(agents__gradient__finetune__demands=["code", "wild"]) == (
        "agents.gradient.finetune.demands: unknown 'wild'; there are: code, text, wide; did you mean 'wide'?"
    )
    assert (
        refusal(agents__gradient__finetune__demands=[])
        == "agents.gradient.finetune.demands: expected at least 1, got []"
    )
    checked(changed(agents__gradient__finetune__demands=["text"]))
    checked(changed(agents__gradient__finetune__demands=None))


def test_every_demand_of_a_mix_can_be_drawn() -> None:
    tiny = {"dominant": [0.01, 0.02], "other": [0.01, 0.02]}
    assert refusal(demands__tiny=tiny, agents__gradient__finetune__demands=["code", "tiny"]) == (
        "agents.gradient.finetune: demand 'tiny': no whole unit lies within 0.01-0.02 of 10 units; give more units"
    )


def test_a_network_may_start_untaught() -> None:
    assert checked(changed(agents__gradient__pretrain={"name": "none"})).agent("gradient").pretrain.name == "none"


def test_teachers_must_be_heuristics() -> None:
    said = refusal(agents__gradient__pretrain__teachers=["sjf", "sfj"])
    assert said.startswith("agents.gradient.pretrain.teachers: unknown 'sfj'; there are: easy, ")
    assert said.endswith("did you mean 'sjf'?")


def test_teachers_of_whole_jobsets_must_have_a_compiled_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TEACHERS, "slow", HEURISTICS["sjf"])
    said = refusal(agents__gradient__pretrain__teachers=["sjf", "slow"])
    assert said.startswith("agents.gradient.pretrain.teachers: unknown 'slow'; there are: easy, ")
    checked(changed(agents__deeprm2__pretrain__teacher="slow"))  # plain cloning asks it move by move


@pytest.mark.parametrize("stall", [0, 7])
def test_a_stall_is_kept_in_what_is_written_of_a_scenario_and_when_its_cluster_is_changed(stall: int) -> None:
    scenario = checked(changed(scenarios__online__stall=stall)).pool_scenario("online")
    assert scenario.model_dump()["stall"] == stall
    assert scenario.changed(capacity=5, slots=None, horizon=None).stall == stall


def test_without_a_stall_of_its_own_nothing_is_written_of_it() -> None:
    assert "stall" not in checked(raw()).pool_scenario("offline").model_dump()
