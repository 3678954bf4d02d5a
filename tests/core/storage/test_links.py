"""Logs of a pooled cluster that consist of several files."""

from pathlib import Path

import pytest

from pipeline.core.config import External, Params, PoolLog
from pipeline.core.storage import LOG, link_log, link_policies, policy_folder
from pipeline.errors import UserError


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "raw").mkdir()
    for name in ("part-0.csv", "part-1.csv", "nodes.csv"):
        (tmp_path / "raw" / name).write_text(name)
    return tmp_path


def on_log(params: Params, path: str, nodes: str | None = None) -> Params:
    return params.model_copy(update={"workload": PoolLog(name="log", format="openb", path=path, nodes=nodes)})


def test_a_log_and_its_machines_are_linked_into_one_folder(params: Params, root: Path) -> None:
    for _ in range(2):
        link_log(on_log(params, "raw/part-0.csv", "raw/nodes.csv"))
        assert (LOG / "log").readlink() == root / "raw" / "part-0.csv"
        assert (LOG / "nodes").readlink() == root / "raw" / "nodes.csv"


def test_a_log_of_many_files_is_a_folder_of_links(params: Params, root: Path) -> None:
    link_log(on_log(params, "raw"))
    assert sorted(file.name for file in (LOG / "log").iterdir()) == ["nodes.csv", "part-0.csv", "part-1.csv"]
    assert (LOG / "log" / "part-1.csv").readlink() == root / "raw" / "part-1.csv"


def test_a_folder_of_links_gives_way_to_one_link_and_to_a_note(params: Params, root: Path) -> None:
    link_log(on_log(params, "raw"))
    link_log(on_log(params, "raw/part-0.csv"))
    assert LOG.readlink() == root / "raw" / "part-0.csv"
    link_log(on_log(params, "raw"))
    link_log(params)
    assert LOG.read_text() == "The workload is synthetic: there is no log.\n"
    assert (root / "raw" / "part-0.csv").read_text() == "part-0.csv"


def test_machines_that_are_not_there_are_named(params: Params, root: Path) -> None:
    with pytest.raises(UserError, match=r"^params.yaml: workload.nodes: no such file: .*/raw/gone.csv$"):
        link_log(on_log(params, "raw/part-0.csv", "raw/gone.csv"))


def test_further_files_of_a_policy_are_linked_by_number(params: Params, root: Path) -> None:
    (root / "mine.py").write_text("")
    row = External(problem="pool", scenario="online", policy="mine.py:f", files=("raw", "raw/nodes.csv"))
    link_policies(params.model_copy(update={"policies": {"mine": row}}))
    links = {
        str(file.relative_to(policy_folder("mine"))) for file in policy_folder("mine").rglob("*") if file.is_symlink()
    }
    assert links == {"policy", "0/nodes.csv", "0/part-0.csv", "0/part-1.csv", "1"}
    gone = row.model_copy(update={"files": ("absent",)})
    with pytest.raises(UserError, match=r"^params\.yaml: policies\.mine\.files: no such file or folder: .*absent$"):
        link_policies(params.model_copy(update={"policies": {"mine": gone}}))
