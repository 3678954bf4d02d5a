"""`report`: the page from whatever outputs exist, and its comparison with the last commit."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from builders import jobset

from pipeline.core import storage
from pipeline.core.config import Params
from pipeline.core.schemas import COMPARISON, DELAY, HINDSIGHT_SUMMARY, OBJECTIVES, STREAM_SUMMARY, SUMMARY, empty
from pipeline.core.schemas.tables import CURVE
from pipeline.core.storage import evidence
from pipeline.learning.stored import weights_of
from pipeline.problems.pool.agents.networks.networks import build, card_of
from pipeline.problems.pool.env.nouns import Cluster
from pipeline.problems.pool.env.storage import write_jobsets
from pipeline.problems.pool.env.tables import JOBSET_RESULTS

UNITS = {"cpu": 10, "memory": 10}
LOCK = """schema: '2.0'
stages:
  compare:
    cmd: python -m pipeline evaluate compare
    params: {params.yaml: {seed: 1}}
    outs: [{path: reports/summary.csv, hash: md5, md5: 0123456789abcdef0123456789abcdef, size: 10}]
"""

GONE = [
    "reports/summary.csv",
    "reports/delay.csv",
    "reports/hindsight.csv",
    "dvc.lock",
    "reports/curves/deeprm_finetune.csv",
]

Command = Callable[..., Any]


def git(*words: str) -> None:
    subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@t", *words], check=True, capture_output=True)


def write_summary(slowdown: float = 2.0) -> None:
    frame = pd.DataFrame({"scenario": "online", "load": 90, "policy": ["deeprm", "sjf"], "n": 2, "jobs": 3})
    frame = frame.assign(slowdown=[slowdown, 3.0], unfinished=0)
    rest = {name: 1.5 for name in SUMMARY.columns if name not in frame}
    storage.write_table(storage.REPORTS / "summary.csv", frame.assign(**rest)[list(SUMMARY.columns)], SUMMARY)


@pytest.fixture
def outputs(place: Path) -> Path:
    """Write outputs like those of `compare`: one agent and SJF at one load; no model, and no test jobsets."""
    write_summary()
    numbers = {"n": 2, "mean": 2.0, "low": 1.9, "high": 2.1, "mean_against": 3.0, "difference": -0.333}
    row = {"scenario": "online", "policy": "deeprm", "against": "sjf", **numbers, "unfinished": 0}
    against = ("sjf", "best_heuristic")
    frame = pd.DataFrame([{**row, "load": load, "against": other} for other in against for load in ("090", "all")])
    frame = frame.assign(difference_low=-0.4, difference_high=-0.3)[list(COMPARISON.columns)]
    storage.write_table(storage.REPORTS / "comparison.csv", frame, COMPARISON)
    own = frame.assign(objective="slowdown")[list(OBJECTIVES.columns)]
    storage.write_table(storage.REPORTS / "objectives.csv", own, OBJECTIVES)
    for name, schema in (("delay", DELAY), ("stream_summary", STREAM_SUMMARY), ("hindsight", HINDSIGHT_SUMMARY)):
        storage.write_table(storage.REPORTS / f"{name}.csv", empty(schema), schema)
    storage.write_figure("slowdown_online", b"\x89PNG")
    curve = pd.DataFrame({"update": [0, 25], "metric": "validation", "value": [4.0, 2.0]})
    storage.write_table(storage.curve_file("deeprm", "finetune"), curve, CURVE)
    Path("dvc.lock").write_text(LOCK)
    return place


def report(command: Command) -> tuple[str, list[str]]:
    """Return the page, and what was printed."""
    outcome = command("report")
    assert outcome.code == 0, outcome.err
    return Path("reports/index.html").read_text(), outcome.err.splitlines()


def test_what_is_missing_is_named_in_one_line(command: Command) -> None:
    outcome = command("report")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err == (
        "error: reports/summary.csv, reports/comparison.csv, reports/delay.csv, reports/objectives.csv, "
        "reports/stream_summary.csv, reports/hindsight.csv, reports/figures, dvc.lock are missing: "
        "run 'dvc repro' (or 'dvc pull') first\n"
    )
    assert not Path("reports").exists()


@pytest.mark.parametrize("gone", GONE)
def test_one_missing_output_is_named(command: Command, outputs: Path, gone: str) -> None:
    (outputs / gone).unlink()
    outcome = command("report")
    assert outcome.code == 2
    assert outcome.err == f"error: {gone} is missing: run 'dvc repro' (or 'dvc pull') first\n"
    assert not Path("reports/index.html").exists()


def test_waiting_times_are_on_the_page_where_there_are_any(command: Command, outputs: Path) -> None:
    assert "mean waiting time" not in report(command)[0]
    row = {"scenario": "shares", "policy": "controller", "against": "drf", "n": 2, "unfinished": 0}
    numbers = {"mean": 0.4, "low": 0.3, "high": 0.5, "mean_against": 0.8, "difference": -0.5}
    frame = pd.DataFrame([{**row, **numbers, "load": load} for load in ("080", "all")])
    frame = frame.assign(difference_low=-0.6, difference_high=-0.4)[list(DELAY.columns)]
    storage.write_table(outputs / "reports/delay.csv", frame, DELAY)
    page, _ = report(command)
    assert "shares, mean waiting time" in page
    assert "-50.0 %" in page


def test_hindsight_and_streams_are_on_the_page_where_there_are_any(command: Command, outputs: Path) -> None:
    before, _ = report(command)
    assert "to hindsight (the best schedules found" not in before
    assert 'id="streams"' not in before
    row = {"scenario": "online", "load": "all", "policy": "deeprm", "n": 30, "closes": 0.25, "closes_low": 0.1}
    frame = pd.DataFrame([row]).assign(closes_high=0.4, optimal=0.5, slowdown=3.0, best_heuristic=3.5)
    frame = frame.assign(hindsight=1.5, bound=1.0)[list(HINDSIGHT_SUMMARY.columns)]
    storage.write_table(outputs / "reports/hindsight.csv", frame, HINDSIGHT_SUMMARY)
    whole = {"scenario": "streams", "load": 95, "policy": "deeprm", "n": 24, "jobs": 9, "longest_wait": 7}
    rest = {name: 2.5 for name in STREAM_SUMMARY.columns if name not in whole} | {"never_started": 0, "overload": False}
    stream = pd.DataFrame([whole | rest])[list(STREAM_SUMMARY.columns)]
    storage.write_table(outputs / "reports/stream_summary.csv", stream, STREAM_SUMMARY)
    page, _ = report(command)
    assert "deeprm closes 25 % (95 % interval 10 to 40) of the distance from the best heuristic to hindsight" in page
    assert 'id="streams"' in page


@pytest.mark.usefixtures("outputs")
def test_without_models_and_git_there_is_a_page_that_says_so(command: Command) -> None:
    page, said = report(command)
    assert said[0].startswith("report: No results yet of ")
    assert "deeprm2, " in said[0]
    assert said[1] == (
        "report: No schedule is drawn: reports/tables/agents/deeprm/jobsets.parquet is missing: "
        "run 'dvc repro' (or 'dvc pull') first."
    )
    assert said[-1] == "reports/index.html: 0.0 MB; opens in any browser, without a network"
    assert "No git repository, or no commit in it" in page
    assert "<strong>Use deeprm</strong>: mean slowdown 2.00, 33.3 % below the best heuristic (sjf), interval" in page


def test_the_page_compares_with_the_last_commit(command: Command, outputs: Path) -> None:
    git("init", "--quiet")
    git("add", "params.yaml")
    git("commit", "--quiet", "-m", "no run yet")
    assert "holds neither dvc.lock nor reports/summary.csv" in report(command)[0]
    git("add", "dvc.lock", "reports/summary.csv")
    git("commit", "--quiet", "-m", "a run")
    assert "No changes: metrics, parameters and outputs are those of commit " in report(command)[0]
    write_summary(1.5)
    params = outputs / "params.yaml"
    params.write_text(params.read_text().replace("\nseed: 1 ", "\nseed: 2 "))
    Path("dvc.lock").write_text(LOCK.replace("0123", "4567"))
    page, said = report(command)
    assert "online, load 90, deeprm" in page
    assert "-25.00 %" in page
    assert '<th scope="row" class="break">seed</th><td class="break">1</td><td class="break">2</td>' in page
    md5s = "0123456789abcdef0123456789abcdef", "4567456789abcdef4567456789abcdef"
    assert '<td class="break">{}</td><td class="break">{}</td>'.format(*md5s) in page
    assert any(line.endswith("since these results were made (seed): run 'dvc repro'.") for line in said)
    assert "The working tree differs from the commit in params.yaml." in page


def test_the_schedule_is_drawn_where_model_and_jobsets_are(command: Command, outputs: Path, params: Params) -> None:
    cluster = Cluster.of(params.pool_scenario("online"))
    network = build(params.agent("deeprm").network, cluster, seed=0)
    model = storage.Model(card_of(params, "deeprm"), weights_of(network))
    storage.write_model(storage.model_folder("deeprm", "policy"), model)
    jobs = [jobset((0, 2, 6, 1), (0, 1, 6, 1)), jobset((1, 1, 1, 1))]
    write_jobsets(storage.jobsets_folder("online"), "test", {90: jobs}, UNITS)
    for folder, policy in ((("agents", "deeprm"), "deeprm"), (("heuristics", "online"), "sjf")):
        frame = pd.DataFrame(
            {
                "policy": policy,
                "load": 90,
                "jobset": [0, 1],
                "jobs": 3,
                "makespan": 3,
                "longest_wait": 1,
                "unfinished": 0,
            }
        )
        rest = {name: 1.5 for name in JOBSET_RESULTS.columns if name not in frame}
        frame = frame.assign(**rest)[list(JOBSET_RESULTS.columns)]
        storage.write_table(storage.results_folder(*folder) / "jobsets.parquet", frame, JOBSET_RESULTS)
    page, said = report(command)
    assert not [line for line in said if "No schedule" in line]
    assert "Schedules side by side. Scenario online, load 90 %, test jobset 0: 2 jobs; of its load, the one " in page
    assert "sjf: mean slowdown 1.25, makespan 3; 0 steps not work-conserving (0 %), 0 jobs withheld." in page
    again, _ = report(command)
    assert again == page


def test_files_of_the_last_commit_are_read_as_they_were(outputs: Path) -> None:
    assert evidence.head() is None
    assert evidence.committed(Path("dvc.lock")) is None
    git("init", "--quiet")
    assert evidence.head() is None
    git("add", "dvc.lock")
    git("commit", "--quiet", "-m", "first: é\n\nbody")
    Path("dvc.lock").write_text("changed")
    found = evidence.head()
    assert found is not None
    assert (found.subject, found.dirty) == ("first: é", ["params.yaml"])  # not added to git
    assert evidence.committed(Path("dvc.lock")) == LOCK.encode()
    assert evidence.committed(Path("none")) is None
