"""params.yaml: its valid values, and the messages about invalid ones."""

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml
from builders import REPOSITORY
from ruamel.yaml import YAML

from pipeline.core.config import MachinesAgent, Params, PoolAgent, PoolLog, check_params, load_params, repository_root
from pipeline.core.config.pool.scenario import PoolScenario
from pipeline.errors import UserError
from pipeline.problems.pool.env.teachers import TEACHERS
from pipeline.problems.pool.env.workload.synthetic import check_estimates, check_synthetic
from pipeline.problems.pool.heuristics.scores import HEURISTICS, check

PARAMS = REPOSITORY / "params.yaml"
GONE = object()
BERNOULLI = {"name": "bernoulli", "steps": 50}
NAMES = "expected a name of small letters, digits and _, a letter first"

# place in the file, value put there (GONE: the key is removed), message after "params.yaml: "
WRONG_KEYS: list[tuple[str, Any, str]] = [
    ("seeds", 1, "seeds: unknown key"),
    ("agents.deeprm.finetune.update", 3, "agents.deeprm.finetune.update: unknown key"),
    ("scenarios.online.horizons", 3, "scenarios.online.horizons: unknown key"),
    ("agents.deeprm.finetune.updates", GONE, "agents.deeprm.finetune.updates: missing key"),
    ("threads", GONE, "threads: missing key"),
    (
        "agents.deeprm.finetune",
        {"name": "reinforce"},
        "agents.deeprm.finetune.recipe: missing key (and 5 more: python -m pipeline check --all)",
    ),
    ("workload.name", GONE, "workload.name: missing key"),
    ("workload", {"name": "swf"}, "workload.path: missing key"),
    ("workload", {"name": "swf", "path": "a.swf", "short": [1, 3]}, "workload.short: unknown key"),
    ("agents.deeprm.network.channels", [8, 16], "agents.deeprm.network.channels: unknown key"),
    ("workload.short", [1], "workload.short.1: missing key"),
    (
        "scenarios.online.workload",
        {"name": "synthetic", "short": [1, 3], "long": [4, 5], "short_share": 1.0, "noise": 1},
        "scenarios.online.workload.noise: unknown key",
    ),
    ("transfers.streams.from", "deeprm3", "transfers.streams.from: unknown key"),
    ("scenarios.online.told", "estimates", "scenarios.online.told: this key is called 'policies_know' now"),
    ("transfers.streams.agent", GONE, "transfers.streams.agent: missing key"),
]
WRONG_TYPES: list[tuple[str, Any, str]] = [
    (
        "agents.deeprm.finetune.updates",
        "3",
        "agents.deeprm.finetune.updates: expected a valid integer, got '3'",
    ),
    ("agents.deeprm.finetune.updates", 3.0, "agents.deeprm.finetune.updates: expected a valid integer, got 3.0"),
    (
        "agents.deeprm.finetune.updates",
        True,
        "agents.deeprm.finetune.updates: expected a valid integer, got True",
    ),
    (
        "agents.deeprm.finetune.updates",
        None,
        "agents.deeprm.finetune.updates: expected a valid integer, got None",
    ),
    ("recipes.ours.learning_rate", "1e-3", "recipes.ours.learning_rate: expected a valid number, got '1e-3'"),
    ("recipes.ours.masked", "yes", "recipes.ours.masked: expected a valid boolean, got 'yes'"),
    ("recipes.ours.masked", 1, "recipes.ours.masked: expected a valid boolean, got 1"),
    ("scenarios.online.loads", 50, "scenarios.online.loads: expected a valid array, got 50"),
    ("scenarios.online.loads", [10, True], "scenarios.online.loads.1: expected a valid integer, got True"),
    ("workload.short", 3, "workload.short: expected a valid array, got 3"),
    ("workload", {"name": "swf", "path": 3}, "workload.path: expected a valid string, got 3"),
    ("workload", "swf", "workload: expected an object, got 'swf'"),
    ("agents", None, "agents: expected an object, got None"),
]
OUT_OF_RANGE: list[tuple[str, Any, str]] = [
    ("agents.deeprm.finetune.updates", 0, "agents.deeprm.finetune.updates: expected greater than 0, got 0"),
    (
        "agents.deeprm.finetune.episodes",
        1,
        "agents.deeprm.finetune.episodes: expected greater than or equal to 2, got 1",
    ),
    ("recipes.ours.gamma", 1.5, "recipes.ours.gamma: expected less than or equal to 1, got 1.5"),
    ("recipes.ours.clip", 0, "recipes.ours.clip: expected greater than 0, got 0"),
    ("recipes.ours.entropy", float("nan"), "recipes.ours.entropy: expected a finite number, got nan"),
    ("recipes.ours.entropy", float("inf"), "recipes.ours.entropy: expected a finite number, got inf"),
    ("evaluation.confidence", 95, "evaluation.confidence: expected less than 1, got 95"),
    ("evaluation.resamples", 10, "evaluation.resamples: expected greater than or equal to 100, got 10"),
    ("seed", -1, "seed: expected greater than or equal to 0, got -1"),
    ("seed", 2**63, f"seed: expected less than {2**63}, got {2**63}"),
    (
        "agents.deeprm.finetune.seed",
        2**63,
        f"agents.deeprm.finetune.seed: expected less than {2**63}, got {2**63}",
    ),
    (
        "agents.deeprm.pretrain.seed",
        -1,
        "agents.deeprm.pretrain.seed: expected greater than or equal to 0, got -1",
    ),
    ("threads", 0, "threads: expected greater than 0, got 0"),
    ("scenarios.online.horizon", 1, "scenarios.online.horizon: expected greater than 1, got 1"),
    ("scenarios.online.resources.cpu", 0, "scenarios.online.resources.cpu: expected greater than 0, got 0"),
    ("workload.short", [0, 3], "workload.short.0: expected greater than 0, got 0"),
    ("workload.short", [3, 1], "workload.short: expected [low, high] with low <= high, got [3, 1]"),
    ("workload.short_share", 1.2, "workload.short_share: expected less than or equal to 1, got 1.2"),
    ("demands.code.other", [0.2, 0.1], "demands.code.other: expected [low, high] with low <= high, got [0.2, 0.1]"),
    ("demands.code.dominant", [0.5, 1.5], "demands.code.dominant.1: expected less than or equal to 1, got 1.5"),
    ("scenarios.online.loads", [10, 30, 10], "scenarios.online.loads: expected distinct values, got [10, 30, 10]"),
    (
        "agents.deeprm.finetune.loads",
        [110, 110],
        "agents.deeprm.finetune.loads: expected distinct values, got [110, 110]",
    ),
    ("scenarios", {}, "scenarios: expected at least 1, got {}"),
    ("scenarios.offline.slots", 29, "scenarios.offline: arrivals.jobs 30 exceed slots 29 + backlog 0"),
    (
        "scenarios.online.arrivals",
        {"name": "bursts", "steps": 50, "size": 0.5},
        "scenarios.online.arrivals.size: expected greater than or equal to 1, got 0.5",
    ),
    (
        "scenarios.online.arrivals.name",
        "bursts",
        "scenarios.online.arrivals: size: expected the mean number of jobs of a burst, got none",
    ),
    (
        "scenarios.online.arrivals.size",
        2.5,
        "scenarios.online.arrivals: size: expected none, because only bursts have one; got 2.5",
    ),
    (
        "workload",
        {"name": "swf", "path": "a.swf", "train_share": 0.9, "validation_share": 0.1},
        "workload: expected train_share + validation_share below 1, so that a test period is left",
    ),
]


