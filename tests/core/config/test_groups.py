"""Scenarios of user groups in params.yaml: their valid values, and the agents that fit them."""

import copy
from typing import Any

import pytest
from group_rows import AGENT, LOG, RECIPE, REPLAY, ROW, SINUSOIDAL, rows, shared

from pipeline.core.config import (
    Dqn,
    DqnRecipe,
    GroupsLog,
    GroupsScenario,
    MachinesScenario,
    PoolScenario,
    QNetworkConfig,
    Replay,
    Sinusoidal,
    check_params,
    load_params,
)
from pipeline.errors import UserError
from pipeline.problems.groups.heuristics.names import RULES, check_names

GONE = object()
SHARED, MINE = "scenarios.shared", "agents.mine"


def changed(values: dict[str, Any], place: str, value: Any) -> dict[str, Any]:
    *way, last = place.split(".")
    at: Any = values
    for key in way:
        at = at[int(key)] if isinstance(at, list) else at[key]
    if value is GONE:
        del at[last]
    else:
        at[int(last) if isinstance(at, list) else last] = copy.deepcopy(value)
    return values


def refusal(values: dict[str, Any]) -> str:
    with pytest.raises(UserError) as caught:
        check_params(values, "params.yaml")
    said = str(caught.value)
    assert "\n" not in said
    return said.removeprefix("params.yaml: ")


# What there is


def test_params_yaml_tells_its_scenarios_apart() -> None:
    params = load_params()
    kinds = [params.scenarios_of(kind) for kind in (PoolScenario, MachinesScenario, GroupsScenario)]
    assert sorted(name for kind in kinds for name in kind) == sorted(params.scenarios)
    assert list(params.scenarios_of(GroupsScenario)) == ["shares"]
    assert isinstance(params.groups_scenario("shares"), GroupsScenario)
    assert isinstance(params.groups_recipe("controller"), DqnRecipe)
    assert params.agent("controller").scenario == "shares"


def test_rows_become_what_they_say() -> None:
    params = shared()
    row, agent = params.groups_scenario("shared"), params.agent("mine")
    assert isinstance(row.workload, Sinusoidal)
    assert (row.queues, row.orders) == (("short", "long"), (("short", "long"), ("long", "short")))
    assert row.levels == (0, 0.5, 1, 2)
    assert isinstance(agent.network, QNetworkConfig)
    assert isinstance(agent.pretrain, Replay)
    assert isinstance(agent.finetune, Dqn)
    assert (agent.pretrain.budget, agent.finetune.budget) == (2, 4)  # updates
    assert (agent.pretrain.seed, agent.finetune.seed) == (None, None)


def test_a_log_has_its_defaults() -> None:
    row = shared(workload=LOG, policies_know="estimates").groups_scenario("shared")
    assert isinstance(row.workload, GroupsLog)
    assert row.workload.model_dump() == LOG | {
        "bounds": (10.0,),
        "first_s": 0.0,
        "longest_s": None,
        "train_share": 0.6,
        "validation_share": 0.15,
    }


def test_a_scenario_of_another_problem_is_refused_with_those_there_are() -> None:
    params = shared()
    with pytest.raises(
        UserError,
        match=r"^scenario 'shared' is of problem groups; of problem pool: offline, online, overload, streams, unkn",
    ):
        params.pool_scenario("shared")
    with pytest.raises(
        UserError, match=r"^scenario 'shared' is of problem groups; of problem machines: machines, mach"
    ):
        params.machines_scenario("shared")
    with pytest.raises(UserError, match=r"^scenario 'online' is of problem pool; of problem groups: shared, shares$"):
        params.groups_scenario("online")
    with pytest.raises(
        UserError, match=r"^scenario 'machines' is of problem machines; of problem groups: shared, shares$"
    ):
        params.groups_scenario("machines")
    with pytest.raises(UserError, match=r"unknown scenario 'sharred'; .*did you mean 'shared'\?$"):
        params.groups_scenario("sharred")


