"""The recipes of CONTRIBUTING.md, each applied to a copy of the working tree and run."""

import json
import re
from pathlib import Path

import pandas as pd
import pytest
from builders import REPOSITORY
from recipe_copies import RECIPES, SMALL, Copy
from ruamel.yaml import YAML


@pytest.fixture
def copy(tmp_path: Path, request: pytest.FixtureRequest, warm_environment: dict[str, str]) -> Copy:
    return Copy(tmp_path / "copy", request.param, warm_environment)


def test_contributing_names_every_recipe() -> None:
    named = set(re.findall(r"docs/recipes/(\w+)\.diff", (REPOSITORY / "CONTRIBUTING.md").read_text()))
    assert named == {path.stem for path in RECIPES.iterdir()}


@pytest.mark.parametrize("copy", ["heuristic"], indirect=True)
def test_a_new_heuristic_schedules(copy: Copy) -> None:
    # Only one of these fits at a time; mean shares are 1.0, 0.6 and 1.0, and ties go to the job that arrived first.
    (copy.root / "jobs.csv").write_text(
        "jobset,job,arrival,duration,cpu,memory\n0,a,0,4,10,10\n0,b,0,6,6,6\n0,c,0,5,10,10\n"
    )
    copy.pipeline("schedule", "jobs.csv", "--scenario", "online", "--policy", "narrowest", "--out", "out.csv")
    assert pd.read_csv(copy.root / "out.csv")["start"].tolist() == [6, 0, 10]


@pytest.mark.parametrize("copy", ["system"], indirect=True)
def test_a_new_system_is_trained_and_scored(copy: Copy) -> None:
    stages = copy.run("python", "-m", "dvc", "stage", "list", "--name-only").split()
    assert {"generate@three_resources", "heuristics@three_resources", "finetune@narrow", "evaluate@narrow"} <= set(
        stages
    )
    with copy.rows() as rows:
        rows["agents"]["narrow"]["finetune"] |= {"updates": 2, "jobsets": 2, "episodes": 2, "validate_every": 2}
    copy.stages("log", "generate three_resources", "pretrain narrow", "finetune narrow", "evaluate agent narrow")
    scored = pd.read_parquet(copy.root / "reports" / "tables" / "agents" / "narrow" / "jobsets.parquet")
    assert scored.groupby(["policy", "load"]).size().to_dict() == {
        (policy, load): 50 for policy in ("narrow", "narrow_pretrained") for load in (70, 130)
    }


@pytest.mark.parametrize("copy", ["metric"], indirect=True)
def test_a_new_metric_stands_in_the_table_of_jobsets(copy: Copy) -> None:
    copy.edit(jobsets=SMALL, searched=("linear: {population: 32, rounds: 6, elite: 6}", "linear: null"))
    copy.stages("log", "generate online", "evaluate heuristics online")
    tables, keys = copy.root / "reports" / "tables" / "heuristics" / "online", ["policy", "load", "jobset"]
    found = pd.read_parquet(tables / "jobsets.parquet").set_index(keys)["p90_slowdown"]
    expected = pd.read_parquet(tables / "jobs.parquet").groupby(keys)["slowdown"].quantile(0.9)
    pd.testing.assert_series_equal(found.sort_index(), expected, check_names=False)


@pytest.mark.parametrize("copy", ["network"], indirect=True)
def test_a_new_network_is_built_stored_and_played(copy: Copy) -> None:
    copy.edit(
        jobsets=SMALL,
        network=("network: {name: mlp, hidden: 20, clock: false}", "network: {name: flat, clock: true}"),
    )
    copy.stages("log", "generate online", "pretrain deeprm")
    card = json.loads((copy.root / "models" / "deeprm" / "pretrained" / "policy.json").read_text())
    assert card["network"] == {"name": "flat", "clock": True}
    assert card["weights"]["tensors"]["only.weight"]["shape"] == [11, 20 * (2 * 10 * 11 + 3 + 1)]