def known_names(section: str) -> str:
    """The names in a section, as an error message lists them."""
    return f"there are: {', '.join(sorted(YAML(typ='safe').load(PARAMS)[section]))}"


SCENARIOS = f"{known_names('scenarios')}; did you mean 'online'?"
DEMANDS = "there are: code, text, wide; did you mean 'code'?"
RECIPES = f"{known_names('recipes')}; did you mean 'ours'?"
UNKNOWN_NAMES: list[tuple[str, Any, str]] = [
    ("agents.deeprm.scenario", "onlin", f"agents.deeprm.scenario: unknown 'onlin'; {SCENARIOS}"),
    (
        "transfers.streams.scenario",
        "stream",
        f"transfers.streams.scenario: unknown 'stream'; {known_names('scenarios')}; did you mean 'streams'?",
    ),
    (
        "transfers.streams.agent",
        "deeprm33",
        f"transfers.streams.agent: unknown 'deeprm33'; {known_names('agents')}; did you mean 'deeprm3'?",
    ),
    ("transfers.To", {}, f"transfers.To: {NAMES}, got 'To' (and 2 more: python -m pipeline check --all)"),
    ("scenarios.online.demand", "cod", f"scenarios.online.demand: unknown 'cod'; {DEMANDS}"),
    ("agents.deeprm.finetune.recipe", "our", f"agents.deeprm.finetune.recipe: unknown 'our'; {RECIPES}"),
    (
        "agents.deeprm.objective",
        "speed",
        "agents.deeprm.objective: expected 'slowdown', 'completion_time', 'makespan' or 'utilisation', got 'speed'",
    ),
    (
        "agents.deeprm.finetune.name",
        "sarsa",
        "agents.deeprm.finetune.name: unknown 'sarsa'; there are: 'reinforce', 'evolution'",
    ),
    ("workload.name", "swff", "workload.name: unknown 'swff'; there are: 'synthetic', 'swf', 'log'"),
    (
        "agents.deeprm.network.name",
        "rnn",
        "agents.deeprm.network.name: unknown 'rnn'; there are: 'mlp', 'cnn', 'scores'",
    ),
    (
        "scenarios.online.arrivals.name",
        "burst",
        "scenarios.online.arrivals.name: unknown 'burst'; there are: 'poisson', 'bernoulli', 'bursts', 'at_once'",
    ),
    ("agents.Deep", {}, f"agents.Deep: {NAMES}, got 'Deep' (and 1 more: python -m pipeline check --all)"),
    ("agents.deep-rm", {}, f"agents.deep-rm: {NAMES}, got 'deep-rm' (and 1 more: python -m pipeline check --all)"),
    ("scenarios.online.resources.CPU", 10, f"scenarios.online.resources.CPU: {NAMES}, got 'CPU'"),
]
PLAN = {
    "problem": "pool",
    "scenario": "online",
    "base": "deeprm3",
    "candidates": 4,
    "futures": 16,
    "ahead": 100,
    "left_job": 4.0,
    "left_work": 2.5,
    "decisions": 4000,
    "min_z": 1.0,
}
ON_MACHINES = {"candidates": 4, "futures": 8, "jobs": 10, "decisions": 4000, "min_z": 1.0}
DO_NOT_FIT: list[tuple[str, Any, str]] = [
    (
        "plans.mine",
        {**PLAN, "scenario": "machines"},
        "plans.mine.scenario: expected problem pool, as the plan is; scenario 'machines' is of problem machines",
    ),
    (
        "plans.mine",
        {**PLAN, "scenario": "onlin"},
        f"plans.mine.scenario: unknown 'onlin'; {known_names('scenarios')}; did you mean 'online'?",
    ),
    (
        "plans.mine",
        {"problem": "machines", "scenario": "online", "base": "saf", **ON_MACHINES},
        "plans.mine.scenario: expected problem machines, as the plan is; scenario 'online' is of problem pool",
    ),
    (
        "plans.mine",
        {"problem": "machines", "scenario": "machines", "base": "saf", **ON_MACHINES, "jobs": 0},
        "plans.mine.jobs: expected greater than 0, got 0",
    ),
    (
        "plans.mine",
        {**PLAN, "problem": "groups"},
        "plans.mine.problem: unknown 'groups'; there are: 'pool', 'machines'",
    ),
    ("plans.mine", {**PLAN, "candidates": 1}, "plans.mine.candidates: expected greater than or equal to 2, got 1"),
    ("plans.mine", {**PLAN, "futures": 0}, "plans.mine.futures: expected greater than or equal to 1, got 0"),
    ("plans.mine", {**PLAN, "seconds": 1}, "plans.mine.seconds: unknown key"),
    ("plans.mine", {**PLAN, "sure": 1.0}, "plans.mine.sure: this key is called 'min_z' now"),
    (
        "transfers.streams.agent",
        "deeprm",
        "transfers.streams.agent: expected one with network scores, which serves any size; 'deeprm' has mlp",
    ),
    (
        "transfers.streams.agent",
        "deepk8s_ppo",
        "transfers.streams.agent: expected problem pool; scenario 'machines' is of problem machines",
    ),
    (
        "transfers.streams.scenario",
        "shares",
        "transfers.streams.scenario: expected problem pool; scenario 'shares' is of problem groups",
    ),
    (
        "transfers.streams.scenario",
        "online",
        "transfers.streams.scenario: expected another one than agent 'deeprm3' is trained on, got 'online'",
    ),
    (
        "transfers.again",
        {"agent": "deeprm3", "scenario": "streams"},
        "transfers.again: expected each agent and scenario once; 'transfers.streams' has the same",
    ),
    ("agents.deeprm.finetune.loads", [110, 60], "agents.deeprm.finetune.loads: 60 is not a load of scenario 'online'"),
    ("agents.deeprm2.pretrain.loads", [100], "agents.deeprm2.pretrain.loads: 100 is not a load of scenario 'online'"),
    (
        "agents.deeprm_off.pretrain.jobsets",
        501,
        "agents.deeprm_off.pretrain.jobsets: 501 need 501 training jobsets of each load; scenario 'offline' has 300",
    ),
    (
        "agents.deeprm2.pretrain.jobsets",  # 1001 over ten loads are 101 for the first
        1001,
        "agents.deeprm2.pretrain.jobsets: 1001 need 101 training jobsets of each load; scenario 'online' has 100",
    ),
    (
        "scenarios.online.arrivals",
        BERNOULLI,
        "scenarios.online.loads: 190 % cannot be reached by bernoulli arrivals, at most one job a step: "
        "the largest reachable load is 184.50 %; use poisson arrivals",
    ),
    (
        "scenarios.online.horizon",
        14,
        "scenarios.online.horizon: expected at least the longest job's 15 steps, got 14",
    ),
    (
        "scenarios.online.resources",
        {"cpu": 4, "memory": 4},
        "scenarios.online: demand 'code': no whole unit lies within 0.1-0.2 of 4 units; give more units",
    ),
]