def test_where_there_is_none_of_a_problem_the_line_says_so() -> None:
    values = rows()
    values["scenarios"] = {"online": values["scenarios"]["online"]}
    values["agents"] = {"deeprm": values["agents"]["deeprm"]}
    values |= {"transfers": {}, "hindsight": values["hindsight"] | {"scenarios": ["online"]}}
    del values["gate"]  # its rules name a scenario that does not exist here
    with pytest.raises(UserError, match=r"^scenario 'online' is of problem pool; of problem groups: none$"):
        check_params(values, "params.yaml").groups_scenario("online")


def test_a_recipe_of_another_problem_is_refused() -> None:
    params = shared()
    assert params.groups_recipe("mine").batch == RECIPE["batch"]
    for ask in (params.pool_recipe, params.machines_recipe):
        with pytest.raises(UserError, match=r"^agent 'mine' learns by dqn: it is of problem groups$"):
            ask("mine")
    with pytest.raises(UserError, match=r"^agent 'deeprm' learns by reinforce: it is of problem pool$"):
        params.groups_recipe("deeprm")
    with pytest.raises(UserError, match=r"^agent 'deepk8s_ppo' learns by ppo: it is of problem machines$"):
        params.groups_recipe("deepk8s_ppo")


# What a scenario may not hold

ON_LOG = {"workload": LOG, "policies_know": "durations"}
WRONG: list[tuple[str, Any, str]] = [
    ("problem", "group", "problem: unknown 'group'; there are: 'pool', 'machines', 'groups'"),
    ("slots", 10, "slots: unknown key"),
    ("intrval", 5.0, "intrval: unknown key"),
    ("levels", GONE, "levels: missing key"),
    ("resources", {}, "resources: "),
    ("resources.cpu", 0, "resources.cpu: expected greater than 0, got 0"),
    ("resources.cpu", 1.5, "resources.cpu: "),
    ("groups", 1, "groups: expected greater than 1, got 1"),
    ("groups", 1001, "groups: expected less than or equal to 1000, got 1001"),
    ("queues", ["short"], "queues: "),
    ("queues", ["a", "b", "c", "d", "e"], "queues: "),
    ("orders", [], "orders: "),
    ("interval", 0, "interval: expected greater than 0, got 0"),
    ("time_limit", -1, "time_limit: expected greater than 0, got -1"),
    ("borrowing", "sometimes", "borrowing: "),
    ("policies_know", "all", "policies_know: expected 'durations', 'estimates' or 'predictions', got 'all'"),
    ("levels", [0], "levels: "),
    ("levels", [0, 1001], "levels.1: expected less than or equal to 1000, got 1001"),
    ("levels", [-1, 0, 1], "levels.0: expected greater than or equal to 0, got -1"),
    ("levels", [0.25, 0.5, 1], "levels: expected 0 and then rising numbers, got [0.25, 0.5, 1.0]"),
    ("levels", [0, 1, 0.5], "levels: expected 0 and then rising numbers, got [0.0, 1.0, 0.5]"),
    ("levels", [0, 1, 1], "levels: expected 0 and then rising numbers, got [0.0, 1.0, 1.0]"),
    ("workload.name", "swining", "workload.name: unknown 'swining'; there are: 'sinusoidal', 'log'"),
    ("workload.intervals", 0, "workload.intervals: expected greater than 0, got 0"),
    ("workload.swing", 0.5, "workload.swing: this key is called 'amplitude' now"),
    ("workload.amplitude", 1.5, "workload.amplitude: expected less than or equal to 1, got 1.5"),
    ("workload.spread", 0, "workload.spread: expected greater than 0, got 0"),
    ("workload.mixes", [], "workload.mixes: "),
    ("workload.demand.cpu", [0, 1], "workload.demand.cpu.0: expected greater than 0, got 0"),
    ("jobsets.test", 0, "jobsets.test: expected greater than 0, got 0"),
    ("workload", LOG | {"format": 3}, "workload.format: expected a valid string, got 3"),
    ("workload", LOG | {"bounds": []}, "workload.bounds: "),
    ("workload", LOG | {"bounds": [0]}, "workload.bounds.0: expected greater than 0, got 0"),
    (
        "workload",
        {"windows" if name == "window" else name: value for name, value in LOG.items()},
        "workload.windows: unknown key; did you mean 'window'?",
    ),
    (
        "workload",
        LOG | {"train_share": 0.8, "validation_share": 0.2},
        "workload: expected train_share + validation_share below 1, so that a test period is left",
    ),
]


