"""The recipes of CONTRIBUTING.md, each applied to a copy of the working tree and run."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from ruamel.yaml import YAML

REPOSITORY = Path(__file__).resolve().parents[1]
RECIPES = REPOSITORY / "docs" / "recipes"
NEEDED = ("pipeline", "params.yaml", "dvc.yaml", ".dvc/config", "pyproject.toml")


class Copy:
    """A copy of the project with one recipe applied."""

    def __init__(self, root: Path, recipe: str, environment: Mapping[str, str]) -> None:
        self.root = root
        self._environment = {**environment, "PYTHONPATH": f"{root}{os.pathsep}{environment['PYTHONPATH']}"}
        for name in NEEDED:
            source, target = REPOSITORY / name, root / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copytree(source, target) if source.is_dir() else shutil.copy2(source, target)
        self.run("git", "init", "--quiet")
        self.run("git", "apply", str(RECIPES / f"{recipe}.diff"))

    def run(self, *words: str) -> str:
        """Run a command in the copy and return what it says."""
        named = {**os.environ, **self._environment, "PIPELINE_TRACKING": "off"}
        done = subprocess.run(words, check=False, cwd=self.root, env=named, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def edit(self, **changes: tuple[str, str]) -> None:
        """Replace words of params.yaml wherever they stand."""
        path = self.root / "params.yaml"
        text = path.read_text()
        for old, new in changes.values():
            assert text.count(old) >= 1, old
            text = text.replace(old, new)
        path.write_text(text)

    @contextmanager
    def rows(self) -> Iterator[dict[str, Any]]:
        """Give params.yaml to be changed, and write it back."""
        path = self.root / "params.yaml"
        rows = YAML().load(path)
        yield rows
        YAML().dump(rows, path)

    def agent(self, name: str, **changes: object) -> None:
        """Change an agent's row of params.yaml."""
        with self.rows() as rows:
            rows["agents"][name].update(changes)

    def pipeline(self, *words: str) -> None:
        self.run(sys.executable, "-m", "pipeline", *words)


@pytest.fixture
def copy(tmp_path: Path, request: pytest.FixtureRequest, environment: dict[str, str]) -> Copy:
    return Copy(tmp_path / "copy", request.param, environment)


def test_contributing_names_every_recipe() -> None:
    named = set(re.findall(r"docs/recipes/(\w+)\.diff", (REPOSITORY / "CONTRIBUTING.md").read_text()))
    assert named == {path.stem for path in RECIPES.iterdir()}


@pytest.mark.parametrize("copy", ["heuristic"], indirect=True)
def test_a_new_heuristic_schedules(copy: Copy) -> None:
    # Only one of these fits at a time; mean shares are 1.0, 0.6 and 1.0, and ties go to the first to arrive.
    (copy.root / "jobs.csv").write_text(
        "jobset,job,arrival,duration,cpu,memory\n0,a,0,4,10,10\n0,b,0,6,6,6\n0,c,0,5,10,10\n"
    )
    copy.pipeline("schedule", "jobs.csv", "--scenario", "online", "--policy", "narrowest", "--out", "out.csv")
    assert pd.read_csv(copy.root / "out.csv")["start"].tolist() == [6, 0, 10]


@pytest.mark.parametrize("copy", ["system"], indirect=True)
def test_a_new_system_is_trained_and_scored(copy: Copy) -> None:
    stages = copy.run(sys.executable, "-m", "dvc", "stage", "list", "--name-only").split()
    assert {"generate@three_resources", "heuristics@three_resources", "finetune@narrow", "evaluate@narrow"} <= set(
        stages
    )
    for words in ("log", "generate three_resources", "pretrain narrow", "finetune narrow", "evaluate agent narrow"):
        copy.pipeline(*words.split())
    scored = pd.read_parquet(copy.root / "reports" / "tables" / "agents" / "narrow" / "jobsets.parquet")
    assert scored.groupby(["policy", "load"]).size().to_dict() == {
        (policy, load): 50 for policy in ("narrow", "narrow_pretrained") for load in (70, 130)
    }


SMALL = ("jobsets: {train: 100, validation: 50, test: 200}", "jobsets: {train: 80, validation: 4, test: 4}")


@pytest.mark.parametrize("copy", ["metric"], indirect=True)
def test_a_new_metric_stands_in_the_table_of_jobsets(copy: Copy) -> None:
    copy.edit(jobsets=SMALL, searched=("linear: {population: 32, rounds: 6, elite: 6}", "linear: null"))
    for words in ("log", "generate online", "evaluate heuristics online"):
        copy.pipeline(*words.split())
    tables, keys = copy.root / "reports" / "tables" / "heuristics" / "online", ["policy", "load", "jobset"]
    found = pd.read_parquet(tables / "jobsets.parquet").set_index(keys)["p90_slowdown"]
    expected = pd.read_parquet(tables / "jobs.parquet").groupby(keys)["slowdown"].quantile(0.9)
    pd.testing.assert_series_equal(found.sort_index(), expected, check_names=False)


