"""Names in params.yaml under DVC: no shell executes them, and none removes a file that is not an output."""

import os
from pathlib import Path
from typing import Any

import pytest
from builders import REPOSITORY
from dvc.exceptions import DvcException
from dvc.repo import Repo
from dvc.stage.run import cmd_run
from ruamel.yaml import YAML
from typer.testing import CliRunner

from pipeline.cli import app

HOSTILE = (
    "x$(touch${IFS}pwned)",
    "x; touch pwned",
    "x && touch pwned",
    "x | touch pwned",
    "`touch pwned`",
    "'; touch pwned; '",
    '"; touch pwned; "',
    "'\"; touch pwned; \"'",
    "x\ntouch pwned",
    "x > pwned",
    "--help",
    "-x",
    "../../pwned",
    "\\",
    "*",
    "a b",
)
# A row of each section that has stages, with hostile names; the names in its values are just as hostile.
ROWS = {
    "scenarios": {"problem": "pool"},
    "agents": {"problem": "pool", "scenario": "{}", "finetune": {"recipe": "{}"}},
    "transfers": {"agent": "{}", "scenario": "{}"},
    "plans": {"problem": "pool", "scenario": "{}"},
    "policies": {"problem": "pool", "scenario": "{}"},
    "sites": {"today": "{}"},
}
KINDS = 11  # kinds of stages that have one stage for each row


def filled(row: Any, name: str) -> Any:
    return {key: filled(value, name) for key, value in row.items()} if isinstance(row, dict) else row.format(name)


def laid_out(root: Path, params: dict[str, Any]) -> Repo:
    text = (REPOSITORY / "dvc.yaml").read_text()
    (root / "dvc.yaml").write_text(text)
    with (root / "params.yaml").open("w") as stream:
        YAML().dump(params, stream)
    return Repo.init(str(root), no_scm=True)


@pytest.mark.parametrize("shell", ["/bin/sh", "/bin/bash"])
def test_no_name_of_params_yaml_is_run_by_a_shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shell: str) -> None:
    said = tmp_path / "said"
    (tmp_path / "bin").mkdir()
    stand_in = tmp_path / "bin" / "python"
    stand_in.write_text(f'#!/bin/sh\nprintf "%s\\0" "$#" "$@" >> {said}\n')
    stand_in.chmod(0o755)
    monkeypatch.setenv("PATH", f"{stand_in.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("SHELL", shell)
    root = tmp_path / "root"
    root.mkdir()
    monkeypatch.chdir(root)
    rows = {section: {name: filled(row, name) for name in HOSTILE} for section, row in ROWS.items()}
    wanted = set()
    with laid_out(root, {**rows, "hindsight": {"scenarios": list(HOSTILE)}}) as repo:
        before = sorted(root.iterdir())
        stages = {stage.name: stage for stage in repo.index.stages}  # once, since each look reads dvc.yaml again
        for name in names():
            cmd_run(stages[name])
            wanted.add(name)
        assert sorted(root.iterdir()) == before  # no `pwned`
    words = said.read_text().split("\0")[:-1]
    given, at = [], 0
    while at < len(words):
        count = int(words[at])
        given.append(words[at + 1 : at + 1 + count])
        at += 1 + count
    assert len(given) == KINDS * len(HOSTILE)
    assert {row[-1] for row in given} == wanted
    assert all(row[:2] == ["-m", "pipeline"] and len(row) <= 5 for row in given)


def names() -> list[str]:
    kinds = YAML(typ="safe").load(REPOSITORY / "dvc.yaml")["stages"]
    found = [kind for kind, row in kinds.items() if "foreach" in row]
    assert len(found) == KINDS
    return [f"{kind}@{name}" for kind in found for name in HOSTILE]


@pytest.mark.parametrize("name", HOSTILE)
def test_a_command_takes_the_name_of_its_stage_and_refuses_one_that_is_no_row(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(REPOSITORY)
    said = CliRunner().invoke(app, ["generate", f"generate@{name}"])
    assert str(said.exception).startswith(f"unknown scenario '{name}'; there are:")


@pytest.mark.parametrize(
    ("section", "name"),
    [
        ("scenarios", "../../docs"),
        ("transfers", "../../../docs"),
        ("plans", "../../../../victim"),
        ("policies", "../../../docs"),
        ("sites", "../../docs"),
        ("hindsight", "../../../docs"),
    ],
)
def test_a_repro_refuses_a_name_that_leads_elsewhere_before_dvc_removes_what_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, section: str, name: str
) -> None:
    root = tmp_path / "root"
    for place in (
        "docs",
        "pipeline/core/config",
        "pipeline/core/schemas",
        "pipeline/core/storage",
        "pipeline/stages",
        "data",
    ):
        (root / place).mkdir(parents=True)
    (tmp_path / "victim").mkdir()
    for place in ("pipeline/core/types.py", "pipeline/stages/log.py", "docs/mine", "../victim/mine", "champions.yaml"):
        (root / place).write_text("x")
    (root / "python").write_text("#!/bin/sh\nexit 2\n")  # stands for `log`, which exits with 2 if a name is wrong
    (root / "python").chmod(0o755)
    monkeypatch.setenv("PATH", f"{root}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.chdir(root)
    rows: dict[str, Any] = {**{part: {} for part in ROWS}, "hindsight": {"scenarios": []}}
    if section == "hindsight":
        rows["hindsight"]["scenarios"] = [name]
    else:
        rows[section] = {name: filled(ROWS[section], "elsewhere")}  # none of the rows that it refers to has a stage
    with laid_out(root, rows) as repo, pytest.raises(DvcException):
        repo.reproduce(on_error="keep-going")
    assert (root / "docs/mine").exists()
    assert (tmp_path / "victim/mine").exists()
