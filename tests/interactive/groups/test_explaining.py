"""What is said and written of a controller."""

import shutil
from pathlib import Path

import pandas as pd
import pytest
from group_models import write_controller, write_test_jobsets
from group_rows import shared
from readable import faults

from pipeline.core import storage
from pipeline.errors import UserError
from pipeline.interactive.explaining.explain import ExplainRequest, explain
from pipeline.interactive.groups.explaining import DIFFERENCES, EXPLAINING, ORDERS, OUTCOMES, SHARES, STATES
from pipeline.problems.groups.heuristics.names import RULES
from pipeline.stages.tasks import explain as run

PARAMS = shared()
SCHEMAS = {"differences": DIFFERENCES, "orders": ORDERS, "outcomes": OUTCOMES, "shares": SHARES, "states": STATES}


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a controller and test jobsets, which tests must not change."""
    root = tmp_path_factory.mktemp("prepared")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        write_controller(PARAMS, Path("models/mine/policy"))
        write_test_jobsets(PARAMS)
    return root


@pytest.fixture
def folder(prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(prepared, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return Path("reports/explain/mine")


@pytest.fixture
def not_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write empty files in place of figures, which take most of the time."""
    monkeypatch.setattr("pipeline.interactive.explaining.explain.png", lambda _: b"")


def test_tables_figures_and_lines(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    explain(EXPLAINING, PARAMS, ExplainRequest("mine", jobsets=2))
    tables = {name: storage.read_table(folder / f"{name}.csv", schema) for name, schema in SCHEMAS.items()}
    assert {path.name for path in folder.iterdir()} == {
        *(f"{name}.csv" for name in SCHEMAS),
        "states.png",
        "outcomes.png",
    }
    assert tables["differences"]["load"].tolist() == [60, 120]
    outcomes = tables["outcomes"]
    assert set(outcomes["against"]) == {"proportional"}
    assert outcomes.groupby(["metric", "load"]).size().eq(1).all()
    assert outcomes[outcomes["load"] != "all"]["n"].eq(2).all()  # two jobsets of each load
    said = capsys.readouterr().err
    for line in (
        "mine: in ",
        "the difference depends most on ",
        "queues are served ",
        "mean slowdown ",
        "mean waiting time ",
    ):
        assert f"\n{line}" in said
    assert said.splitlines()[-1].startswith("reports/explain/mine: differences.csv, ")


def test_figures_can_be_read_in_grey(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[str] = []
    monkeypatch.setattr(
        "pipeline.interactive.explaining.explain.png", lambda figure: found.extend(faults(figure)) or b""
    )
    explain(EXPLAINING, PARAMS, ExplainRequest("mine", jobsets=1))
    assert found == []


def test_the_same_agent_is_explained_in_the_same_bytes(folder: Path) -> None:
    found = []
    for _ in range(2):
        explain(EXPLAINING, PARAMS, ExplainRequest("mine", jobsets=1))
        found.append({path.name: path.read_bytes() for path in folder.iterdir()})
    assert found[0] == found[1]


@pytest.mark.usefixtures("not_drawn")
def test_more_jobsets_than_there_are_count_once(folder: Path) -> None:
    explain(EXPLAINING, PARAMS, ExplainRequest("mine", jobsets=50))
    outcomes = pd.read_csv(folder / "outcomes.csv")
    assert outcomes.loc[outcomes["load"] != "all", "n"].eq(3).all()


def test_an_agent_without_a_network_is_told(folder: Path) -> None:
    Path("models/mine/policy/policy.json").unlink()
    with pytest.raises(UserError, match=r"^models/mine/policy: not a model directory"):
        explain(EXPLAINING, PARAMS, ExplainRequest("mine", jobsets=1))


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_is_explained_as_agents_are(
    rule: str, folder: Path, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    if rule != "proportional":  # which never differs; the figures of all others are like the agent's
        request.getfixturevalue("not_drawn")
    run(PARAMS, ExplainRequest(rule, 1, scenario="shared"))
    place = folder.with_name(rule)
    tables = {name: storage.read_table(place / f"{name}.csv", schema) for name, schema in SCHEMAS.items()}
    against = (
        "equal" if rule == "proportional" else "proportional"
    )  # what shares by demand themselves are compared with
    outcomes = tables["outcomes"]
    assert set(outcomes["against"]) == {against}
    assert set(outcomes["policy"]) == {rule}
    assert (tables["differences"]["moved"] == 0).all() == (rule == "proportional")
    assert f"\n{rule}: in " in capsys.readouterr().err


def test_a_tree_is_refused(folder: Path) -> None:
    with pytest.raises(UserError, match=r"^--leaves: not in scenario 'shared': a controller sets shares, for which "):
        explain(EXPLAINING, PARAMS, ExplainRequest("mine", 2, 8))
    assert not folder.exists()