# One unit, jobs of 1 and 2 steps that arrive at once: two of them are there in step 0, and one in steps 1 and 2.
TWO_JOBS = """
import numpy as np
from pipeline.core import keys
from pipeline.problems.pool.heuristics.scores import HEURISTICS
from pipeline.problems.pool.nouns import Cluster, JobSet, batch
from pipeline.problems.pool.simulator.compiled.batch import Batched
from pipeline.problems.pool.simulator.reference import Timestep
from pipeline.simulation.rollout import play

jobs, cluster = JobSet(np.array([0, 0]), np.array([1, 2]), np.array([[1], [1]])), Cluster((1,), 5, 2, 0, False)
plain, compiled = Timestep(jobs, cluster, 9, "crowding"), Batched(batch([jobs]), cluster, 9, "crowding")
for simulator in (plain, compiled):
    play(simulator, HEURISTICS["sjf"], keys(1, np.zeros(1, dtype=int), np.zeros(1, dtype=int)))
print(plain.rewards, compiled.rewards[0, :3].tolist())
"""
ONE_UPDATE = "{name: reinforce, recipe: ours, loads: [130], updates: 1, jobsets: 2, episodes: 2, validate_every: 1}"


@pytest.mark.parametrize("copy", ["objective"], indirect=True)
def test_a_new_objective_is_learned(copy: Copy) -> None:
    assert copy.run(sys.executable, "-c", TWO_JOBS) == "[-4.0, -1.0, -1.0] [-4.0, -1.0, -1.0]\n"
    copy.agent("deeprm", objective="crowding", finetune=YAML().load(ONE_UPDATE))
    copy.edit(jobsets=SMALL)
    for words in ("log", "generate online", "pretrain deeprm", "finetune deeprm"):
        copy.pipeline(*words.split())
    card = json.loads((copy.root / "models" / "deeprm" / "policy" / "policy.json").read_text())
    assert card["objective"] == "crowding"


@pytest.mark.parametrize("copy", ["network"], indirect=True)
def test_a_new_network_is_built_stored_and_played(copy: Copy) -> None:
    copy.edit(
        jobsets=SMALL,
        network=("network: {name: mlp, hidden: 20, clock: false}", "network: {name: flat, clock: true}"),
    )
    for words in ("log", "generate online", "pretrain deeprm"):
        copy.pipeline(*words.split())
    card = json.loads((copy.root / "models" / "deeprm" / "pretrained" / "policy.json").read_text())
    assert card["network"] == {"name": "flat", "clock": True}
    assert card["weights"]["tensors"]["only.weight"]["shape"] == [11, 20 * (2 * 10 * 11 + 3 + 1)]


CLIMB = "{name: climb, recipe: ours, loads: [130], updates: 5, jobsets: 4, scale: 0.1, validate_every: 5}"


@pytest.mark.parametrize("copy", ["algorithm"], indirect=True)
def test_a_new_algorithm_trains(copy: Copy) -> None:
    copy.agent("deeprm", finetune=YAML().load(CLIMB))
    copy.edit(jobsets=SMALL)
    for words in ("log", "generate online", "pretrain deeprm", "finetune deeprm"):
        copy.pipeline(*words.split())
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
    for words in ("log", "generate online"):
        copy.pipeline(*words.split())
    jobs = pd.read_parquet(copy.root / "data" / "jobsets" / "online" / "train.parquet")
    assert jobs.groupby("jobset").size().tolist() == [100] * 12  # 60 % of 2,000 jobs in windows of 100
    assert jobs["duration"].head(5).tolist() == [1, 1, 2, 2, 3]  # of 0.5 to 2.5 hours, in steps of one


@pytest.mark.parametrize("copy", ["problem"], indirect=True)
def test_a_fourth_problem_goes_through_every_stage(copy: Copy) -> None:
    with copy.rows() as rows:
        rows["scenarios"] = {"weighted": rows["scenarios"]["weighted"]}
        rows["agents"] = {"due_dates": rows["agents"]["due_dates"]}
        rows["transfers"], rows["hindsight"]["scenarios"] = {}, []
        rows["scenarios"]["weighted"]["jobsets"] = {"train": 12, "validation": 6, "test": 10}
        rows["agents"]["due_dates"]["finetune"] |= {"updates": 5, "validate_every": 5}
    copy.run(sys.executable, "-m", "dvc", "repro", "--quiet")
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
    own = ("pipeline/problems/tardiness/", "pipeline/config/tardiness/")
    outside = {path for path in touched if not path.startswith(own)}
    assert outside == {
        "params.yaml",
        "pipeline/config/__init__.py",
        "pipeline/config/problems.py",
        "pipeline/problems/__init__.py",
    }
