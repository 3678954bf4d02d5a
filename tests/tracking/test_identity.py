"""The key of a stage rests on the same outputs for the stage itself, which reads dvc.yaml, and for dvc.lock."""

from pathlib import Path

import pytest
from dvc.repo import Repo
from tracking_records import REPOSITORY

from pipeline.tracking.identity import declared
from pipeline.tracking.source_tree import working_tree


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


@pytest.mark.parametrize("folder", ["pipeline/comparing", "pipeline/core", "pipeline/problems/pool/env"])
def test_a_folder_of_code_has_the_md5_that_dvc_gives_it(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPOSITORY)
    with Repo(str(REPOSITORY)) as repo:
        dep = next(dep for stage in repo.index.stages for dep in stage.deps if dep.def_path == folder)
        expected = dep.get_hash()
    assert working_tree().md5(folder) == expected.value