@pytest.mark.parametrize(("place", "value", "said"), WRONG)
def test_a_wrong_value_is_refused_with_its_place(place: str, value: Any, said: str) -> None:
    assert refusal(changed(rows(), f"{SHARED}.{place}", value)).startswith(f"{SHARED}.{said}")


@pytest.mark.parametrize("name", ["load", "jobset", "job", "arrival", "duration", "estimate", "group", "queue"])
def test_no_resource_has_the_name_of_a_column(name: str) -> None:
    said = f"{SHARED}.resources: '{name}' is a column of job tables; give the resource another name"
    assert refusal(changed(rows(), f"{SHARED}.resources", {"cpu": 8, name: 6})) == said


DISAGREE: list[tuple[dict[str, Any], str]] = [
    ({"queues": ["long", "long"]}, "queues: expected distinct names, got ['long', 'long']"),
    (
        {"orders": [["short", "lnog"]]},
        "orders: expected each of the queues ['short', 'long'] once, got ['short', 'lnog']",
    ),
    ({"orders": [["short"]]}, "orders: expected each of the queues ['short', 'long'] once, got ['short']"),
    (
        {"orders": [["short", "long", "short"]]},
        "orders: expected each of the queues ['short', 'long'] once, got ['short', 'long', 'short']",
    ),
    ({"orders": [["long", "short"]] * 2}, "orders: expected distinct orders"),
    ({"groups": 7}, "resources.memory: expected at least a unit for each of 7 groups"),
    ({"policies_know": "estimates"}, "policies_know: only a log has estimates; expected durations"),
    ({"policies_know": "predictions"}, "policies_know: only a log has predictions; expected durations"),
    (
        {"workload": SINUSOIDAL | {"run": {"long": 12.0, "short": 3.0}}},
        "workload.run: expected ['short', 'long'] in this order, got ['long', 'short']",
    ),
    (
        {"workload": SINUSOIDAL | {"run": {"short": 3.0}}},
        "workload.run: expected ['short', 'long'] in this order, got ['short']",
    ),
    (
        {"workload": SINUSOIDAL | {"demand": {"cpu": [1]}}},
        "workload.demand: expected ['cpu', 'memory'] in this order, got ['cpu']",
    ),
    (
        {"workload": SINUSOIDAL | {"mixes": [{"short": 0.5, "longer": 0.5}]}},
        "workload.mixes: expected ['short', 'long'] in this order, got ['short', 'longer']",
    ),
    (
        {"workload": SINUSOIDAL | {"mixes": [{"short": 0.5, "long": 0.5}, {"short": 0.5, "long": 0.4}]}},
        "workload.mixes: expected shares that sum to 1, got {'short': 0.5, 'long': 0.4}",
    ),
    (
        {"workload": SINUSOIDAL | {"demand": {"cpu": [1, 9], "memory": [1]}}},
        "workload.demand.cpu: the cluster has 8, got 9",
    ),
    ({"workload": LOG | {"bounds": [1, 2]}}, "workload.bounds: expected 1 for 2 queues"),
    (
        {"workload": LOG | {"bounds": [2, 2]}, "queues": ["a", "b", "c"], "orders": [["a", "b", "c"]]},
        "workload.bounds: expected rising times, got [2.0, 2.0]",
    ),
]


@pytest.mark.parametrize(("changes", "said"), DISAGREE)
def test_parts_of_a_scenario_that_do_not_agree_are_refused(changes: dict[str, Any], said: str) -> None:
    values = rows()
    values["scenarios"]["shared"] |= copy.deepcopy(changes)
    assert refusal(values) == f"{SHARED}: {said}"


def test_shares_of_a_mix_may_miss_their_sum_by_rounding() -> None:
    mixes = [{"short": 0.1 + 0.2, "long": 0.7}]  # 1.0000000000000002 or 1
    assert shared(workload=SINUSOIDAL | {"mixes": mixes}).groups_scenario("shared").workload.name == "sinusoidal"


# What learns it