def raw() -> dict[str, Any]:
    loaded: dict[str, Any] = YAML(typ="safe").load(PARAMS)
    return loaded


def changed(place: str, value: Any) -> dict[str, Any]:
    edited = copy.deepcopy(raw())
    *way, last = place.split(".")
    at = edited
    for key in way:
        at = at[key]
    if value is GONE:
        del at[last]
    else:
        at[last] = value
    return edited


def checked(values: Any) -> Params:
    """Check rows as every command does."""
    params = check_params(values, "params.yaml")
    check_synthetic(params)
    return params


def refusal(values: Any) -> str:
    with pytest.raises(UserError) as caught:
        checked(values)
    line = str(caught.value)
    assert "\n" not in line
    return line.removeprefix("params.yaml: ")


def test_the_repositorys_params_load() -> None:
    params = load_params(PARAMS)
    check_synthetic(params)
    assert params.agent("deeprm").scenario in params.scenarios
    assert params.pool_recipe("deeprm") == params.recipes["ours"]


@pytest.mark.parametrize(("place", "value", "said"), WRONG_KEYS)
def test_a_wrong_key_is_named_with_its_place(place: str, value: Any, said: str) -> None:
    assert refusal(changed(place, value)) == said


@pytest.mark.parametrize(("place", "value", "said"), WRONG_TYPES)
def test_a_value_of_the_wrong_type_is_refused(place: str, value: Any, said: str) -> None:
    assert refusal(changed(place, value)) == said


