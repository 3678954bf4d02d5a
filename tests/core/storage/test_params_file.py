"""Rows that are inserted into params.yaml as text."""

import pytest
from builders import REPOSITORY
from ruamel.yaml import YAML

from pipeline.core.storage.params_file import with_row, with_rows
from pipeline.errors import UserError

ROW = {"problem": "machines", "machines": [{"count": 4, "has": {"cpu": 64.0}}], "loads": [60]}


def test_the_rows_stand_where_they_belong_and_every_other_line_stays() -> None:
    text = (REPOSITORY / "params.yaml").read_text()
    rows = {
        "scenarios": {"mine": ROW},
        "agents": {"mine_ppo": {"scenario": "mine"}},
        "sites": {"mine": {"today": "fcfs"}},
    }
    found, said = with_rows("params.yaml", text, rows)
    assert said == ["added scenarios.mine", "added agents.mine_ppo", "added sites.mine"]
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


OURS = """# All of it.
scenarios:
  mine:   # the one in the basement
    slots: 32      # fewer
    loads:  # percent
      - 57
    workload: {path: a.swf, window: 200}
gate:
  fewer: {streams: 24}   # of some
"""


def test_values_change_in_place_and_comments_and_other_values_stay() -> None:
    rows = {
        "scenarios": {"mine": {"slots": 32, "loads": [61], "workload": {"path": "b.swf", "window": 200}}},
        "gate": {"fewer": {"mine": 17}},
    }
    found, said = with_rows("params.yaml", OURS, rows)
    assert (
        found
        == """# All of it.
scenarios:
  mine:   # the one in the basement
    slots: 32      # fewer
    loads: [61]  # percent
    workload: {path: b.swf, window: 200}
gate:
  fewer: {streams: 24, mine: 17}   # of some
"""
    )
    assert said == [
        "changed scenarios.mine.loads: [61], before [57]",
        "changed scenarios.mine.workload.path: b.swf, before a.swf",
        "added gate.fewer.mine: 17",
    ]
    assert with_rows("params.yaml", found, rows) == (found, [])


def test_a_section_on_one_line_is_refused() -> None:
    with pytest.raises(UserError, match="a: is written on one line"):
        with_rows("params.yaml", "a: {b: {c: 1}}\n", {"a": {"d": {"e": 1}}})


def test_rows_that_yaml_would_read_as_others_are_refused() -> None:
    with pytest.raises(UserError, match=r"^params\.yaml: the rows of a could not be put in without another change$"):
        with_rows("params.yaml", "a:\n  b: {c: 1}\n", {"a": {"null": {"e": 1}}})


def test_a_section_that_is_not_there_is_made() -> None:
    assert with_row("a: 1\n", "sites", "mine", {"today": "fcfs"}) == "a: 1\n\nsites:\n  mine:\n    today: fcfs\n"


@pytest.mark.parametrize("name", ["1", "null", "#h", "~", "*", "a,b", "gpu.long"])
@pytest.mark.parametrize("there", ["{old: 1}", "\n      old: 1"], ids=["on one line", "on lines"])
def test_a_name_that_joins_others_is_quoted_where_yaml_needs_it(name: str, there: str) -> None:
    text, _ = with_rows("p", f"sites:\n  here:\n    parts: {there}\n", {"sites": {"here": {"parts": {name: 2}}}})
    assert YAML(typ="safe").load(text) == {"sites": {"here": {"parts": {"old": 1, name: 2}}}}
