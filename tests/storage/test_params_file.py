"""Rows that are put into params.yaml as text."""

from pathlib import Path

import pytest
from builders import REPOSITORY
from ruamel.yaml import YAML

from pipeline.errors import UserError
from pipeline.storage.params_file import add_rows, with_row

ROW = {"problem": "machines", "machines": [{"count": 4, "has": {"cpu": 64.0}}], "loads": [60]}


def test_the_rows_stand_where_they_belong_and_every_other_line_stays(tmp_path: Path) -> None:
    text, path = (REPOSITORY / "params.yaml").read_text(), tmp_path / "params.yaml"
    rows = {
        "scenarios": {"mine": ROW},
        "agents": {"mine_ppo": {"scenario": "mine"}},
        "sites": {"mine": {"today": "fcfs"}},
    }
    add_rows(path, text, rows)
    found = path.read_text()
    added = [line for line in found.splitlines() if line not in text.splitlines()]
    assert added == [
        "  mine:",
        "    machines: [{count: 4, has: {cpu: 64.0}}]",
        "    loads: [60]",
        "  mine_ppo:",
        "    scenario: mine",
        "sites:",
        "  mine:",
        "    today: fcfs",
    ]
    assert [line for line in text.splitlines() if line not in found.splitlines()] == ["sites: {}"]
    loaded = YAML(typ="safe").load(found)
    assert loaded["scenarios"]["mine"] == ROW
    assert list(loaded["scenarios"])[-1] == "mine"


def test_a_name_that_is_there_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    text = (REPOSITORY / "params.yaml").read_text()
    with pytest.raises(UserError, match=r"scenarios\.online is there; choose another name"):
        add_rows(tmp_path / "params.yaml", text, {"scenarios": {"online": ROW}})
    assert not (tmp_path / "params.yaml").exists()


def test_a_section_on_one_line_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="a: is written on one line"):
        add_rows(tmp_path / "params.yaml", "a: {b: {c: 1}}\n", {"a": {"d": {"e": 1}}})
    assert not (tmp_path / "params.yaml").exists()


def test_a_section_that_is_not_there_is_made() -> None:
    assert with_row("a: 1\n", "sites", "mine", {"today": "fcfs"}) == "a: 1\n\nsites:\n  mine:\n    today: fcfs\n"
