"""The recipes of CONTRIBUTING.md, each applied to a copy of the working tree and run."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

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
    # Only one of these fits at a time; durations times mean shares are 4 * 1.0, 6 * 0.6 and 5 * 1.0.
    (copy.root / "jobs.csv").write_text(
        "jobset,job,arrival,duration,cpu,memory\n0,a,0,4,10,10\n0,b,0,6,6,6\n0,c,0,5,10,10\n"
    )
    copy.pipeline("schedule", "jobs.csv", "--scenario", "online", "--policy", "smallest_area", "--out", "out.csv")
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
    params = YAML().load(copy.root / "params.yaml")
    params["agents"]["deeprm"]["finetune"] = YAML().load(CLIMB)
    with (copy.root / "params.yaml").open("w") as stream:
        YAML().dump(params, stream)
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
    rows = YAML().load(copy.root / "params.yaml")
    for key in ("short", "long", "short_share"):
        del rows["workload"][key]
    with (copy.root / "params.yaml").open("w") as stream:
        YAML().dump(rows, stream)
    for words in ("log", "generate online"):
        copy.pipeline(*words.split())
    jobs = pd.read_parquet(copy.root / "data" / "jobsets" / "online" / "train.parquet")
    assert jobs.groupby("jobset").size().tolist() == [100] * 12  # 60 % of 2,000 jobs in windows of 100
    assert jobs["duration"].head(5).tolist() == [1, 1, 2, 2, 3]  # of 0.5 to 2.5 hours, in steps of one
