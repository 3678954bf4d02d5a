"""Rows for many machines in params.yaml: their valid values, and the agents that fit them."""

import copy
from typing import Any

import pytest
from machine_rows import AGENT, DAGGER_RECIPE, LOG, PPO_RECIPE, few, rows

from pipeline.core.config import GroupsScenario, MachinesScenario, PoolScenario, check_params, load_params
from pipeline.errors import UserError
from pipeline.problems.machines.heuristics.rules import HEURISTICS, check_names

GONE = object()


def with_agent() -> dict[str, Any]:
    values = rows()
    values["recipes"] |= {"clipped": PPO_RECIPE, "taught": DAGGER_RECIPE}
    values["agents"]["mine"] = copy.deepcopy(AGENT)
    return values


def changed(values: dict[str, Any], place: str, value: Any) -> dict[str, Any]:
    *way, last = place.split(".")
    at: Any = values
    for key in way:
        at = at[int(key)] if isinstance(at, list) else at[key]
    if value is GONE:
        del at[last]
    else:
        at[last] = value
    return values


def refusal(values: dict[str, Any]) -> str:
    with pytest.raises(UserError) as caught:
        check_params(values, "params.yaml")
    said = str(caught.value)
    assert "\n" not in said
    return said.removeprefix("params.yaml: ")


def test_params_yaml_has_scenarios_of_every_problem() -> None:
    params = load_params()
    kinds = [params.scenarios_of(kind) for kind in (PoolScenario, MachinesScenario, GroupsScenario)]
    assert sorted(name for kind in kinds for name in kind) == sorted(params.scenarios)
    assert isinstance(params.pool_scenario("online"), PoolScenario)
    assert isinstance(params.machines_scenario("machines"), MachinesScenario)


def test_a_scenario_of_the_other_problem_is_refused_with_those_there_are() -> None:
    params = few()
    with pytest.raises(
        UserError,
        match=r"^scenario 'few' is of problem machines; of problem pool: offline, online, overload, streams, unkn",
    ):
        params.pool_scenario("few")
    said = r"^scenario 'online' is of problem pool; of problem machines: few, machines, machines_steady$"
    with pytest.raises(UserError, match=said):
        params.machines_scenario("online")


def test_a_recipe_of_the_other_problem_is_refused() -> None:
    params = check_params(with_agent(), "params.yaml")
    assert params.machines_recipe("mine").algorithm == "ppo"
    with pytest.raises(UserError, match="agent 'mine' learns by ppo: it is of problem machines"):
        params.pool_recipe("mine")
    with pytest.raises(UserError, match="agent 'deeprm' learns by reinforce: it is of problem pool"):
        params.machines_recipe("deeprm")


