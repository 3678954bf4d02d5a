"""`compile`: what it plays, and that stages find everything compiled behind it."""

from pathlib import Path

import pytest
from repositories import begin

from pipeline.config import Params, smallest
from pipeline.config.smallest import AT_MOST
from pipeline.stages.compiling import Step, parts, play


def test_the_smallest_problem_has_the_same_rows_and_less_to_do(params: Params) -> None:
    small = smallest(params)
    assert small.threads == 1
    assert {name: row.network for name, row in small.agents.items()} == {
        name: row.network for name, row in params.agents.items()
    }
    for name, row in small.scenarios.items():
        big = params.scenarios[name]
        assert row.model_copy(update={"jobsets": big.jobsets}) == big
        assert (row.jobsets.validation, row.jobsets.test) == (AT_MOST["validation"], AT_MOST["test"])
    budgets = {row.pretrain.budget for row in small.agents.values()} | {
        row.finetune.budget for row in small.agents.values()
    }
    assert budgets == {1}


def test_what_is_smaller_already_stays(params: Params) -> None:
    one = params.hindsight.model_copy(update={"jobsets": 1, "limit": 0.0005})
    assert smallest(params.model_copy(update={"hindsight": one})).hindsight == one


def test_every_stage_that_computes_is_played_and_the_longest_parts_begin(params: Params) -> None:
    found = parts(params)
    steps = [step for part in found for step in part]
    for stage, names in (
        ("pretrain", params.agents),
        ("finetune", params.agents),
        ("evaluate", params.agents),
        ("transfer", params.transfers),
        ("heuristics", params.scenarios),
        ("hindsight", params.hindsight.scenarios),
    ):
        assert {step.subject for step in steps if step.stage == stage} == set(names), stage
    assert [len(part) for part in found] == sorted((len(part) for part in found), reverse=True)


def test_a_part_that_cannot_be_played_is_named(params: Params, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    said = play(smallest(params), [Step("heuristics", "online"), Step("hindsight", "online")])
    assert said.startswith("heuristics online: ")
    assert "data/jobsets/online" in said
    assert not list(tmp_path.rglob("*.parquet"))


@pytest.mark.slow
def test_behind_it_no_stage_compiles_anything(tmp_path: Path) -> None:
    folder = begin(tmp_path, {"HOME": str(tmp_path), "DVC_SITE_CACHE_DIR": str(tmp_path / "dvc")})
    said = folder.run("python", "-m", "pipeline", "compile")
    assert "left out" not in said
    assert "done in" in said
    assert not (tmp_path / "data" / "jobsets").exists()
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "pipeline" / "__pycache__").rglob("*.nbc")}
    assert len(kept) > 20
    folder.dvc("repro")
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "pipeline" / "__pycache__").rglob("*.nbc")} == kept
