"""The key of a stage rests on the same outputs for the stage itself, which reads dvc.yaml, and for dvc.lock."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from dvc.repo import Repo
from dvc.stage import Stage
from tracking_records import REPOSITORY

from pipeline.tracking.digests import working_tree
from pipeline.tracking.identity import declared


@pytest.fixture(scope="module")
def stages() -> Iterator[list[Stage]]:
    """All stages as DVC resolves them, which takes a second."""
    with Repo(str(REPOSITORY)) as repo:
        yield repo.index.stages


def test_a_stage_knows_its_outputs_as_dvc_resolves_them(stages: list[Stage], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPOSITORY)
    kinds = {stage.name.partition("@")[0]: stage for stage in stages}
    assert len(kinds) > 5
    for one in kinds.values():
        assert {REPOSITORY / path for path in declared(one.name)} == {Path(out.fs_path) for out in one.outs}


def test_a_stage_that_dvc_does_not_know_has_no_outputs(bare: Path) -> None:
    assert declared("finetune@deeprm") == []
    (bare / "dvc.yaml").write_text("stages: {}\n")
    assert declared("finetune@deeprm") == []


@pytest.mark.parametrize("folder", ["pipeline/comparing", "pipeline/core", "pipeline/problems/pool/env"])
def test_a_folder_of_code_has_the_md5_that_dvc_gives_it(
    stages: list[Stage], folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(REPOSITORY)
    dep = next(dep for stage in stages for dep in stage.deps if dep.def_path == folder)
    assert working_tree().md5(folder) == dep.get_hash().value