FEW = "scenarios.few"
WRONG: list[tuple[str, Any, str]] = [
    (f"{FEW}.problem", GONE, f"{FEW}.problem: missing key"),
    (f"{FEW}.problem", "turns", f"{FEW}.problem: unknown 'turns'; there are: 'pool', 'machines', 'groups'"),
    (f"{FEW}.horizon", 20, f"{FEW}.horizon: unknown key"),
    (f"{FEW}.slots", 0, f"{FEW}.slots: expected greater than 0, got 0"),
    (
        f"{FEW}.dispatch",
        "fair",
        f"{FEW}.dispatch: expected 'greedy', 'blocking', 'easy', 'easy_within', 'easy_dynamic' or 'easy_shortest', "
        "got 'fair'",
    ),
    (
        f"{FEW}.machines",
        [],
        f"{FEW}.machines: expected at least 1, got []",
    ),
    (f"{FEW}.machines.0.count", 0, f"{FEW}.machines.0.count: expected greater than 0, got 0"),
    (f"{FEW}.machines.0.has", GONE, f"{FEW}.machines.0.has: missing key"),
    (f"{FEW}.machines", {"sample": 0}, f"{FEW}.machines.sample: expected greater than 0, got 0"),
    (f"{FEW}.machines", {"samples": 3}, f"{FEW}.machines.samples: unknown key; did you mean 'sample'?"),
    (
        f"{FEW}.machines.0.has",
        {"cpu": 4, "load": 3},
        f"{FEW}.machines.0.has: 'load' is a column of job tables; give the resource another name",
    ),
    (f"{FEW}.workload.name", "logs", f"{FEW}.workload.name: unknown 'logs'; there are: 'tasks', 'log'"),
    (f"{FEW}.workload.median", -1.0, f"{FEW}.workload.median: expected greater than 0, got -1.0"),
    (
        f"{FEW}.machines",
        [{"count": 1, "has": {"cpu": 4, "memory": 8}}, {"count": 1, "has": {"memory": 8, "cpu": 4}}],
        f"{FEW}: machines: expected the same resources in one order, got ['cpu', 'memory'] and ['memory', 'cpu']",
    ),
    (
        f"{FEW}.workload.demand",
        {"cpu": [1]},
        f"{FEW}: workload.demand: expected the machines' resources ['cpu', 'memory'], got ['cpu']",
    ),
    (
        f"{FEW}.workload.demand",
        {"cpu": [1, 5], "memory": [1]},
        f"{FEW}: workload.demand: no machine can hold {{'cpu': 5.0, 'memory': 1.0}}, which a job may ask for",
    ),
    (
        f"{FEW}.workload.measured",
        [3, 3],
        f"{FEW}.workload: measured: expected [first, after] with first < after < jobs ",
    ),
    (f"{FEW}.workload.measured", [0, 1_000_000], f"{FEW}.workload: measured: expected [first, after] with"),
    ("recipes.evolution.algorithm", "cem", "recipes.evolution.algorithm: unknown 'cem'; there are: 'reinforce', "),
    ("agents.machines_evolved.finetune.name", "cem", "agents.machines_evolved.finetune.name: unknown 'cem'; there are"),
    (
        "agents.machines_evolved.network",
        {"name": "deepsets", "hidden": 8},
        "agents.machines_evolved.network.name: expected linear for evolution, got 'deepsets'",
    ),
    (
        "agents.machines_evolved.finetune.jobsets",
        5,
        "agents.machines_evolved.finetune.jobsets: expected as many of each of 2 loads, got 5",
    ),
    (f"{FEW}.policies_know", "estimates", f"{FEW}: policies_know: only a log has estimates; expected durations"),
    (f"{FEW}.policies_know", "predictions", f"{FEW}: policies_know: only a log has predictions; expected durations"),
    (
        f"{FEW}.machines",
        {"sample": 3},
        f"{FEW}: machines.sample needs a log that has a file of machines (workload.nodes)",
    ),
    (
        f"{FEW}.workload",
        LOG | {"train_share": 0.8, "validation_share": 0.2},
        f"{FEW}.workload: expected train_share + validation_share below 1, so that a test period is left",
    ),
    (f"{FEW}.workload", LOG | {"first_s": -1}, f"{FEW}.workload.first_s: expected greater than or equal to 0, got -1"),
    (
        "heuristics.machines.mixes",
        [[0.5, 0.6]],
        "heuristics.machines.mixes.0: expected packing + fairness at most 1, got [0.5, 0.6]; shortness has the rest",
    ),
    ("recipes.ours.algorithm", GONE, "recipes.ours.algorithm: missing key"),
    ("recipes.ours.algorithm", "ppo", "recipes.ours.jobsets: unknown key"),
]


@pytest.mark.parametrize(("place", "value", "said"), WRONG)
def test_a_wrong_value_is_refused_in_one_line(place: str, value: Any, said: str) -> None:
    assert refusal(changed(rows(), place, value)).startswith(said)


