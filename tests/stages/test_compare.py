"""How `compare` draws learning curves, and how it judges an overload."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from builders import jobset

from pipeline import tracking
from pipeline.comparing import plots
from pipeline.core import storage
from pipeline.core.config import Params
from pipeline.core.schemas import COMPARISON
from pipeline.core.schemas.tables import STREAM_BACKLOG, STREAM_FAIRNESS
from pipeline.problems.pool.env.storage import write_jobsets
from pipeline.problems.pool.env.tables import JOBSET_RESULTS
from pipeline.stages import compare


@pytest.mark.parametrize(
    ("agent", "shown", "label"),
    [
        ("deeprm", {"sjf": 3.5}, "Mean slowdown on validation jobsets (ratio)"),
        ("deeprm3", {}, "Validation slowdown relative to sjf_align (ratio)"),
        ("controller", {}, "Mean delay on validation jobsets (time units)"),
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
        compare._learning_curve(params, agent, run)
    found = {path.name: path.read_bytes() for path in Path("reports/figures").iterdir()}
    assert found == {f"learning_{agent}.png": b"picture"}
    assert asked[0][1:] == (shown, f"{agent} while learning", "validation", label)


SLOWDOWN = {"sjf": (4.0, 6.0), "hold": (3.0, 5.0)}  # of two jobsets


def write(scenario: str) -> None:
    """Two jobsets of load 90 under two heuristics; the backlog of a stream grows by 2 jobs in 100 steps."""
    folder = storage.results_folder("heuristics", scenario)
    write_jobsets(storage.jobsets_folder(scenario), "test", {90: [jobset((0, 2, 6, 1))] * 2}, {"cpu": 10, "memory": 10})
    storage.write_chosen(scenario, storage.Chosen(knobs={}, best={90: "hold"}, validation={}))
    rows = pd.DataFrame([(policy, k, mean) for policy, means in SLOWDOWN.items() for k, mean in enumerate(means)])
    rows.columns = pd.Index(["policy", "jobset", "mean_slowdown"])
    rows = rows.assign(load=90, jobs=1, makespan=60, unfinished=0, utilisation=0.5, longest_wait=9, step=0, waiting=1)
    rows = rows.assign(in_system=1, growth=2.0, finished=40.0)
    classes = pd.DataFrame({"policy": list(SLOWDOWN)})
    whole = dict.fromkeys(("length", "shortest", "longest", "jobs"), 1) | {"longest_wait": 9, "unfinished": 0}
    tables = {"jobsets": (rows, JOBSET_RESULTS), "backlog": (rows, STREAM_BACKLOG)}
    for name, (frame, schema) in (tables | {"fairness": (classes.assign(load=90, **whole), STREAM_FAIRNESS)}).items():
        rest = {column: 1.0 for column in schema.columns if column not in frame}
        storage.write_table(folder / f"{name}.parquet", frame.assign(**rest)[list(schema.columns)], schema)


def test_an_overload_is_not_compared_by_slowdown(
    params: Params, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for module in ("pipeline.comparing.kept", "pipeline.problems.pool.comparison"):
        monkeypatch.setattr(f"{module}.picture", lambda *given: b"picture")
    names = ("streams", "overload")
    for name in names:
        write(name)
    scenarios = {name: params.scenarios[name] for name in names}
    nothing = {key: {} for key in ("agents", "transfers", "plans", "policies", "sites")}
    settings = params.evaluation.model_copy(update={"resamples": 100})
    none_solved = params.hindsight.model_copy(update={"scenarios": ()})
    changes = {"scenarios": scenarios, "evaluation": settings, "hindsight": none_solved, **nothing}
    compare.run(params.model_copy(update=changes))
    compared = storage.read_table(Path("reports/comparison.csv"), COMPARISON)
    assert set(compared["scenario"]) == {"streams"}
    metrics = storage.read_json(Path("reports/metrics.json"))
    assert list(metrics) == ["overload", "streams"]
    assert metrics["overload"]["hold"] == {"growth": 2.0, "finished": 40.0}
    assert metrics["streams"]["sjf"] == {"slowdown": 5.0}
    text = Path("reports/comparison.md").read_text()
    assert "**streams**: mean slowdown" in text
    assert "**overload**: mean slowdown" not in text
    assert "**overload**, load 90" in text
