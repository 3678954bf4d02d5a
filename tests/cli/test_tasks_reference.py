"""explain-params on the command line, and the shell completion of its argument."""

import json
from pathlib import Path

import pytest
import typer
from builders import REPOSITORY
from typer.testing import CliRunner

from pipeline.cli import app
from pipeline.cli.base import policies
from pipeline.cli.tasks import places


@pytest.fixture(autouse=True)
def at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPOSITORY)


def test_a_row_is_explained_key_by_key() -> None:
    said = CliRunner().invoke(app, ["explain-params", "agents.deeprm3"], catch_exceptions=False).stdout
    assert said.startswith("agents.deeprm3: One scheduler that is learned for a pooled cluster.\n")
    assert "  objective: slowdown\n    What it is trained for (slowdown or completion_time or makespan" in said


def test_the_schema_is_written_for_editors(tmp_path: Path) -> None:
    out = tmp_path / "schema.json"
    CliRunner().invoke(app, ["explain-params", "--schema", str(out)], catch_exceptions=False)
    assert out.read_text() == (REPOSITORY / "docs" / "params.schema.json").read_text()


def test_a_shell_completes_a_key_at_a_time() -> None:
    assert places("agents.deeprm3.fi") == ["agents.deeprm3.finetune"]
    assert places("se") == ["seed"]
    assert places("nothing.x") == []
    assert json.loads((REPOSITORY / "docs" / "params.schema.json").read_text())["title"] == "Params"


def test_a_shell_completes_policies_of_the_scenario_that_was_named() -> None:
    context = typer.Context(typer.main.get_command(app).commands["schedule"])
    context.params["scenario"] = "online"
    assert policies(context, "hol") == ["hold", "hold_long", "hold_until"]
    assert policies(context, "models/deeprm") == ["models/deeprm", "models/deeprm2", "models/deeprm3"]
    assert policies(context, "models/controller") == []


def test_a_schema_is_not_written_over_a_file_of_another_kind(tmp_path: Path) -> None:
    there = tmp_path / "params.yaml"
    there.write_text("seed: 1\n")
    done = CliRunner().invoke(app, ["explain-params", "--schema", str(there)])
    assert str(done.exception) == f"{there}: expected a name that ends in .json"
    assert there.read_text() == "seed: 1\n"
