"""Checkpoints: used if nothing has changed since, and otherwise ignored with one line."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save

from pipeline.core.storage.models import (
    Checkpoint,
    checkpoint_file,
    checkpoint_key,
    drop_checkpoints,
    read_checkpoint,
    write_checkpoint,
)
from pipeline.errors import UserError

NOTES = [[1, [["loss", 0.1 + 0.2], ["decisions", 7.0]]], [2, [["loss", 1e-300]]]]


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DVC_ROOT", raising=False)
    (tmp_path / ".dvc").mkdir()
    return tmp_path


@pytest.fixture
def file(root: Path) -> Path:
    """Write a checkpoint."""
    place = checkpoint_file("finetune@plain", "key1")
    assert place == root / ".dvc" / "tmp" / "checkpoints" / "finetune@plain" / "key1.safetensors"
    write_checkpoint(place, saved())
    return place


def saved() -> Checkpoint:
    return Checkpoint({"network/w": np.array([[1.5, 2.0]], np.float32), "best/cost": np.array(0.1)}, NOTES)


def refusal(file: Path) -> str:
    with pytest.raises(UserError) as told:
        read_checkpoint(file)
    assert "\n" not in str(told.value)
    return str(told.value)


def test_a_checkpoint_comes_back_to_the_last_bit(file: Path) -> None:
    found = read_checkpoint(file)
    assert found is not None
    assert found.notes == NOTES
    assert {name: (value.dtype, value.shape, value.tolist()) for name, value in found.tensors.items()} == {
        "network/w": (np.float32, (1, 2), [[1.5, 2.0]]),
        "best/cost": (np.float64, (), 0.1),
    }


def test_the_same_checkpoint_is_the_same_bytes(file: Path) -> None:
    before = file.read_bytes()
    for _ in range(5):
        write_checkpoint(file, saved())
        assert file.read_bytes() == before


def test_where_none_was_written_there_is_none(root: Path) -> None:
    assert read_checkpoint(root / ".dvc" / "tmp" / "checkpoints" / "finetune@plain" / "key.safetensors") is None


def test_outside_of_a_dvc_repository_none_is_kept(root: Path) -> None:
    (root / ".dvc").rmdir()
    assert checkpoint_file("finetune@plain", "key") is None


def test_a_temporary_experiment_keeps_its_checkpoints_in_the_repository(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "elsewhere" / ".dvc").mkdir(parents=True)
    monkeypatch.setenv("DVC_ROOT", str(root))
    monkeypatch.chdir(root / "elsewhere")
    place = checkpoint_file("finetune@plain", "key")
    assert place is not None
    assert root / ".dvc" in place.parents


def test_one_of_other_parameters_is_left_and_said(file: Path) -> None:
    said = "made with other parameters, inputs or code"
    assert refusal(file.with_name("key2.safetensors")) == f"checkpoint {file}: {said}"
    copied = file.with_name("key3.safetensors")
    copied.write_bytes(file.read_bytes())
    assert refusal(copied) == f"checkpoint {copied}: {said}"


def other_notes(content: bytes) -> bytes:
    return content.replace(b"0.30000000000000004", b"0.30000000000000005")


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda content: b"", "not a checkpoint ("),
        (lambda content: b"junk", "not a checkpoint ("),
        (lambda content: content[:-4], "not a checkpoint ("),
        (lambda content: content[: len(content) // 2], "not a checkpoint ("),
        (lambda content: save({"a": np.zeros(2)}), "not a checkpoint ("),
        (lambda content: save({"a": np.zeros(2)}, {"checkpoint": "[]"}), "not a checkpoint ("),
        (lambda content: save({"a": np.zeros(2)}, {"checkpoint": "{}"}), "not a checkpoint ("),
        (lambda content: b"\x80\x05junk", "not a checkpoint ("),
        (lambda content: content[:-1] + bytes([content[-1] ^ 1]), "damaged ("),
        (other_notes, "damaged ("),
    ],
    ids=["empty", "junk", "cut", "half", "other", "list", "bare", "pickle", "bit", "notes"],
)
def test_a_damaged_one_is_refused_in_one_line(file: Path, damage: Callable[[bytes], bytes], said: str) -> None:
    before = file.read_bytes()
    file.write_bytes(damage(before))
    assert file.read_bytes() != before
    assert refusal(file).startswith(f"checkpoint {file}: {said}")


def test_one_that_cannot_be_read_is_refused_in_one_line(file: Path) -> None:
    file.unlink()
    file.mkdir()
    assert refusal(file) == f"checkpoint {file}: cannot be read (Is a directory)"


def test_there_is_one_entry_of_metadata_for_several_have_no_order(file: Path) -> None:
    content = file.read_bytes()
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    assert list(header["__metadata__"]) == ["checkpoint"]


def test_a_stage_that_is_done_leaves_no_checkpoint(file: Path) -> None:
    write_checkpoint(file.with_name("key2.safetensors"), saved())
    drop_checkpoints(file)
    assert not file.parent.exists()
    drop_checkpoints(file)


def test_the_key_tells_parameters_and_inputs_apart(root: Path) -> None:
    folder, log = root / "jobsets", root / "log"
    folder.mkdir()
    (folder / "train.parquet").write_bytes(b"train")
    log.write_bytes(b"log")
    rows = {"seed": 1, "agent": {"updates": 3}}
    first = checkpoint_key(rows, [folder, log])
    assert checkpoint_key({"agent": {"updates": 3}, "seed": 1}, [folder, log]) == first
    found = {first, checkpoint_key({**rows, "seed": 2}, [folder, log]), checkpoint_key(rows, [folder])}
    (folder / "train.parquet").write_bytes(b"other")
    found.add(checkpoint_key(rows, [folder, log]))
    (folder / "train.parquet").rename(folder / "test.parquet")
    found.add(checkpoint_key(rows, [folder, log]))
    log.write_bytes(b"longer")
    found.add(checkpoint_key(rows, [folder, log]))
    assert len(found) == 6


def test_the_key_tells_code_and_packages_apart(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = checkpoint_key({}, [])
    with monkeypatch.context() as changed:
        changed.setattr("pipeline.core.storage.models.version", lambda name: "9.9")
        assert checkpoint_key({}, []) != first
    code = root / "code" / "deep"
    code.mkdir(parents=True)
    monkeypatch.setattr("pipeline.core.storage.models.CODE", code.parent)
    (code / "a.py").write_text("x = 1\n")
    second = checkpoint_key({}, [])
    (code / "a.py").write_text("x = 2\n")
    assert len({first, second, checkpoint_key({}, [])}) == 3