@pytest.mark.parametrize(("place", "value", "said"), OUT_OF_RANGE)
def test_a_value_out_of_range_is_refused(place: str, value: Any, said: str) -> None:
    assert refusal(changed(place, value)) == said


@pytest.mark.parametrize(("place", "value", "said"), UNKNOWN_NAMES)
def test_a_name_that_nothing_has_is_refused_with_those_there_are(place: str, value: Any, said: str) -> None:
    assert refusal(changed(place, value)) == said


@pytest.mark.parametrize(("place", "value", "said"), DO_NOT_FIT)
def test_sections_that_do_not_fit_each_other_are_refused(place: str, value: Any, said: str) -> None:
    assert refusal(changed(place, value)) == said


@pytest.mark.parametrize("name", ["load", "jobset", "job", "arrival", "duration"])
def test_a_resource_cannot_be_called_as_a_column_of_the_job_table(name: str) -> None:
    found = refusal(changed("scenarios.online.resources", {"cpu": 10, name: 10}))
    assert found.startswith(f"scenarios.online.resources: '{name}' ")


def test_fixed_jobsets_of_a_recipe_must_have_been_generated() -> None:
    values = changed("recipes.ours.jobsets", "fixed")
    values["agents"]["deeprm"]["finetune"]["jobsets"] = 1001
    assert refusal(values) == (
        "agents.deeprm.finetune.jobsets: 1001 need 101 training jobsets of each load; scenario 'online' has 100"
    )
    values["recipes"]["ours"]["jobsets"] = "fresh"
    checked(values)