DO_NOT_GO: list[tuple[dict[str, Any], str]] = [
    (
        {"agents.mine.network": {"name": "mlp", "hidden": 20, "clock": False}},
        "agents.mine.network.name: unknown 'mlp'; there are: 'vector', 'deepsets', 'linear'",
    ),
    (
        {"agents.mine.objective": "makespan"},
        "agents.mine.objective: expected 'slowdown', 'bounded_slowdown' or 'completion_time', got 'makespan'",
    ),
    ({"agents.deeprm.objective": "bounded_slowdown"}, "'makespan' or 'utilisation', got 'bounded_slowdown'"),
    (
        {"agents.deeprm.network": AGENT["network"]},
        "agents.deeprm.network.name: unknown 'deepsets'; there are: 'mlp', 'cnn', 'scores'",
    ),
    (
        {"agents.deeprm.scenario": "few"},
        "agents.deeprm.problem: expected machines, as of scenario 'few', got 'pool'",
    ),
    (
        {"agents.mine.scenario": "online"},
        "agents.mine.problem: expected pool, as of scenario 'online', got 'machines'",
    ),
    (
        {"agents.mine.finetune.recipe": "ours"},
        "agents.mine.finetune.recipe: 'ours' is one of reinforce, not of ppo",
    ),
    (
        {"agents.mine.finetune.recipe": "taught"},
        "agents.mine.finetune.recipe: 'taught' is one of dagger, not of ppo",
    ),
    ({"agents.mine.finetune.loads": [80]}, "agents.mine.finetune.loads: 80 is not a load of scenario 'few'"),
    ({"agents.mine.scenario": "fewer"}, "agents.mine.scenario: unknown 'fewer'; there are: "),
]


@pytest.mark.parametrize(("changes", "said"), DO_NOT_GO)
def test_an_agent_that_its_scenario_does_not_go_with_is_refused(changes: dict[str, Any], said: str) -> None:
    values = with_agent()
    for place, value in changes.items():
        changed(values, place, value)
    assert said in refusal(values)


def test_a_teacher_must_be_one_of_the_heuristics_on_many_machines() -> None:
    values = with_agent()
    finetune = {key: value for key, value in AGENT["finetune"].items() if key != "episodes"}
    values["agents"]["mine"]["finetune"] = finetune | {"name": "dagger", "recipe": "taught", "teacher": "sjf"}
    check_names(check_params(values, "params.yaml"))
    values["agents"]["mine"]["finetune"]["teacher"] = "hold"
    with pytest.raises(UserError, match=r"agents.mine.finetune.teacher: unknown 'hold'; there are: balanced_alloc"):
        check_names(check_params(values, "params.yaml"))


def test_evolution_is_measured_against_a_heuristic_on_many_machines() -> None:
    values = changed(rows(), "agents.machines_evolved.finetune.base", "hold")
    with pytest.raises(UserError, match=r"agents.machines_evolved.finetune.base: unknown 'hold'; there are: balanced"):
        check_names(check_params(values, "params.yaml"))


@pytest.mark.parametrize("name", sorted(HEURISTICS))
def test_an_agent_may_not_have_the_name_of_a_heuristic(name: str) -> None:
    values = with_agent()
    values["agents"][name] = values["agents"].pop("mine")
    with pytest.raises(UserError, match=f"agents.{name}: '{name}' is the name of another policy"):
        check_names(check_params(values, "params.yaml"))


@pytest.mark.parametrize("dispatch", ["blocking", "easy", "easy_within"])
def test_predictions_are_refused_where_overruns_revise_no_estimate(dispatch: str) -> None:
    said = f"^params.yaml: {FEW}: policies_know: dispatch {dispatch} revises no estimate when a job runs longer than "
    with pytest.raises(UserError, match=said):
        few(workload=LOG, policies_know="predictions", dispatch=dispatch)


@pytest.mark.parametrize("dispatch", ["greedy", "easy_dynamic", "easy_shortest"])
def test_predictions_may_be_made_for_a_log(dispatch: str) -> None:
    row = few(workload=LOG, policies_know="predictions", dispatch=dispatch).machines_scenario("few")
    assert row.policies_know == "predictions"
