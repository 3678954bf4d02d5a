"""DVC's own experiments and cache, several at once, and what MLflow says of them."""

import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from laid_out import snapshot
from repositories import STAGES, Folder, begin, ran, tracked

RECORDED = sorted(STAGES - {"log"})
ALL = f"{len(RECORDED)} stages"


def publish(folder: Folder, *words: str) -> list[str]:
    said = folder.run(sys.executable, "-m", "pipeline", "publish", *words, PIPELINE_TRACKING="on")
    return [line.partition(": ")[2] for line in said.splitlines()]


def told(line: str) -> str:
    """A line of `publish` without the name of the pipeline run."""
    return line.partition(": ")[2]


@pytest.mark.slow
def test_two_pipelines_of_a_queue_set_up_one_database_and_record_every_stage(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    folder = begin(tmp_path / "queue", environment)
    for name, seed in (("first", 2), ("second", 3)):
        folder.dvc("exp", "run", "--queue", "-n", name, "-S", f"seed={seed}")
    folder.dvc("exp", "run", "--run-all", "-j", "2", PIPELINE_TRACKING="on")
    found = tracked(folder.root)
    assert sorted(name.partition("-")[0] for name in found) == ["first", "second"]
    assert [sorted(stages) for stages in found.values()] == [RECORDED, RECORDED]
    lines = publish(folder, "--rev", "first", "--rev", "second")
    assert [told(line) for line in lines] == [f"{len(RECORDED)} stages, {len(RECORDED)} recorded"] * 2


@pytest.mark.slow
def test_what_dvc_skipped_restored_or_ran_elsewhere_is_published(tmp_path: Path, environment: dict[str, str]) -> None:
    folder = begin(tmp_path / "cached", environment)
    folder.dvc("repro", PIPELINE_TRACKING="on")
    ours = snapshot(folder.root)
    (line,) = publish(folder)
    assert told(line) == f"{ALL}, {len(RECORDED)} recorded"
    assert snapshot(folder.root) == ours
    folder.git("add", "--all")
    folder.git("commit", "--quiet", "-m", "reproduced")

    (folder.root / "mlflow.db").unlink()
    for place in ("data/jobsets", "models", "reports/tables"):
        shutil.rmtree(folder.root / place)
    assert ran(folder.dvc("repro", PIPELINE_TRACKING="on")) == []
    (line,) = publish(folder)
    assert told(line) == f"{ALL}, {len(RECORDED)} restored"
    assert parent_points(snapshot(folder.root)) == parent_points(ours)

    folder.dvc("exp", "run", "--temp", "-n", "bold", "-S", "agents.plain.finetune.updates=8")
    (line,) = publish(folder, "--rev", "bold")
    assert told(line).startswith(f"{ALL}, ")
    assert " reused" in line
    before = snapshot(folder.root)
    assert [told(line) for line in publish(folder, "--all")] == [f"{ALL}, {len(RECORDED)} recorded"] * 3
    assert snapshot(folder.root) == before


def parent_points(seen: dict[str, Any]) -> list[dict[str, list[tuple[int, float]]]]:
    """The curves of the pipeline runs."""
    return [said[3] for place, said in seen.items() if place.startswith("/") and place != "models"]
