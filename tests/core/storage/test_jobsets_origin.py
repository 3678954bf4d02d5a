"""Origins of outputs: a record that changes with the rows and the log that they depend on, and with no others."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline.core.config import Params
from pipeline.core.storage import jobsets_folder, scenario_log, write_compared, write_origin
from pipeline.core.storage.jobsets import COMPARED, ORIGIN


@pytest.fixture(autouse=True)
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def origin(params: Params, scenario: str) -> bytes:
    write_origin(params, scenario)
    return (jobsets_folder(scenario) / ORIGIN).read_bytes()


def with_row(params: Params, section: str, name: str, **values: Any) -> Params:
    rows = getattr(params, section)
    return params.model_copy(update={section: {**rows, name: rows[name].model_copy(update=values)}})


CHANGES: list[tuple[str, Callable[[Params], Params], bool]] = [
    ("the scenario's own row", lambda params: with_row(params, "scenarios", "online", slots=9), True),
    ("a number in its last digit", lambda params: with_row(params, "scenarios", "online", step_limit=2000001), True),
    ("the workload that it shares", lambda params: params.model_copy(
        update={"workload": params.workload.model_copy(update={"short_share": 0.80000001})}), True),
    ("the demand that it names", lambda params: with_row(params, "demands", "code", other=(0.1, 0.3)), True),
    ("the seed", lambda params: params.model_copy(update={"seed": 2}), True),
    ("another scenario", lambda params: with_row(params, "scenarios", "offline", slots=9), False),
    ("a demand that it does not name", lambda params: with_row(params, "demands", "wide", other=(0.1, 0.3)), False),
]  # fmt: skip


@pytest.mark.parametrize(("change", "differs"), [case[1:] for case in CHANGES], ids=[case[0] for case in CHANGES])
def test_the_record_changes_with_what_jobsets_depend_on(
    params: Params, change: Callable[[Params], Params], differs: bool
) -> None:
    before = origin(params, "online")
    assert (origin(change(params), "online") != before) == differs


def test_a_pooled_workload_is_no_matter_of_other_problems(params: Params) -> None:
    before = origin(params, "machines")
    other = params.model_copy(update={"workload": params.workload.model_copy(update={"short_share": 0.5})})
    assert origin(other, "machines") == before


def test_the_record_changes_with_the_content_of_the_log(params: Params) -> None:
    log = scenario_log("machines") / "log"
    log.parent.mkdir(parents=True)
    log.write_text("1\n")
    before = origin(params, "machines")
    log.write_text("2\n")
    assert origin(params, "machines") != before


def test_the_record_of_a_comparison_has_the_rows_of_all_that_is_compared(params: Params) -> None:
    write_compared(params)
    found = json.loads(COMPARED.read_text())
    assert set(found) == {"seed", "workload", "evaluation", "scenarios", "agents", "transfers", "plans"}
    assert list(found["agents"]) == list(params.agents)
