"""`prune`: what it removes, what it keeps, and what it prints."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline.core.storage import evidence
from pipeline.tracking.digests import measured

STAGES = "stages: {finetune: {foreach: '${agents}', do: {cmd: run}}}\n"


@pytest.fixture
def left(place: Path) -> Path:
    """Write a model and a curve of an agent that is not in params.yaml."""
    for name in ("models/old/policy/weights", "reports/curves/old_finetune.csv"):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(name)
    outs = {name: measured(place / name) for name in ("models/old/policy", "reports/curves/old_finetune.csv")}
    lines = [f"    - path: {name}\n      md5: {md5}\n" for name, md5 in outs.items()]
    (place / "dvc.lock").write_text("stages:\n  finetune@old:\n    outs:\n" + "".join(lines))
    (place / "dvc.yaml").write_text(STAGES)
    return place


def test_nothing_is_left_of_a_row_and_the_rows_are_named(left: Path, command: Callable[..., Any]) -> None:
    said = command("prune").err
    row = "rows that params.yaml does not have (old); DVC's cache keeps them"
    assert said == f"prune: removed 1 stage of dvc.lock and 2 outputs of {row}\n"
    assert not (left / "models" / "old").exists()
    assert not (left / "reports" / "curves" / "old_finetune.csv").exists()
    assert evidence.forgotten() == {}
    assert command("prune").err == "prune: nothing to remove\n"


def test_what_somebody_changed_stays(left: Path, command: Callable[..., Any]) -> None:
    weights = left / "models" / "old" / "policy" / "weights"
    weights.write_text("mine")
    done = command("prune", "--json")
    assert done.err == "prune: models/old/policy is left: it was changed since its stage ran\n"
    assert json.loads(done.out) == {
        "stages": ["finetune@old"],
        "removed": ["reports/curves/old_finetune.csv"],
        "left": ["models/old/policy"],
    }
    assert weights.read_text() == "mine"