@pytest.mark.parametrize("name", ["hold", "deeprm_pretrained"])
def test_an_agent_cannot_be_called_as_another_policy(name: str) -> None:
    values = raw()
    values["agents"][name] = copy.deepcopy(values["agents"]["deeprm"])
    with pytest.raises(UserError, match=f"agents.{name}: '{name}' is the name of another policy"):
        check(check_params(values, "params.yaml"))


def test_a_cnn_needs_an_image_that_can_be_halved_twice() -> None:
    values = changed("workload", {"name": "synthetic", "short": [1, 2], "long": [3, 3], "short_share": 0.5})
    values["scenarios"]["online"]["horizon"] = 3
    assert refusal(values) == "scenarios.online.horizon: expected at least 4 for the cnn of agent 'deeprm2', got 3"


def test_fewer_slots_than_jobs_are_no_matter_for_jobs_of_ones_own() -> None:
    found = checked(raw()).pool_scenario("offline").changed(capacity=None, slots=10, horizon=None)
    assert found.slots == 10


def test_a_long_value_is_not_shown_whole() -> None:
    assert len(refusal(changed("seed", raw()["agents"]))) < 200


@pytest.mark.parametrize(
    ("values", "found"), [(None, "nothing"), ([], "a list"), ("text", "'text'"), (3, "3")], ids=str
)
def test_params_must_be_a_mapping(values: Any, found: str) -> None:
    assert refusal(values) == f"expected a mapping of keys to values, found {found}"


def test_every_problem_is_said_where_all_are_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UserError, match=r"^params.yaml: hindsight: missing key$"):
        check_params({"seed": -1}, "params.yaml", every=True)
    said = capsys.readouterr().err.splitlines()
    assert said[0] == "error: params.yaml: seed: expected greater than or equal to 0, got -1"
    assert len(said) == 10


