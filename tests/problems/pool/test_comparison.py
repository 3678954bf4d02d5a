"""What is compared of streams and of hindsight, from tables made by hand."""

from pathlib import Path
from typing import Any

import pandas as pd
import pandera.pandas as pa
import pytest

from pipeline.core import storage
from pipeline.core.config import Hindsight, Params
from pipeline.core.schemas import HINDSIGHT_SUMMARY, STREAM_SUMMARY
from pipeline.core.schemas.tables import HINDSIGHT, STREAM_BACKLOG, STREAM_FAIRNESS
from pipeline.problems.parts import Evidence
from pipeline.problems.pool.comparison import evidence
from pipeline.problems.pool.env.tables import JOBSET_RESULTS

SLOWDOWN = {"sjf": (4.0, 6.0), "hold": (3.0, 5.0)}  # of two jobsets
NONE_SOLVED = Hindsight(scenarios=(), jobsets=1, limit=1.0)


@pytest.fixture
def small(params: Params, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Params:
    """A stream and short runs, without an agent; the working directory is empty."""
    monkeypatch.chdir(tmp_path)
    scenarios = {name: params.scenarios[name] for name in ("online", "streams", "overload")}
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
    frame = frame.assign(load=90, jobs=50, makespan=60, unfinished=0, utilisation=0.8, longest_wait=90)
    write(folder, "jobsets", frame, JOBSET_RESULTS)
    return folder


def table(found: Evidence, name: str, schema: pa.DataFrameSchema) -> pd.DataFrame:
    """One of the tables, as whoever reads its file gets it."""
    frame, own = found.tables[name]
    assert own is schema
    storage.write_table(storage.REPORTS / name, frame, schema)
    return storage.read_table(storage.REPORTS / name, schema)


def write_stream(scenario: str = "streams") -> None:
    """Beside the jobsets: a backlog that grows by 2 and 4 jobs in 100 steps under SJF, and one class of lengths."""
    folder = write_jobsets(scenario)
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
    said = evidence(small.model_copy(update={"hindsight": NONE_SOLVED}), ["streams"])
    found = table(said, "stream_summary.csv", STREAM_SUMMARY).set_index("policy")
    assert found.loc["sjf", ["scenario", "load", "n", "slowdown", "growth"]].tolist() == ["streams", 90, 2, 5.0, 3.0]
    assert found.loc["hold", ["slowdown", "growth", "longest_wait", "jobs"]].tolist() == [4.0, 0.0, 90, 100]
    assert list(said.figures) == ["backlog_streams"]
    assert said.figures["backlog_streams"].startswith(b"\x89PNG")


def test_the_key_metrics_of_an_overload_are_growth_and_what_is_finished(small: Params) -> None:
    for name in ("streams", "overload"):
        write_stream(name)
    found = evidence(small.model_copy(update={"hindsight": NONE_SOLVED}), ["streams", "overload"]).overloads
    assert found == {
        "overload": {
            "hold": {"growth": 0.0, "finished": 1.0},
            "sjf": {"growth": 3.0, "finished": 1.0},
            "unfinished_jobs": 0,
        }
    }


def test_without_streams_and_hindsight_the_tables_are_empty_and_can_be_read(small: Params) -> None:
    bare = small.model_copy(update={"hindsight": NONE_SOLVED})
    said = evidence(bare, ["online"])
    assert table(said, "stream_summary.csv", STREAM_SUMMARY).empty
    assert table(said, "hindsight.csv", HINDSIGHT_SUMMARY).empty
    assert said.figures == {}


def test_the_distance_to_hindsight_is_from_the_heuristic_that_validation_chose(small: Params) -> None:
    write_jobsets("online")
    storage.write_chosen("online", storage.Chosen(knobs={}, best={90: "sjf"}, validation={}))
    solved = pd.DataFrame({"load": 90, "jobset": [0, 1], "jobs": 50, "objective": [2.0, 4.0], "status": "OPTIMAL"})
    solved = solved.assign(bound=[2.0, 4.0], warm="hold", warm_slowdown=[3.0, 5.0])
    write(storage.results_folder("hindsight", "online"), "hindsight", solved, HINDSIGHT)
    found = table(evidence(small, ["online"]), "hindsight.csv", HINDSIGHT_SUMMARY)
    assert found["load"].tolist() == ["090", "090", "all", "all"]
    # SJF has 5, hold 4, hindsight 3.
    over = found[found["load"] == "all"].set_index("policy")
    assert over.loc["hold", ["best_heuristic", "hindsight", "closes", "closes_low"]].tolist() == [5.0, 3.0, 0.5, 0.5]
    assert over.loc["sjf", "closes"] == 0
