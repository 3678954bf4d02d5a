"""The recipes of CONTRIBUTING.md, each applied to a copy of the working tree and run."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
RECIPES = REPOSITORY / "docs" / "recipes"
NEEDED = ("pipeline", "params.yaml", "dvc.yaml", ".dvc/config", "pyproject.toml")


class Copy:
    """A copy of the project with one recipe applied."""

    def __init__(self, root: Path, recipe: str) -> None:
        self.root = root
        for name in NEEDED:
            source, target = REPOSITORY / name, root / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copytree(source, target) if source.is_dir() else shutil.copy2(source, target)
        self.run("git", "init", "--quiet")
        self.run("git", "apply", str(RECIPES / f"{recipe}.diff"))

    def run(self, *words: str) -> str:
        """Run a command in the copy and return what it says."""
        named = {**os.environ, "PIPELINE_TRACKING": "off", "PYTHONPATH": str(self.root)}
        done = subprocess.run(words, check=False, cwd=self.root, env=named, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def pipeline(self, *words: str) -> None:
        self.run(sys.executable, "-m", "pipeline", *words)


@pytest.fixture
def copy(tmp_path: Path, request: pytest.FixtureRequest) -> Copy:
    return Copy(tmp_path / "copy", request.param)


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
