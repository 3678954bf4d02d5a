"""The pipeline as DVC runs it, on a problem of seconds: what runs, what is left alone, and what is the same twice."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from builders import REPOSITORY
from mlflow import MlflowClient
from ruamel.yaml import YAML

COPIED = ("pipeline", "dvc.yaml", "params.yaml", ".dvc/config", ".dvcignore", ".gitignore")
NOTHING = "Data and pipelines are up to date."
FOREIGN = ("DVC_", "MLFLOW_", "PIPELINE_", "GIT_", "NUMBA_")

# Numba keeps what it compiled beside the code, and temporary experiments have their code in a folder of their own: all
# of them shall use what the repository's own modules have compiled already (a stamp of the source guards it).
LOCATOR = f"""
from pathlib import Path
from numba.core.caching import InTreeCacheLocator

class Shared(InTreeCacheLocator):
    def __init__(self, py_func, py_file):
        super().__init__(py_func, py_file)
        self._cache_path = str(Path({str(REPOSITORY / "pipeline")!r}) / Path(py_file).parent.name / "__pycache__")
"""

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
        "scenario": "online",
        "objective": "slowdown",
        "network": {"name": "mlp", "hidden": 4, "clock": False},
        "pretrain": {"name": "none"},
        "finetune": REINFORCE,
    },
    "cloned": {
        "scenario": "online",
        "objective": "makespan",
        "network": {"name": "cnn", "channels": [2, 2], "hidden": 8, "clock": True},
        "pretrain": CLONE,
        "finetune": REINFORCE | {"recipe": "paper"},
    },
}
STAGES = {
    "log",
    "generate@online",
    "heuristics@online",
    *(f"{kind}@{agent}" for kind in ("pretrain", "finetune", "evaluate") for agent in AGENTS),
    "compare",
}


class Folder:
    """A repository of its own, and the commands that are run in it."""

    def __init__(self, root: Path, more: Mapping[str, str]) -> None:
        self.root = root
        self._environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith(FOREIGN)},
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "DVC_NO_ANALYTICS": "1",
            "GIT_CONFIG_NOSYSTEM": "1",
            "PIPELINE_TRACKING": "off",
            **{f"GIT_{who}_{what}": "t@t" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
            **more,
        }

    def run(self, *words: str, **more: str) -> str:
        """Run a command and return all that it says."""
        named = {**self._environment, **more}
        done = subprocess.run(
            words, check=False, cwd=self.root, env=named, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        assert done.returncode == 0, done.stdout
        return done.stdout

    def dvc(self, *words: str, **more: str) -> str:
        return self.run(sys.executable, "-m", "dvc", *words, **more)

    def git(self, *words: str) -> str:
        return self.run("git", *words)

    def stale(self) -> set[str]:
        """The stages that DVC would look at again."""
        return set(json.loads(self.dvc("status", "--json")))

    def edit(self, **values: Any) -> None:
        """Change rows of params.yaml, as scenarios__online__horizon=16."""
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
        """The md5 of every output, by dvc.lock."""
        stages = YAML(typ="safe").load(self.root / "dvc.lock")["stages"].values()
        return {out["path"]: out["md5"] for stage in stages for out in stage["outs"]}


def ran(said: str) -> list[str]:
    """The stages that DVC ran, by what it said."""
    return [line.split("'")[1] for line in said.splitlines() if line.startswith("Running stage '")]


def begin(root: Path, more: Mapping[str, str]) -> Folder:
    """The working tree's pipeline in a new repository, on the small problem."""
    for name in COPIED:
        source, target = REPOSITORY / name, root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, target)
    folder = Folder(root, more)
    rows = YAML(typ="safe").load(root / "params.yaml")
    scenario = rows["scenarios"]["online"] | SCENARIO
    knobs = {"tetris_weights": [0.1, 0.5], "hold_quantiles": [0.9]}
    folder.edit(threads=1, scenarios={"online": scenario}, agents=AGENTS, heuristics=knobs, evaluation__resamples=100)
    folder.git("init", "--quiet", "--initial-branch", "main")
    folder.git("add", "--all")
    folder.git("commit", "--quiet", "-m", "the small problem")
    return folder


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What lets every process of these tests share compiled code, and keeps DVC's own notes out of the system's."""
    place = tmp_path_factory.mktemp("shared")
    (place / "shared_locator.py").write_text(LOCATOR)
    return {
        "PYTHONPATH": str(place),
        "NUMBA_CACHE_LOCATOR_CLASSES": "shared_locator.Shared,InTreeCacheLocator",
        "DVC_SITE_CACHE_DIR": str(place / "dvc"),
        "HOME": str(place),
    }


@pytest.fixture(scope="session")
def reproduced(tmp_path_factory: pytest.TempPathFactory, environment: dict[str, str]) -> tuple[Folder, str]:
    """A repository in which `dvc repro` ran once, its dvc.lock committed, and what DVC said."""
    folder = begin(tmp_path_factory.mktemp("first") / "repository", environment)
    said = folder.dvc("repro")
    folder.git("add", "--all")
    folder.git("commit", "--quiet", "-m", "reproduced")
    return folder, said


@pytest.fixture
def folder(reproduced: tuple[Folder, str], tmp_path: Path, environment: dict[str, str]) -> Folder:
    """A copy of it, to be changed."""
    shutil.copytree(reproduced[0].root, tmp_path / "copy", symlinks=True)
    return Folder(tmp_path / "copy", environment)


def bytes_of(root: Path) -> dict[str, bytes]:
    """All results, by name."""
    found = (path for place in ("data", "models", "reports") for path in (root / place).rglob("*"))
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in found if path.is_file()}


# What runs


def test_one_repro_runs_every_stage_once(reproduced: tuple[Folder, str]) -> None:
    folder, said = reproduced
    assert sorted(ran(said)) == sorted(STAGES)
    slowdown = json.loads((folder.root / "reports" / "slowdown.json").read_text())["online"]
    assert list(slowdown) == ["load_060", "load_150"]
    assert {"sjf", "plain", "plain_pretrained", "cloned", "cloned_pretrained"} <= set(slowdown["load_060"])
    assert {path.name for path in (folder.root / "reports" / "figures").iterdir()} == {
        "slowdown_online.png",
        "learning_plain.png",
        "learning_cloned.png",
    }


def test_a_second_repro_does_nothing(folder: Folder) -> None:
    before = bytes_of(folder.root)
    assert folder.dvc("status").strip() == NOTHING
    said = folder.dvc("repro")
    assert ran(said) == []
    assert said.strip().endswith(NOTHING)
    assert bytes_of(folder.root) == before
    assert folder.git("status", "--porcelain") == ""


def test_nothing_of_a_run_but_results_is_left_for_git(reproduced: tuple[Folder, str]) -> None:
    tracked = set(reproduced[0].git("ls-files").split())
    assert {"dvc.lock", "reports/comparison.csv", "reports/slowdown.json"} <= tracked
    assert not [name for name in tracked if name.startswith(("data/", "models/", "reports/tables/"))]


def test_the_report_of_a_run_is_one_page_that_git_does_not_see(folder: Folder) -> None:
    folder.run(sys.executable, "-m", "pipeline", "report")
    page = (folder.root / "reports" / "index.html").read_text()
    assert "Nothing: metrics, parameters and outputs are those of commit " in page
    assert page.count("data:image/png;base64,") >= 4  # slowdown, two that learned, one schedule
    assert folder.git("status", "--porcelain") == ""
    assert folder.dvc("status").strip() == NOTHING


@pytest.mark.parametrize(
    ("values", "stale"),
    [
        ({"agents__plain__finetune__updates": 3}, {"finetune@plain", "compare"}),
        ({"agents__cloned__pretrain__epochs": 3}, {"pretrain@cloned", "compare"}),
        ({"evaluation__confidence": 0.9}, {"compare"}),
        ({"heuristics__hold_quantiles": [0.8]}, {"heuristics@online"}),
        ({"recipes__paper__gamma": 0.9}, {"pretrain@cloned", "finetune@cloned", "evaluate@cloned"}),
        ({"seed": 2}, STAGES - {"log"}),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_number_touches_only_the_stages_that_read_it(folder: Folder, values: dict[str, Any], stale: set[str]) -> None:
    folder.edit(**values)
    assert folder.stale() == stale


def test_an_agents_finetuning_runs_again_alone(folder: Folder) -> None:
    before = folder.outs()
    said = folder.dvc("exp", "run", "-S", "agents.plain.finetune.updates=8")
    changed = {path for path, md5 in folder.outs().items() if md5 != before[path]}
    assert "reports/curves/plain_finetune.csv" in changed
    # The best weights on validation jobsets are kept; where they are the old ones, there is nothing to evaluate.
    evaluated = {"evaluate@plain"} if "models/plain/policy" in changed else set()
    assert set(ran(said)) == {"finetune@plain", "compare"} | evaluated
    assert not [path for path in changed if "cloned" in path or path.startswith(("data", "reports/tables/heur"))]


def test_code_touches_only_the_stages_that_run_it(folder: Folder) -> None:
    with (folder.root / "pipeline" / "policies" / "encodings.py").open("a") as file:
        file.write("# changed\n")
    assert folder.stale() == {f"{kind}@{agent}" for kind in ("pretrain", "finetune", "evaluate") for agent in AGENTS}


def test_deleted_results_come_back_without_running(folder: Folder) -> None:
    before = bytes_of(folder.root)
    for name in ("data/jobsets", "models/cloned/policy", "reports/tables/agents"):
        shutil.rmtree(folder.root / name)
    (folder.root / "reports" / "slowdown.json").unlink()
    said = folder.dvc("repro")
    assert ran(said) == []
    assert "is cached - skipping run, checking out outputs" in said
    assert bytes_of(folder.root) == before


def test_another_folder_gives_the_same_bytes(
    reproduced: tuple[Folder, str], tmp_path: Path, environment: dict[str, str]
) -> None:
    other = begin(tmp_path / "elsewhere" / "deeper", {**environment, "PYTHONHASHSEED": "7"})
    said = other.dvc("repro", "finetune@cloned", "heuristics@online")
    assert sorted(ran(said)) == [
        "finetune@cloned",
        "generate@online",
        "heuristics@online",
        "log",
        "pretrain@cloned",
    ]
    here, there = reproduced[0].outs(), other.outs()
    assert len(there) == 7
    assert {path: here[path] for path in there} == there


@pytest.mark.slow
def test_another_folder_gives_the_same_dvc_lock(
    reproduced: tuple[Folder, str], tmp_path: Path, environment: dict[str, str]
) -> None:
    other = begin(tmp_path / "elsewhere" / "deeper", {**environment, "PYTHONHASHSEED": "7"})
    other.dvc("repro")
    assert other.outs() == reproduced[0].outs()
    assert (other.root / "dvc.lock").read_bytes() == (reproduced[0].root / "dvc.lock").read_bytes()


# Experiments, and MLflow's view of them


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


def test_a_temporary_experiment_logs_beside_the_repository_s_own_runs(folder: Folder) -> None:
    folder.edit(evaluation__confidence=0.9)
    said = folder.dvc("repro", PIPELINE_TRACKING="on")
    assert ran(said) == ["compare"]
    assert "tracking:" not in said
    ((own, stages),) = tracked(folder.root).items()
    assert stages == ["compare"]
    lock = (folder.root / "dvc.lock").read_bytes()
    before = bytes_of(folder.root)

    said = folder.dvc("exp", "run", "--temp", "-n", "bold", "-S", "evaluation.confidence=0.8", PIPELINE_TRACKING="on")
    assert ran(said) == ["log", "compare"]  # the link to the log is never cached, so there is none in a new folder
    assert "tracking:" not in said
    found = tracked(folder.root)
    assert len(found) == 2
    (added,) = set(found) - {own}
    assert added.startswith("bold-")
    assert found == {own: ["compare"], added: ["compare"]}
    assert (folder.root / "dvc.lock").read_bytes() == lock
    assert bytes_of(folder.root) == before
    assert "bold" in folder.dvc("exp", "list", "--name-only")


@pytest.mark.slow
def test_queued_experiments_log_beside_the_repository_s_own_runs(folder: Folder) -> None:
    for name, confidence in (("first", 0.8), ("second", 0.7)):
        folder.dvc("exp", "run", "--queue", "-n", name, "-S", f"evaluation.confidence={confidence}")
    folder.dvc("exp", "run", "--run-all", PIPELINE_TRACKING="on")
    found = tracked(folder.root)
    assert sorted(name.partition("-")[0] for name in found) == ["first", "second"]
    assert list(found.values()) == [["compare"], ["compare"]]
    assert {"first", "second"} <= set(folder.dvc("exp", "list", "--name-only").split())


@pytest.mark.slow
def test_every_stage_of_a_tracked_repro_is_recorded(tmp_path: Path, environment: dict[str, str]) -> None:
    folder = begin(tmp_path / "tracked", environment)
    said = folder.dvc("repro", PIPELINE_TRACKING="on")
    assert "tracking:" not in said
    (stages,) = tracked(folder.root).values()
    assert sorted(stages) == sorted(STAGES - {"log"})
    # What is recorded must not change what is computed.
    again = begin(tmp_path / "untracked", environment)
    again.dvc("repro")
    assert folder.outs() == again.outs()


# A user's log


def write_log(path: Path, jobs: int, run_s: int = 3600) -> None:
    """A log of 16 processors: job k comes in hour k / 2 and runs for one to seven times `run_s`."""
    lines = [
        f"{k} {k * 1800} 0 {run_s * (1 + k * k % 7)} {1 + k * 5 % 9} -1 1000 {1 + k * 5 % 9} -1 1000 1 1 1 1 1 -1 -1 -1"
        for k in range(1, jobs + 1)
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(["; MaxProcs: 16", *lines, ""]))


@pytest.fixture
def on_log(folder: Folder) -> Folder:
    """The same, on a log that lies outside the repository."""
    write_log(folder.root.parent / "logs" / "small.swf", 400)
    folder.edit(workload={"name": "swf", "path": "../logs/small.swf", "window": 10})
    return folder


def test_a_changed_log_under_the_same_path_is_noticed(on_log: Folder) -> None:
    log = on_log.root.parent / "logs" / "small.swf"
    content = log.read_bytes()
    assert ran(on_log.dvc("repro", "generate@online")) == ["log", "generate@online"]
    assert (on_log.root / "data" / "log").resolve() == log
    first = on_log.outs()["data/jobsets/online"]
    assert on_log.dvc("status", "log", "generate@online").strip() == NOTHING

    write_log(log, 400, run_s=7200)
    changed = log.read_bytes()
    assert {"log", "generate@online"} <= on_log.stale()
    assert "generate@online" in ran(on_log.dvc("repro", "generate@online"))
    assert on_log.outs()["data/jobsets/online"] != first

    log.write_bytes(content)
    assert {"log", "generate@online"} <= on_log.stale()
    on_log.dvc("repro", "generate@online")
    assert on_log.outs()["data/jobsets/online"] == first
    assert log.read_bytes() == content != changed


def test_a_relative_path_to_a_log_holds_in_a_temporary_experiment(on_log: Folder) -> None:
    said = on_log.dvc("exp", "run", "--temp", "-n", "logged", "generate@online")
    assert ran(said) == ["log", "generate@online"]
    assert "400 jobs over " in said
    lock = YAML(typ="safe").load(on_log.git("show", f"{reference(on_log, 'logged')}:dvc.lock"))
    on_log.dvc("repro", "generate@online")
    assert lock["stages"]["generate@online"]["outs"][0]["md5"] == on_log.outs()["data/jobsets/online"]
    assert (on_log.root / "data" / "log").readlink() == on_log.root.parent / "logs" / "small.swf"


def reference(folder: Folder, experiment: str) -> str:
    """The git reference of an experiment."""
    found = folder.git("for-each-ref", "--format=%(refname)", "refs/exps").split()
    (name,) = [name for name in found if name.endswith(f"/{experiment}")]
    return name


def test_back_from_a_log_the_users_file_is_untouched(on_log: Folder) -> None:
    log = on_log.root.parent / "logs" / "small.swf"
    content = log.read_bytes()
    on_log.dvc("repro", "log")
    on_log.git("checkout", "--quiet", "params.yaml")
    said = on_log.dvc("repro")
    assert "log" in ran(said)
    assert not (on_log.root / "data" / "log").is_symlink()
    assert log.read_bytes() == content
    assert on_log.stale() == set()
