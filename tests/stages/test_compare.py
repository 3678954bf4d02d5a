"""What `compare` draws of how agents learned."""

from pathlib import Path
from typing import Any

import pytest

from pipeline import storage, tracking
from pipeline.comparing import plots
from pipeline.config import Params
from pipeline.stages import compare


@pytest.mark.parametrize(
    ("agent", "shown", "label"),
    [
        ("deeprm", {"sjf": 3.5}, "Mean slowdown on validation jobsets"),
        ("deeprm3", {}, "Slowdown to that of sjf_align, validation jobsets and streams"),
        ("controller", {}, "Mean delay on validation jobsets"),
    ],
)
def test_levels_of_heuristics_are_drawn_where_they_are_of_the_same_jobsets(
    params: Params, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, agent: str, shown: dict[str, float], label: str
) -> None:
    monkeypatch.chdir(tmp_path)
    row, asked = params.agents[agent], list[Any]()
    best = dict.fromkeys(row.finetune.loads, "sjf")
    chosen = storage.Chosen(knobs={}, best=best, validation={"sjf": dict.fromkeys(best, 3.5)})
    storage.write_chosen(row.scenario, chosen)
    storage.write_curve(storage.curve_file(agent, "finetune"), [(1, {"validation": 2.0})])
    monkeypatch.setattr(plots, "learning_curve", lambda *given: asked.append(given))
    monkeypatch.setattr(plots, "png", lambda figure: b"picture")
    with tracking.stage("compare", "", params) as run:
        compare._learning(params, agent, run)
    found = {path.name: path.read_bytes() for path in Path("reports/figures").iterdir()}
    assert found == {f"learning_{agent}.png": b"picture"}
    assert asked[0][1:] == (shown, f"{agent} while learning", "validation", label)
