"""What `compare` makes of streams and of hindsight, from tables made by hand; and of a curve that is judged on both."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
from pipeline.stages.streaming import foreseeing, streaming

from pipeline import storage
from pipeline.comparing import plots
from pipeline.config import Params
from pipeline.problems.pool.tables import JOBSET_RESULTS
from pipeline.schemas import HINDSIGHT, HINDSIGHT_SUMMARY, STREAM_BACKLOG, STREAM_FAIRNESS, STREAM_SUMMARY
from pipeline.stages import compare

SLOWDOWN = {"sjf": (4.0, 6.0), "hold": (3.0, 5.0)}  # of two jobsets


@pytest.fixture
def small(params: Params, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Params:
    """A stream and short runs, without an agent; the working directory is empty."""
    monkeypatch.chdir(tmp_path)
    scenarios = {name: params.scenarios[name] for name in ("online", "streams")}
    how = params.hindsight.model_copy(update={"scenarios": ("online",)})
    settings = params.evaluation.model_copy(update={"resamples": 100})
    changes = {"scenarios": scenarios, "hindsight": how, "evaluation": settings, "agents": {}, "transfers": {}}
    return params.model_copy(update=changes)


def write(folder: Path, name: str, frame: pd.DataFrame, schema: Any) -> None:
    rest = {column: 1.0 for column in schema.columns if column not in frame}
    storage.write_table(folder / f"{name}.parquet", frame.assign(**rest)[list(schema.columns)], schema)


def write_jobsets(scenario: str) -> Path:
    """Two jobsets of load 90 under two heuristics."""
    folder = storage.results_folder("heuristics", scenario)
    rows = [(policy, k, mean) for policy, means in SLOWDOWN.items() for k, mean in enumerate(means)]
    frame = pd.DataFrame(rows, columns=["policy", "jobset", "mean_slowdown"])
    frame = frame.assign(load=90, jobs=50, makespan=60, unfinished=0, utilisation=0.8)
    write(folder, "jobsets", frame, JOBSET_RESULTS)
    return folder


def write_stream() -> None:
    """Beside the jobsets: a backlog that grows by 2 and 4 jobs in 100 steps under SJF, and one class of lengths."""
    folder = write_jobsets("streams")
    rows = [(policy, k, step) for policy in SLOWDOWN for k in range(2) for step in (0, 100)]
    backlog = pd.DataFrame(rows, columns=["policy", "jobset", "step"]).assign(load=90, in_system=9)
    sjf = backlog["policy"] == "sjf"
    growth = (2.0 + 2 * backlog["jobset"]).where(sjf, 0.0)
    write(folder, "backlog", backlog.assign(waiting=backlog["step"] // 50, growth=growth), STREAM_BACKLOG)
    classes = pd.DataFrame({"policy": list(SLOWDOWN), "longest_wait": [70, 90]})
    whole = dict.fromkeys(("length", "shortest", "longest"), 1)
    write(folder, "fairness", classes.assign(load=90, jobs=100, unfinished=0, **whole), STREAM_FAIRNESS)


def test_a_stream_has_a_summary_and_a_figure_of_its_backlog(small: Params) -> None:
    write_stream()
    drawn: list[Path] = []
    told = streaming(small, SimpleNamespace(figure=drawn.append))  # type: ignore[arg-type]
    found = storage.read_table(Path("reports/stream_summary.csv"), STREAM_SUMMARY).set_index("policy")
    assert found.loc["sjf", ["scenario", "load", "n", "slowdown", "growth"]].tolist() == ["streams", 90, 2, 5.0, 3.0]
    assert found.loc["hold", ["slowdown", "growth", "longest_wait", "jobs"]].tolist() == [4.0, 0.0, 90, 100]
    assert told["policy"].tolist() == found.index.tolist()
    assert drawn == [Path("reports/figures/backlog_streams.png")]
    assert drawn[0].read_bytes().startswith(b"\x89PNG")


def test_without_streams_and_hindsight_the_tables_are_empty_and_can_be_read(small: Params) -> None:
    scenarios, how = {"online": small.scenarios["online"]}, small.hindsight.model_copy(update={"scenarios": ()})
    bare = small.model_copy(update={"scenarios": scenarios, "hindsight": how})
    streaming(bare, SimpleNamespace(figure=pytest.fail))  # type: ignore[arg-type]
    foreseeing(bare)
    assert storage.read_table(Path("reports/stream_summary.csv"), STREAM_SUMMARY).empty
    assert storage.read_table(Path("reports/hindsight.csv"), HINDSIGHT_SUMMARY).empty


def test_the_distance_to_hindsight_is_from_the_heuristic_that_validation_chose(small: Params) -> None:
    write_jobsets("online")
    storage.write_chosen("online", storage.Chosen(knobs={}, best={90: "sjf"}, validation={}))
    solved = pd.DataFrame({"load": 90, "jobset": [0, 1], "jobs": 50, "objective": [2.0, 4.0], "status": "OPTIMAL"})
    solved = solved.assign(bound=[2.0, 4.0], warm="hold", warm_slowdown=[3.0, 5.0])
    write(storage.results_folder("hindsight", "online"), "hindsight", solved, HINDSIGHT)
    told = foreseeing(small)
    found = storage.read_table(Path("reports/hindsight.csv"), HINDSIGHT_SUMMARY)
    assert found["load"].tolist() == told["load"].tolist() == ["090", "090", "all", "all"]
    # SJF has 5, hold 4, hindsight 3.
    over = found[found["load"] == "all"].set_index("policy")
    assert over.loc["hold", ["best_heuristic", "hindsight", "closes", "closes_low"]].tolist() == [5.0, 3.0, 0.5, 0.5]
    assert over.loc["sjf", "closes"] == 0


@pytest.mark.parametrize(
    ("agent", "shown", "label"),
    [
        ("deeprm", {"sjf": 3.5}, "Mean slowdown on validation jobsets"),
        ("deeprm3", {}, "Geometric mean of slowdown over loads, validation"),
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
    assert compare._learning(params, agent) == Path(f"reports/figures/learning_{agent}.png")
    assert asked[0][1:] == (shown, f"{agent} while learning", "validation", label)