def test_the_first_of_many_problems_is_shown_with_their_number() -> None:
    assert refusal({}) == "seed: missing key (and 10 more: python -m pipeline check --all)"


def test_the_largest_load_of_bernoulli_arrivals_is_accepted() -> None:
    values = changed("scenarios.online.arrivals", BERNOULLI)
    values["scenarios"]["online"]["loads"] = [110, 130, 150, 170, 184]
    for row in values["agents"].values():
        if row["scenario"] == "online":
            row["finetune"] |= {"loads": [110], "jobsets": 15}
            row["pretrain"] |= {"loads": [110], "jobsets": 100} if row["pretrain"]["name"] != "none" else {}
    assert checked(values).pool_scenario("online").loads[-1] == 184


def test_an_agent_is_of_the_problem_of_its_scenario() -> None:
    assert refusal(changed("agents.deeprm.problem", GONE)) == "agents.deeprm.problem: missing key"
    found = refusal(changed("agents.deeprm.problem", "steps"))
    assert found == "agents.deeprm.problem: unknown 'steps'; there are: 'pool', 'machines', 'groups'"
    found = refusal(changed("agents.deeprm.scenario", "machines"))
    assert found == "agents.deeprm.problem: expected machines, as of scenario 'machines', got 'pool'"


def test_rows_are_given_as_those_of_one_problem(params: Params) -> None:
    assert params.agent_of(PoolAgent, "deeprm") == params.agent("deeprm")
    assert "deeprm" not in params.agents_with(MachinesAgent)
    with pytest.raises(UserError, match=r"^agent 'deeprm' is of problem pool, not of machines$"):
        params.agent_of(MachinesAgent, "deeprm")


def test_every_teacher_of_the_repositorys_params_is_a_heuristic() -> None:
    found = {row.pretrain.teacher for row in load_params(PARAMS).agents.values() if row.pretrain.name == "clone"}
    assert found <= set(TEACHERS) <= set(HEURISTICS)


def test_transfers_may_be_left_out_and_then_nothing_says_so() -> None:
    params = checked(changed("transfers", GONE))
    assert params.transfers == {}
    assert "transfers" not in params.model_dump()


def test_a_scenario_has_its_own_agents_and_those_that_are_carried_over_to_it() -> None:
    values = raw()
    values["agents"]["mine"] = copy.deepcopy(values["agents"]["deeprm"])
    values["agents"]["mine"] |= {"scenario": "streams"}
    values["agents"]["mine"]["finetune"]["loads"] = [60]
    assert checked(values).agents_of("streams") == ["mine", "deeprm3"]
    assert checked(values).transfer("streams").agent == "deeprm3"
    with pytest.raises(
        UserError,
        match=r"unknown transfer 'stream'; there are: overload, streams, unknown_load; did you mean 'streams'",
    ):
        checked(values).transfer("stream")


# A scenario's own workload

OWN = {"name": "synthetic", "short": [1, 3], "long": [4, 9], "short_share": 0.5}


def test_a_scenario_without_a_workload_of_its_own_says_nothing_of_it() -> None:
    values = raw()
    values["scenarios"]["offline"]["arrivals"] = {"name": "bursts", "steps": 50, "size": 5.0}
    params = checked(values)
    scenario = params.pool_scenario("online")
    assert params.workload_of(scenario) == params.workload
    assert "workload" not in scenario.model_dump()
    arrivals = {name: set(row.arrivals.model_dump()) for name, row in params.scenarios_of(PoolScenario).items()}
    assert arrivals["online"] == {"name", "steps"}
    assert arrivals["offline"] == {"name", "steps", "size"}