RECIPES: list[tuple[str, Any, str]] = [
    ("algorithm", "dqnn", "algorithm: unknown 'dqnn'; there are: "),
    ("gamma", 1, "gamma: expected less than 1, got 1"),
    ("gamma", -0.1, "gamma: expected greater than or equal to 0, got -0.1"),
    ("learning_rate", 0, "learning_rate: expected greater than 0, got 0"),
    ("against", "past", "against: expected 'present', 'nothing' or 'zero', got 'past'"),
    ("bootstrap", "best", "bootstrap: expected 'joint' or 'own', got 'best'"),
    ("batch", 0, "batch: expected greater than 0, got 0"),
    ("memory", 0, "memory: expected greater than 0, got 0"),
    ("target", -1, "target: expected greater than or equal to 0, got -1"),
    ("conservative", -1, "conservative: expected greater than or equal to 0, got -1"),
    ("clip", 0, "clip: expected greater than 0, got 0"),
    ("double", "yes", "double: "),
    ("entropy", 0.1, "entropy: unknown key"),
    ("huber", GONE, "huber: missing key"),
]


@pytest.mark.parametrize(("place", "value", "said"), RECIPES)
def test_a_wrong_value_of_a_recipe_is_refused_with_its_place(place: str, value: Any, said: str) -> None:
    found = refusal(changed(rows(), f"recipes.by_value.{place}", value))
    assert found.startswith(f"recipes.by_value.{said}")


AGENTS: list[tuple[str, Any, str]] = [
    ("objective", "delays", "objective: expected "),
    ("network.hidden", [8], "network.hidden"),
    ("network.hidden", [8, 0], "network.hidden.1: expected greater than 0, got 0"),
    ("network.weights", "own", "network.weights: expected 'shared' or 'per_group', got 'own'"),
    ("pretrain.random", 1.5, "pretrain.random: expected less than or equal to 1, got 1.5"),
    ("pretrain.noise", -0.5, "pretrain.noise: expected greater than or equal to 0, got -0.5"),
    ("pretrain.steps", 0, "pretrain.steps: expected greater than 0, got 0"),
    ("finetune.every", 0, "finetune.every: expected greater than 0, got 0"),
    ("finetune.epsilon", 2, "finetune.epsilon: expected less than or equal to 1, got 2"),
    ("finetune.seed", -1, "finetune.seed: expected greater than or equal to 0, got -1"),
    ("finetune.episodes", 4, "finetune.episodes: unknown key"),
    ("finetune.recipe", "by_valu", "finetune.recipe: unknown 'by_valu'; there are: "),
    ("scenario", "sharde", "scenario: unknown 'sharde'; there are: "),
    ("finetune.loads", [60, 90], "finetune.loads: 90 is not a load of scenario 'shared'"),
    ("pretrain.loads", [90], "pretrain.loads: 90 is not a load of scenario 'shared'"),
    (
        "pretrain.jobsets",
        9,
        "pretrain.jobsets: 9 need 5 training jobsets of each load; scenario 'shared' has 4",
    ),
    ("finetune.recipe", "ours", "finetune.recipe: 'ours' is one of reinforce, not of dqn"),
    ("finetune.recipe", "ppo", "finetune.recipe: 'ppo' is one of ppo, not of dqn"),
]


@pytest.mark.parametrize(("place", "value", "said"), AGENTS)
def test_a_wrong_value_of_an_agent_is_refused_with_its_place(place: str, value: Any, said: str) -> None:
    assert refusal(changed(rows(), f"{MINE}.{place}", value)).startswith(f"{MINE}.{said}")


def test_all_training_jobsets_may_be_replayed_and_more_may_be_drawn_anew() -> None:
    values = changed(rows(), f"{MINE}.pretrain.jobsets", 8)
    assert check_params(changed(values, f"{MINE}.finetune.jobsets", 100), "params.yaml")


