"""Separate repositories for tests: the working tree's pipeline on a problem of seconds, and commands that run in it."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from builders import REPOSITORY
from mlflow import MlflowClient
from ruamel.yaml import YAML

COPIED = (
    "pipeline",
    "dvc.yaml",
    "params.yaml",
    ".dvc/config",
    ".dvc/plots",
    ".ci",
    ".dvcignore",
    ".gitignore",
)
NOTHING = "Data and pipelines are up to date."
FOREIGN = ("DVC_", "MLFLOW_", "PIPELINE_", "GIT_", "NUMBA_")

SCENARIO = {
    "horizon": 16,
    "slots": 3,
    "backlog": 10,
    "step_limit": 200,
    "arrivals": {"name": "poisson", "steps": 20},
    "loads": [60, 150],
    "jobsets": {"train": 8, "validation": 4, "test": 6},
}
REINFORCE = {
    "name": "reinforce",
    "recipe": "ours",
    "loads": [150],
    "updates": 2,
    "jobsets": 2,
    "episodes": 2,
    "validate_every": 1,
}
CLONE = {
    "name": "clone",
    "teacher": "sjf",
    "loads": [60, 150],
    "jobsets": 4,
    "epochs": 2,
    "patience": 1,
    "batch": 16,
    "learning_rate": 0.001,
    "entropy": 0.3,
}
AGENTS = {
    "plain": {
        "problem": "pool",
        "scenario": "online",
        "objective": "slowdown",
        "network": {"name": "mlp", "hidden": 4, "clock": False},
        "pretrain": {"name": "none"},
        "finetune": REINFORCE,
    },
    "cloned": {
        "problem": "pool",
        "scenario": "online",
        "objective": "makespan",
        "network": {"name": "cnn", "channels": [2, 2], "hidden": 8, "clock": True},
        "pretrain": CLONE,
        "finetune": REINFORCE | {"recipe": "paper"},
    },
}
LINEAR_SEARCH = {"population": 4, "rounds": 1, "elite": 2}
HINDSIGHT = {"scenarios": ["online"], "jobsets": 2, "limit": 0.01}
STAGES = {
    "log",
    "generate@online",
    "heuristics@online",
    "hindsight@online",
    *(f"{kind}@{agent}" for kind in ("pretrain", "finetune", "evaluate") for agent in AGENTS),
    "compare",
    "gate",
    "papers",
}


class Folder:
    """A separate repository, and the commands that run in it."""

    def __init__(self, root: Path, more: Mapping[str, str]) -> None:
        self.root, self._more = root, more
        self._environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith(FOREIGN)},
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "DVC_NO_ANALYTICS": "1",
            "GIT_CONFIG_NOSYSTEM": "1",
            "PIPELINE_TRACKING": "off",
            **{f"GIT_{who}_{what}": "t@t" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
            **more,
        }

    def copied(self, root: Path) -> "Folder":
        """Return a copy that may be changed."""
        shutil.copytree(self.root, root, symlinks=True)
        return Folder(root, self._more)

    def run(self, *words: str, **more: str) -> str:
        """Run a command and return all of its output."""
        named = {**self._environment, **more}
        done = subprocess.run(
            words, check=False, cwd=self.root, env=named, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        assert done.returncode == 0, done.stdout
        return done.stdout

    def dvc(self, *words: str, **more: str) -> str:
        return self.run("python", "-m", "dvc", *words, **more)

    def pipeline(self, *words: str, **more: str) -> str:
        return self.run("python", "-m", "pipeline", *words, **more)

    def git(self, *words: str) -> str:
        return self.run("git", *words)

    def stale(self) -> set[str]:
        """The stages that DVC considers changed."""
        return set(json.loads(self.dvc("status", "--json")))

    def edit(self, **values: Any) -> None:
        """Change values of params.yaml, for example scenarios__online__horizon=16."""
        path = self.root / "params.yaml"
        params = YAML().load(path)
        for place, value in values.items():
            *way, last = place.split("__")
            at = params
            for key in way:
                at = at[key]
            at[last] = value
        with path.open("w") as stream:
            YAML().dump(params, stream)

    def outs(self) -> dict[str, str]:
        """The md5 of every output, from dvc.lock."""
        stages = YAML(typ="safe").load(self.root / "dvc.lock")["stages"].values()
        return {out["path"]: out["md5"] for stage in stages for out in stage["outs"]}


def ran(said: str) -> list[str]:
    """The stages that DVC ran, from its output."""
    return [line.split("'")[1] for line in said.splitlines() if line.startswith("Running stage '")]


def copied(root: Path, more: Mapping[str, str]) -> Folder:
    """The working tree's pipeline in a new folder."""
    for name in COPIED:
        source, target = REPOSITORY / name, root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, target)
    (root / "champions.yaml").write_text("# Nobody yet.\n")  # the project's champions are of its own scenarios
    return Folder(root, more)


def begin(root: Path, more: Mapping[str, str]) -> Folder:
    """The working tree's pipeline in a new repository, on the small problem."""
    folder = copied(root, more)
    rows = YAML(typ="safe").load(root / "params.yaml")
    scenario = rows["scenarios"]["online"] | SCENARIO
    knobs = {
        "pool": {"tetris_weights": [0.1, 0.5], "hold_quantiles": [0.9], "linear": LINEAR_SEARCH},
        "machines": {"mixes": [[0.0, 0.0], [0.5, 0.2]]},
        "groups": {},
    }
    sections = {
        "scenarios": {"online": scenario},
        "agents": AGENTS,
        "transfers": {},
        "sites": {},
        "hindsight": HINDSIGHT,
    }
    sections["gate__fewer"] = {}
    folder.edit(threads=1, heuristics=knobs, evaluation__resamples=100, **sections)
    folder.git("init", "--quiet", "--initial-branch", "main")
    folder.git("add", "--all")
    folder.git("commit", "--quiet", "-m", "the small problem")
    return folder


def bytes_of(root: Path) -> dict[str, bytes]:
    """All results, by name."""
    found = (path for place in ("data", "models", "reports") for path in (root / place).rglob("*"))
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in found if path.is_file()}


def tracked(root: Path) -> dict[str, list[str]]:
    """The stages of every pipeline run in the root's database."""
    client = MlflowClient(f"sqlite:///{root / 'mlflow.db'}")
    experiment = client.get_experiment_by_name("scheduler-pipeline")
    runs = client.search_runs([experiment.experiment_id])
    assert {run.info.status for run in runs} == {"FINISHED"}
    names = {run.info.run_id: run.info.run_name for run in runs if run.data.tags["stage"] == "pipeline"}
    found: dict[str, list[str]] = {name: [] for name in names.values()}
    for run in runs:
        if run.info.run_id not in names:
            found[names[run.data.tags["mlflow.parentRunId"]]].append(run.info.run_name)
    return found