def test_a_scenarios_own_workload_is_kept_when_its_cluster_is_changed() -> None:
    scenario = checked(changed("scenarios.online.workload", OWN)).pool_scenario("online")
    assert scenario.workload is not None
    assert scenario.changed(capacity=20, slots=None, horizon=None).workload == scenario.workload


def test_a_horizon_must_hold_the_longest_job_of_the_scenarios_own_workload() -> None:
    values = changed("scenarios.online.workload", OWN)
    values["scenarios"]["online"]["horizon"] = 9  # jobs of the common workload run up to 15 steps
    checked(values)
    values["scenarios"]["online"]["horizon"] = 8
    assert refusal(values) == "scenarios.online.horizon: expected at least the longest job's 9 steps, got 8"


@pytest.mark.parametrize(("noise", "is_told"), [(0.0, False), (0.4, True)])
def test_estimates_may_come_from_the_scenarios_own_workload(noise: float, is_told: bool) -> None:
    values = changed("scenarios.online.workload", {**OWN, "estimate_noise": noise})
    values["scenarios"]["online"]["policies_know"] = "estimates"
    params = check_params(values, "params.yaml")
    if is_told:
        check_estimates(params)
        return
    with pytest.raises(UserError, match=r"^params\.yaml: scenarios\.online\.policies_know: estimates need a log, or "):
        check_estimates(params)


def test_a_scenarios_own_recipe_holds_where_all_others_have_a_log() -> None:
    values = changed("workload", {"name": "swf", "path": "logs/a.swf.gz"})
    values["scenarios"]["online"]["workload"] = OWN
    params = checked(values)
    assert params.pool_scenario("online").resources == {"cpu": 10, "memory": 10}
    assert params.pool_scenario("offline").resources == {"cpu": 20, "memory": 20}
    values["agents"]["deeprm"]["finetune"]["loads"] = [60]  # an agent may train only at loads of its scenario
    assert refusal(values) == "agents.deeprm.finetune.loads: 60 is not a load of scenario 'online'"


# Files


def written(folder: Path, text: str | bytes) -> Path:
    path = folder / "params.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def file_refusal(path: Path) -> str:
    with pytest.raises(UserError) as caught:
        load_params(path)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "params.yaml"
    assert file_refusal(path) == (
        f"{path}: cannot be read (No such file or directory); run this at the repository's root"
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("seed: [1", "expected ',' or ']'"),
        ("seed: 1: 2", "mapping values are not allowed here"),
        ("seed: 1\nseed: 2\n", 'found duplicate key "seed"'),
    ],
)
def test_what_is_not_yaml_is_refused_in_one_line(tmp_path: Path, text: str, said: str) -> None:
    path = written(tmp_path, text)
    assert file_refusal(path).startswith(f"{path}:{text.count(chr(10)) or 1}: not YAML: {said}")


def test_another_encoding_is_named_by_its_first_byte(tmp_path: Path) -> None:
    path = written(tmp_path, b"\xff\xfe\x00")
    assert file_refusal(path) == f"{path}: expected UTF-8 text, found byte 0xff"


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "")
    assert file_refusal(path) == f"{path}: expected a mapping of keys to values, found nothing"


# YAML 1.1 (PyYAML) reads 1e-3 as text and `on` as true; DVC and this project read YAML 1.2. Both must read the same.


def leaves(value: Any, place: str = "") -> dict[str, tuple[type, Any]]:
    if isinstance(value, dict):
        inner = [leaves(item, f"{place}.{key!r}") for key, item in value.items()]
    elif isinstance(value, list):
        inner = [leaves(item, f"{place}[{k}]") for k, item in enumerate(value)]
    else:
        return {place: (type(value), value)}
    return {name: leaf for part in inner for name, leaf in part.items()}


def test_every_parameter_reads_the_same_under_yaml_1_1_and_1_2() -> None:
    newer, older = leaves(raw()), leaves(yaml.safe_load(PARAMS.read_text()))
    assert len(newer) > 100
    assert newer == older