CLIMB = "{name: climb, recipe: ours, loads: [130], updates: 5, jobsets: 4, scale: 0.1, validate_every: 5}"


@pytest.mark.parametrize("copy", ["algorithm"], indirect=True)
def test_a_new_algorithm_trains(copy: Copy) -> None:
    copy.agent("deeprm", finetune=YAML().load(CLIMB))
    copy.edit(jobsets=SMALL)
    copy.stages("log", "generate online", "pretrain deeprm", "finetune deeprm")
    curve = pd.read_csv(copy.root / "reports" / "curves" / "deeprm_finetune.csv")
    returns = curve[curve["metric"] == "mean_return"]["value"].tolist()
    assert len(returns) == 5
    assert returns == sorted(returns)


@pytest.mark.parametrize("copy", ["log_format"], indirect=True)
def test_a_new_log_format_becomes_jobsets(copy: Copy) -> None:
    lines = [f"{600 * k} {1800 * (1 + k % 5)} {1 + k % 8} {1000 * (k % 3)}" for k in range(2000)]
    (copy.root / "site.log").write_text("\n".join(lines))
    copy.edit(workload=("name: synthetic\n", "name: log\n  format: plain\n  path: site.log\n"))
    with copy.rows() as rows:
        for key in ("short", "long", "short_share"):
            del rows["workload"][key]
    copy.stages("log", "generate online")
    jobs = pd.read_parquet(copy.root / "data" / "jobsets" / "online" / "train.parquet")
    assert jobs.groupby("jobset").size().tolist() == [100] * 12  # 60 % of 2,000 jobs in windows of 100
    assert jobs["duration"].head(5).tolist() == [1, 1, 2, 2, 3]  # 0.5 to 2.5 hours, in steps of one hour


@pytest.mark.parametrize("copy", ["problem"], indirect=True)
def test_a_fourth_problem_goes_through_every_stage(copy: Copy) -> None:
    with copy.rows() as rows:
        rows["scenarios"] = {"weighted": rows["scenarios"]["weighted"]}
        rows["agents"] = {"due_dates": rows["agents"]["due_dates"]}
        rows["transfers"], rows["hindsight"]["scenarios"], rows["gate"]["fewer"] = {}, [], {}
        rows["scenarios"]["weighted"]["jobsets"] = {"train": 4, "validation": 2, "test": 6}
        rows["agents"]["due_dates"]["pretrain"] |= {"jobsets": 4, "epochs": 40}
        rows["agents"]["due_dates"]["finetune"] |= {"updates": 2, "validate_every": 2, "jobsets": 2, "episodes": 2}
        rows["evaluation"]["resamples"] = 100
    copy.run("python", "-m", "dvc", "repro")
    scored = [
        pd.read_parquet(copy.root / "reports" / "tables" / kind / name / "jobsets.parquet")
        for kind, name in (("heuristics", "weighted"), ("agents", "due_dates"))
    ]
    late = pd.concat(scored).groupby("policy")["weighted_tardiness"].mean()
    assert set(late.index) == {"fcfs", "sjf", "wspt", "edd", "atc", "due_dates", "due_dates_pretrained"}
    assert late["due_dates_pretrained"] < late["fcfs"]  # it was cloned from atc
    assert late["atc"] < late["wspt"] < late["fcfs"]
    assert "**weighted**: mean weighted tardiness of a job." in (copy.root / "reports" / "comparison.md").read_text()


def test_a_fourth_problem_touches_nothing_but_the_seam_and_config() -> None:
    touched = re.findall(r"(?m)^diff --git a/(\S+)", (RECIPES / "problem.diff").read_text())
    own = tuple(f"pipeline/{part}/tardiness/" for part in ("problems", "core/config", "interactive"))
    outside = {path for path in touched if not path.startswith(own)}
    assert outside == {
        "params.yaml",
        "pipeline/core/config/__init__.py",
        "pipeline/core/config/problems.py",
        "pipeline/problems/__init__.py",
    }
