"""`explain`: an agent's files, the same in each run, and its tree by name; or one line that says why not."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from builders import many, observation
from builders import params as read_params
from repositories import SCENARIO

from pipeline.core import storage
from pipeline.core.config import Params
from pipeline.core.types import Observation
from pipeline.errors import UserError
from pipeline.interactive.explaining.explain import ExplainRequest
from pipeline.interactive.explaining.placing import SCHEMAS
from pipeline.interactive.explaining.tree import TreeCard, tree_by_name
from pipeline.learning.stored import weights_of
from pipeline.problems.pool.agents.networks.networks import build, card_of
from pipeline.problems.pool.env.nouns import Cluster
from pipeline.stages import generate
from pipeline.stages.tasks import explain as run
from pipeline.stages.tasks import resolved

FOLDER = Path("reports/explain/deeprm")
TABLES = {name: schema for name, schema in SCHEMAS.items() if name != "machines"}
PICTURES = {"differences", "classes", "effects", "outcomes"}

Command = Callable[..., Any]


def small() -> Params:
    """params.yaml with one small scenario and one agent."""
    params = read_params()
    online = params.pool_scenario("online")
    row = type(online).model_validate(online.model_dump() | SCENARIO | {"loads": [80, 160]})
    settings = params.evaluation.model_copy(update={"resamples": 100})
    agents = {"deeprm": params.agents["deeprm"]}
    return params.model_copy(update={"scenarios": {"online": row}, "agents": agents, "evaluation": settings})


def write_agent(params: Params) -> None:
    """Store an untrained network: its weights are random, but it can be explained like any other."""
    network = build(params.agent("deeprm").network, Cluster.of(params.pool_scenario("online")), seed=1)
    model = storage.Model(card_of(params, "deeprm"), weights_of(network))
    storage.write_model(storage.model_folder("deeprm", "policy"), model)


@pytest.fixture(scope="module")
def explained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which an agent was explained."""
    root = tmp_path_factory.mktemp("explained")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        patch.setenv("PIPELINE_TRACKING", "off")
        params = small()
        generate.run(params, "online")
        write_agent(params)
        run(params, ExplainRequest("deeprm", 2, 6))
    return root


@pytest.fixture
def here(explained: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(explained)
    monkeypatch.setenv("PIPELINE_TRACKING", "off")
    return explained


@pytest.mark.usefixtures("here")
def test_tables_figures_and_the_tree_are_written() -> None:
    expected = {f"{name}.csv" for name in TABLES} | {f"{name}.png" for name in PICTURES} | {"tree.json", "rules.md"}
    assert {path.name for path in FOLDER.iterdir()} == expected
    for name, schema in TABLES.items():
        storage.read_table(FOLDER / f"{name}.csv", schema)
    outcomes = pd.read_csv(FOLDER / "outcomes.csv")
    assert set(outcomes["policy"]) == {"deeprm", "deeprm_tree", "sjf", "hold"}
    assert set(outcomes["n"]) <= {2, 4}  # two jobsets of each load
    card = TreeCard.model_validate_json((FOLDER / "tree.json").read_text())
    assert card.leaves <= 6


@pytest.mark.usefixtures("here")
def test_the_same_bytes_twice() -> None:
    before = {path.name: path.read_bytes() for path in FOLDER.iterdir()}
    run(small(), ExplainRequest("deeprm", 2, 6))
    assert {path.name: path.read_bytes() for path in FOLDER.iterdir()} == before


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("policy", ["sjf", "hold", "linear", "random", "models/deeprm/policy"])
def test_any_policy_is_explained_in_the_scenario_that_is_named(policy: str, capsys: pytest.CaptureFixture[str]) -> None:
    run(small(), ExplainRequest(policy, 1, 4, "online"))
    name = Path(policy).name
    tables = {key: storage.read_table(FOLDER.with_name(name) / f"{key}.csv", it) for key, it in TABLES.items()}
    compared = {name, f"{name}_tree", "sjf", "hold"} - ({"sjf"} if name == "sjf" else set())  # with SJF
    assert set(tables["outcomes"]["policy"]) == compared
    if policy == "sjf":
        assert (tables["differences"]["agrees"] == 1).all()
    assert f"{name}: of " in capsys.readouterr().err


@pytest.mark.usefixtures("here")
def test_an_agent_in_another_scenario_than_its_own_is_a_model_by_its_folder() -> None:
    params = small()
    there = params.model_copy(update={"scenarios": params.scenarios | {"other": params.scenarios["online"]}})
    assert resolved(there, ExplainRequest("models/deeprm", 1, 4, "other")).agent == "models/deeprm"
    assert resolved(there, ExplainRequest("models/deeprm", 1, 4)) == ExplainRequest("deeprm", 1, 4, "online")


def busy() -> Observation:
    return observation(duration=[9, 1, 5], free=[[9, 10], [9, 10]])


@pytest.mark.usefixtures("here")
def test_the_tree_is_a_policy_by_its_name() -> None:
    Path("reports/explain/other").mkdir(parents=True, exist_ok=True)
    shortest = (
        '{"agent": "other", "scenario": "online", "threshold": 0.5, "nodes": [{"chance": 0.5, "feature": "duration", '
        '"at": 3.0, "left": 1, "right": 2}, {"chance": 0.9}, {"chance": 0.1}]}'
    )
    Path("reports/explain/other/tree.json").write_text(shortest)
    assert tree_by_name("other_tree")(many(busy(), 2), np.zeros(2)).tolist() == [1, 1]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (
            None,
            r"policy 'b_tree': reports/explain/b/tree.json is missing: run '.* explain --policy models/b' ",
        ),
        ("{", "reports/explain/b/tree.json: not JSON "),
        ("[]", "reports/explain/b/tree.json: not a tree "),
        ('{"agent": "b", "scenario": "s", "threshold": 2, "nodes": []}', "tree.json: not a tree .threshold: "),
        (
            '{"agent": "b", "scenario": "s", "threshold": 0.5, "nodes": [{"chance": 1, "feature": "age"}]}',
            "not a tree .*node 0: unknown feature 'age'.*run 'python -m pipeline explain --policy models/b' first",
        ),
    ],
)
def test_a_tree_that_is_none_is_refused_in_one_line(
    content: str | None, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if content is not None:
        storage.write(Path("reports/explain/b/tree.json"), content.encode())
    with pytest.raises(UserError, match=said) as error:
        tree_by_name("b_tree")
    assert "\n" not in str(error.value)


def test_jobs_placed_ahead_are_not_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = small()
    online = rows.pool_scenario("online").model_copy(update={"place_ahead": True})
    with pytest.raises(UserError, match="scenario 'online': expected place_ahead: false"):
        run(rows.model_copy(update={"scenarios": {"online": online}}), ExplainRequest("deeprm", 1, 4))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--agent deeprn", "unknown agent 'deeprn'; there are: "),
        ("--agent deeprm", "models/deeprm/policy: not a model directory: "),
        ("--policy sjf", "unknown agent 'sjf'; there are: "),
        ("--policy sjff --scenario online", "unknown policy 'sjff': expected a model directory or a heuristic; "),
        ("--policy sjf --scenario nowhere", "unknown scenario 'nowhere'"),
        (
            "--policy plan_sjf --scenario online",
            "policy 'plan_sjf': a policy with look-ahead needs a row",
        ),
    ],
)
def test_what_cannot_be_explained_is_refused_in_one_line(command: Command, words: str, said: str) -> None:
    outcome = command("explain", *words.split())
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith(f"error: {said}")
    assert outcome.err.count("\n") == 1