@pytest.mark.parametrize("text", ["rate: 1e-3", "on: 1", "clock: off", "size: 010", "step: 1:30"])
def test_readers_of_yaml_1_1_and_1_2_do_differ(text: str) -> None:
    assert leaves(YAML(typ="safe").load(text)) != leaves(yaml.safe_load(text))


def test_a_rate_may_be_written_as_1e_3(tmp_path: Path) -> None:
    text = PARAMS.read_text()
    assert "learning_rate: 0.001" in text
    path = written(tmp_path, text.replace("learning_rate: 0.001", "learning_rate: 1e-3"))
    assert load_params(path) == load_params(PARAMS)


# Logs


def test_a_log_needs_no_more_than_its_name_and_path() -> None:
    params = checked(changed("workload", {"name": "swf", "path": "logs/a.swf.gz"}))
    assert params.workload == PoolLog(
        name="swf",
        path="logs/a.swf.gz",
        step_s=3600,
        capacity=20,
        memory_kb=None,
        max_steps=20,
        window=100,
        train_share=0.6,
        validation_share=0.15,
    )
    assert params.pool_scenario("online").resources == {"cpu": 20, "memory": 20}
    assert params.pool_scenario("online").horizon == raw()["scenarios"]["online"]["horizon"]


def test_a_log_without_a_capacity_of_its_own_takes_the_scenarios() -> None:
    params = checked(changed("workload", {"name": "swf", "path": "a.swf", "capacity": None}))
    assert params.pool_scenario("online").resources == {"cpu": 10, "memory": 10}


def test_a_log_has_its_own_load_whatever_the_agents_list() -> None:
    values = changed("workload", {"name": "swf", "path": "a.swf"})
    values["agents"]["deeprm"]["finetune"]["loads"] = [60]
    assert 60 not in checked(values).pool_scenario("online").loads


# Rows by name, and another cluster


def test_an_unknown_name_is_answered_with_those_there_are(params: Params) -> None:
    with pytest.raises(UserError, match=f"^unknown agent 'x'; {known_names('agents')}$"):
        params.agent("x")
    with pytest.raises(UserError, match=f"^unknown scenario 'x'; {known_names('scenarios')}$"):
        params.pool_scenario("x")


def test_a_changed_cluster_keeps_all_else(params: Params) -> None:
    row = params.pool_scenario("online")
    assert row.changed(None, None, None) == row
    found = row.changed(capacity=20, slots=5, horizon=30)
    assert found.resources == {"cpu": 20, "memory": 20}
    assert (found.slots, found.horizon) == (5, 30)
    assert found.model_copy(update={"resources": row.resources, "slots": 10, "horizon": 20}) == row


@pytest.mark.parametrize(
    ("scenario", "change", "said"),
    [
        ("online", {"slots": 0}, "scenario: slots: expected greater than 0, got 0"),
        ("online", {"horizon": 1}, "scenario: horizon: expected greater than 1, got 1"),
        ("online", {"capacity": -3}, "scenario: resources.cpu: expected greater than 0, got -3 (and 1 more)"),
    ],
)
def test_a_cluster_that_cannot_be_is_refused(params: Params, scenario: str, change: dict[str, int], said: str) -> None:
    asked = {"capacity": None, "slots": None, "horizon": None} | change
    with pytest.raises(UserError) as caught:
        params.pool_scenario(scenario).changed(**asked)
    assert str(caught.value) == said


def test_relative_paths_start_at_the_repository_also_in_a_temporary_experiment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DVC_ROOT", raising=False)
    assert repository_root() == tmp_path
    monkeypatch.setenv("DVC_ROOT", "/somewhere")
    assert repository_root() == Path("/somewhere")


def test_there_need_be_no_agents() -> None:
    without = raw() | {"agents": {}, "transfers": {}}
    assert check_params(without, "params.yaml").agents == {}
