"""The key of a stage rests on the same outputs for the stage itself, which reads dvc.yaml, and for dvc.lock."""

from pathlib import Path

import pytest
from dvc.repo import Repo
from tracking_records import REPOSITORY

from pipeline.tracking.identity import declared


def test_a_stage_knows_its_outputs_as_dvc_resolves_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPOSITORY)
    with Repo(str(REPOSITORY)) as repo:
        stages = {stage.name: [Path(out.fs_path) for out in stage.outs] for stage in repo.index.stages}
    assert len(stages) > 10
    for title, outs in stages.items():
        assert {REPOSITORY / path for path in declared(title)} == set(outs)


def test_a_stage_that_dvc_does_not_know_has_no_outputs(bare: Path) -> None:
    assert declared("finetune@deeprm") == []
    (bare / "dvc.yaml").write_text("stages: {}\n")
    assert declared("finetune@deeprm") == []
