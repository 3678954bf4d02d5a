"""Outputs of rows that no longer exist: found by dvc.yaml and params.yaml, and removed from dvc.lock line by line."""

from pathlib import Path

import pytest

from pipeline.core.storage.evidence import forget, forgotten, remove
from pipeline.errors import UserError

STAGES = """stages:
  log: {cmd: run log, outs: [data/log]}
  finetune:
    foreach: ${agents}
    do: {cmd: "run ${key}", outs: ["models/${key}/policy"]}
  hindsight:
    foreach: ${hindsight.scenarios}
    do: {cmd: "run ${item}"}
"""
HEAD = "schema: '2.0'\nstages:\n"
OUTS = "    outs:\n    - path: "
LOG = f"  log:\n    cmd: run log\n{OUTS}data/log\n      md5: aa\n"
DEEP = f"  finetune@deep:\n    cmd: run deep\n{OUTS}models/deep/policy\n      hash: md5\n      md5: bb.dir\n"
OLD = DEEP.replace("deep", "old").replace("bb", "cc") + "    - path: reports/curves/old.csv\n"
ONLINE = "  hindsight@online:\n    cmd: run online\n"
GONE = f"  hindsight@gone:\n    cmd: run gone\n{OUTS}../elsewhere\n    - path: data\n    - path: setup.py\n"


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("dvc.yaml").write_text(STAGES)
    Path("params.yaml").write_text("agents: {deep: {}}\nhindsight: {scenarios: [online]}\n")
    Path("dvc.lock").write_text(HEAD + LOG + OLD + DEEP + GONE + ONLINE)
    return tmp_path


def test_stages_without_a_row_are_found_and_only_outputs_of_ours() -> None:
    old = {Path("models/old/policy"): "cc.dir", Path("reports/curves/old.csv"): ""}
    assert forgotten() == {"finetune@old": old, "hindsight@gone": {}}


def test_a_lock_without_them_is_as_dvc_wrote_it() -> None:
    forget({"finetune@old", "hindsight@gone"})
    assert Path("dvc.lock").read_text() == HEAD + LOG + DEEP + ONLINE
    assert forgotten() == {}


def test_a_section_that_is_gone_has_no_rows() -> None:
    Path("params.yaml").write_text("agents: {deep: {}, old: {}}\n")
    assert set(forgotten()) == {"hindsight@gone", "hindsight@online"}


@pytest.mark.parametrize("name", ["dvc.lock", "dvc.yaml"])
def test_without_dvc_nothing_is_left_over(name: str) -> None:
    Path(name).unlink()
    assert forgotten() == {}


def test_a_lock_may_be_longer_than_a_file_that_people_write(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.core.config.parsing.LARGEST", 300)
    assert len(Path("dvc.lock").read_text()) > 300 > len(STAGES)
    assert set(forgotten()) == {"finetune@old", "hindsight@gone"}


@pytest.mark.parametrize("text", ["stages: [", "stages: [1]\n"])
def test_a_damaged_lock_is_one_line(text: str) -> None:
    Path("dvc.lock").write_text(text)
    with pytest.raises(UserError, match=r"dvc\.lock: .*'git checkout HEAD -- dvc\.lock'"):
        forgotten()


def test_a_removed_output_takes_its_empty_folder_with_it_and_no_other(place: Path) -> None:
    for name in ("models/old/policy", "models/deep/policy", "models/deep/pretrained"):
        (place / name).mkdir(parents=True)
    remove(Path("models/old/policy"))
    remove(Path("models/deep/policy"))
    assert sorted(path.as_posix() for path in Path("models").rglob("*")) == ["models/deep", "models/deep/pretrained"]
    remove(Path("models/deep/pretrained"))
    assert Path("models").is_dir()