NETWORK = {"name": "q_network", "hidden": [8, 8], "weights": "shared"}
POOL_NETWORKS = "there are: 'mlp', 'cnn', 'scores'"
REINFORCE = {
    "name": "reinforce",
    "recipe": "ours",
    "loads": [60],
    "updates": 1,
    "jobsets": 1,
    "every": 1,
    "epsilon": 0.1,
    "validate_every": 1,
}
EVOLVED = {"name": "evolution", "recipe": "evolution", "loads": [60], "updates": 1, "jobsets": 1, "validate_every": 1}
DO_NOT_GO: list[tuple[dict[str, Any], str]] = [
    (
        {f"{MINE}.network": {"name": "worth"}},
        f"{MINE}.network.name: expected q_network for dqn, got 'worth'",
    ),
    ({f"{MINE}.finetune": EVOLVED}, f"{MINE}.network.name: expected worth for evolution, got 'q_network'"),
    (
        {f"{MINE}.finetune": EVOLVED, f"{MINE}.network": {"name": "worth"}},
        f"{MINE}.pretrain.name: expected none for evolution, got 'replay'",
    ),
    (
        {f"{MINE}.network": NETWORK | {"name": "mlp"}},
        f"{MINE}.network.name: unknown 'mlp'; there are: 'q_network', 'worth'",
    ),
    (
        {f"{MINE}.objective": "makespan"},
        f"{MINE}.objective: expected 'delay' or 'slowdown', got 'makespan'",
    ),
    (
        {"agents.deeprm.objective": "delay"},
        "agents.deeprm.objective: expected 'slowdown', 'completion_time', 'makespan' or 'utilisation', got 'delay'",
    ),
    (
        {"agents.deeprm.network": NETWORK},
        f"agents.deeprm.network.name: unknown 'q_network'; {POOL_NETWORKS}",
    ),
    (
        {f"{MINE}.scenario": "online"},
        f"{MINE}.problem: expected pool, as of scenario 'online', got 'groups'",
    ),
    (
        {f"{MINE}.scenario": "machines"},
        f"{MINE}.problem: expected machines, as of scenario 'machines', got 'groups'",
    ),
    (
        {"agents.deeprm.scenario": "shared"},
        "agents.deeprm.problem: expected groups, as of scenario 'shared', got 'pool'",
    ),
    (
        {f"{MINE}.finetune": REINFORCE},
        f"{MINE}.finetune.name: unknown 'reinforce'; there are: 'dqn', 'evolution'",
    ),
    (
        {"agents.deeprm.pretrain": REPLAY},
        "agents.deeprm.pretrain.name: unknown 'replay'; there are: 'none', 'clone'",
    ),
    (
        {"agents.deeprm.finetune": AGENT["finetune"]},
        "agents.deeprm.finetune.name: unknown 'dqn'; there are: 'reinforce', 'evolution'",
    ),
    (
        {"recipes.by_value.memory": 7},
        "recipes.by_value.memory: expected at least 8, twice the parallel jobsets of agent 'mine', got 7",
    ),
]


@pytest.mark.parametrize(("changes", "said"), DO_NOT_GO)
def test_an_agent_that_its_scenario_does_not_go_with_is_refused(changes: dict[str, Any], said: str) -> None:
    values = rows()
    for place, value in changes.items():
        changed(values, place, value)
    assert refusal(values) == said


@pytest.mark.parametrize("pretrain", [{"name": "none"}, REPLAY])
@pytest.mark.parametrize("objective", ["delay", "slowdown"])
def test_what_goes_together_is_taken(pretrain: dict[str, Any], objective: str) -> None:
    values = changed(changed(rows(), f"{MINE}.pretrain", pretrain), f"{MINE}.objective", objective)
    assert check_params(values, "params.yaml").agent("mine").objective == objective
    assert ROW["problem"] == "groups"


# Names


@pytest.mark.parametrize("name", RULES)
def test_a_controller_may_not_have_the_name_of_a_rule(name: str) -> None:
    values = rows()
    values["agents"][name] = values["agents"].pop("mine")
    with pytest.raises(UserError) as caught:
        check_names(check_params(values, "params.yaml"))
    assert str(caught.value) == f"params.yaml: agents.{name}: '{name}' is the name of another policy; choose another"


def test_a_controller_may_not_have_the_name_that_another_is_scored_under() -> None:
    values = rows()
    values["agents"]["mine_own"] = copy.deepcopy(AGENT)
    with pytest.raises(UserError, match=r"^params.yaml: agents.mine_own: 'mine_own' is the name of another policy; "):
        check_names(check_params(values, "params.yaml"))


def test_agents_of_other_scenarios_may_have_those_names() -> None:
    values = rows()
    values["agents"]["fixed"] = values["agents"]["deeprm"]
    params = check_params(values, "params.yaml")
    check_names(params)
    assert params.agent("fixed") == params.agent("deeprm")
