"""Results of tasks are whole or not there."""

import os
import time
from pathlib import Path

import numpy as np
import pytest

from pipeline.errors import UserError
from pipeline.execution.worker import DAY_S, KEPT_DAYS, Store


def test_what_is_written_is_read_and_gone_when_discarded(tmp_path: Path) -> None:
    store = Store(tmp_path / "deep" / "tasks")
    assert store.read("a") is None
    store.write("a", {"x": np.arange(3)})
    store.write("b", None)
    assert store.has("a")
    found = store.read("a")
    assert found is not None
    assert found[0]["x"].tolist() == [0, 1, 2]
    assert store.read("b") == (None,)


@pytest.mark.parametrize("cut", [0, 10, 40])
def test_a_result_that_was_cut_is_none(tmp_path: Path, cut: int) -> None:
    store = Store(tmp_path)
    store.write("a", list(range(100)))
    store.path("a").write_bytes(store.path("a").read_bytes()[:cut])
    assert store.read("a") is None
    assert not store.has("a")


def test_a_store_that_cannot_be_written_to_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match=r"a\.task: cannot be written \(File exists\)"):
        Store(tmp_path / "file").write("a", 1)


def test_a_full_store_is_one_line_and_leaves_no_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UserError, match=r"a\.task: cannot be written \(No space left on device\)$"):
        Store(tmp_path).write("a", 1)
    assert list(tmp_path.iterdir()) == []


def test_what_was_left_long_ago_is_swept(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for name, days in {"old.task": KEPT_DAYS + 1, "old.work": KEPT_DAYS + 1, "new.task": 1, "old.txt": 99}.items():
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (time.time() - days * DAY_S,) * 2)
    store.sweep()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new.task", "old.txt"]
