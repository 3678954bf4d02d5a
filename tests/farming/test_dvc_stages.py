"""Stages of DVC, read, and what DVC says of them."""

import json
from pathlib import Path

import pytest

from pipeline.errors import UserError
from pipeline.farming import dvc_stages
from pipeline.farming.dvc_stages import Graph

STAGES = """stages:
  eat: {cmd: cp soup eaten, deps: [soup], outs: [eaten]}
  cook: {cmd: echo x > soup, params: [water.hot], outs: [soup]}
  lay:
    matrix: {place: [a, b]}
    cmd: touch ${item.place}
    outs:
    - ${item.place}
"""
NEEDS: Graph = {
    "eat": frozenset({"cook"}),
    "cook": frozenset(),
    "lay@a": frozenset(),
    "lay@b": frozenset(),
}


@pytest.fixture
def kitchen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository of DVC with stages that never ran."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".dvc").mkdir()
    (tmp_path / ".dvc" / "config").write_text("[core]\n    no_scm = True\n")
    (tmp_path / "dvc.yaml").write_text(STAGES)
    (tmp_path / "params.yaml").write_text("water: {hot: 1, cold: 2}\n")
    return tmp_path


def test_stages_are_stale_until_they_ran_and_each_has_those_that_it_needs(
    kitchen: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert dvc_stages.graph() == NEEDS
    assert dvc_stages.stale() == set(NEEDS)
    assert dvc_stages.cache_folder() == str(kitchen / ".dvc" / "cache")
    assert capfd.readouterr() == ("", "")


def test_a_key_is_read_by_its_own_name_by_that_around_it_and_by_one_within(kitchen: Path) -> None:
    for key in ("water.hot", "water", "water.hot.more"):
        assert dvc_stages.stages_reading([key]) == {"cook"}
    assert dvc_stages.stages_reading(["water.cold", "wat"]) == set()


def test_a_stage_that_others_still_run_is_waited_for_and_then_one_line(
    kitchen: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dvc_stages, "BUSY_S", 0.5)
    (kitchen / ".dvc" / "tmp").mkdir()
    users = {"write": {str(kitchen / "soup"): {"pid": 1, "cmd": "dvc repro"}}, "read": {}}
    (kitchen / ".dvc" / "tmp" / "rwlock").write_text(json.dumps(users))
    with pytest.raises(UserError, match=r"^dvc: '.*soup' is busy, it is being blocked by: \(PID 1\): dvc repro"):
        dvc_stages.stale()


def test_what_dvc_refuses_is_one_line(kitchen: Path) -> None:
    (kitchen / "dvc.yaml").write_text("stages: {eat: {cook: 1}}\n")
    with pytest.raises(UserError, match=r"^dvc: './dvc.yaml' validation failed"):
        dvc_stages.graph()


def test_what_dvc_says_beside_is_told_from_what_stages_say() -> None:
    for line in ("", "> python -m pipeline gate", "Updating lock file 'dvc.lock'", "Running stage 'gate':"):
        assert dvc_stages.is_noise(line), line
    for line in (
        "gate: 50 of 400, time left unknown",
        "error: no ink",
        "ERROR: failed to reproduce 'gate'",
        "Runningstage",
    ):
        assert not dvc_stages.is_noise(line), line
    cached = "Stage 'gate' is cached - skipping run, checking out outputs"
    assert dvc_stages.fate(cached) == ("gate", dvc_stages.CACHED)
