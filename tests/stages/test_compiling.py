"""`compile`: what it runs, and that stages find everything compiled afterwards."""

import itertools
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from builders import REPOSITORY
from repositories import Folder, begin, copied

from pipeline.core.config import Params, Sinusoidal
from pipeline.stages import compiling
from pipeline.stages.compiling import LIMITS, parts, play, smoke_test_params


def test_the_smallest_problem_has_the_same_rows_and_less_to_do(params: Params) -> None:
    small = smoke_test_params(params)
    assert small.threads == 1
    assert {name: row.network for name, row in small.agents.items()} == {
        name: row.network for name, row in params.agents.items()
    }
    for name, row in small.scenarios.items():
        big = params.scenarios[name]
        workload = getattr(row, "workload", None)
        if isinstance(workload, Sinusoidal):
            assert workload.intervals == LIMITS["intervals"]
            row = row.model_copy(update={"workload": workload.model_copy(update={"intervals": big.workload.intervals})})  # noqa: PLW2901
        assert row.model_copy(update={"jobsets": big.jobsets}) == big
        assert row.jobsets.validation == min(LIMITS["validation"], big.jobsets.validation)
        assert row.jobsets.test == LIMITS["test"]
    budgets = {row.pretrain.budget for row in small.agents.values()} | {
        row.finetune.budget for row in small.agents.values()
    }
    assert budgets == {1}


def test_what_is_smaller_already_stays(params: Params) -> None:
    one = params.hindsight.model_copy(update={"jobsets": 1, "limit": 0.0005})
    assert smoke_test_params(params.model_copy(update={"hindsight": one})).hindsight == one


def test_every_stage_that_computes_is_played(params: Params) -> None:
    steps = [step for part in parts(params, list(params.scenarios)) for step in part]
    for stage, names in (
        ("pretrain", params.agents),
        ("finetune", params.agents),
        ("evaluate", params.agents),
        ("transfer", params.transfers),
        ("heuristics", params.scenarios),
        ("hindsight", params.hindsight.scenarios),
    ):
        assert {subject for played, subject in steps if played == stage} == set(names), stage


def test_processes_share_no_kernel_but_those_of_sampling() -> None:
    """Each process compiles one or several problems; a test below checks what they share."""
    package = REPOSITORY / "pipeline"
    words = re.compile(r"^@(threaded|njit)\b", re.MULTILINE)
    kept = [path.relative_to(package) for path in package.rglob("*.py") if words.search(path.read_text())]
    shared = {path.as_posix() for path in kept if path.parts[0] != "problems"}
    assert shared == {"learning/sampling.py", "sites/replay.py"}  # only advice uses the latter
    assert {path.parts[1] for path in kept if path.parts[0] == "problems"} == {"pool", "machines", "groups"}


def test_a_part_that_cannot_be_played_is_named(params: Params, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    said = play(smoke_test_params(params), [("heuristics", "online"), ("hindsight", "online")])
    assert said.startswith("heuristics online: ")
    assert "data/jobsets/online" in said
    assert not list(tmp_path.rglob("*.parquet"))


def test_so_is_one_with_a_fault(params: Params, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError("expected a tensor,\n got none")

    monkeypatch.setattr("pipeline.stages.generate.run", fails)
    said = play(smoke_test_params(params), [("generate", "online")])
    assert said == "generate online: RuntimeError expected a tensor, got none"


class Started(Folder):
    """A repository in which `compile` runs, with separate compiled code."""

    def begin(self) -> tuple[subprocess.Popen[str], Path]:
        """Start `compile`; return where one of its processes works once it has drawn jobsets and compiles policies."""
        process = subprocess.Popen(
            [sys.executable, "-m", "pipeline", "compile"],
            cwd=self.root,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        while not (drawn := list(self.scratch.glob("*/*/data/jobsets/online/origin.json"))):
            assert process.poll() is None, process.communicate()[0]
            time.sleep(0.05)
        return process, drawn[0].parents[3]

    @property
    def scratch(self) -> Path:
        """The folder of its temporary folders."""
        return Path(self._environment["TMPDIR"])


@pytest.fixture
def started(tmp_path: Path) -> Started:
    (tmp_path / "scratch").mkdir()
    more = {
        "HOME": str(tmp_path),
        "DVC_SITE_CACHE_DIR": str(tmp_path / "dvc"),
        "TMPDIR": str(tmp_path / "scratch"),
    }
    return Started(begin(tmp_path / "folder", more).root, more)


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_all_its_processes(started: Started, sent: signal.Signals, code: int) -> None:
    process, _ = started.begin()
    children = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(sent)
    said = process.communicate(timeout=30)[0]
    assert process.returncode == code
    assert said.splitlines()[-1].endswith("run again to resume")
    assert "Traceback" not in said
    assert children
    _, alive = psutil.wait_procs(children, timeout=10)
    assert alive == []


def working_directory(process: psutil.Process) -> set[Path]:
    """Return a process's working directory, in a set that is empty if the process has ended meanwhile."""
    with suppress(psutil.NoSuchProcess):
        return {Path(process.cwd())}
    return set()


def test_a_process_that_the_system_ends_is_told_and_no_harm(started: Started) -> None:
    process, place = started.begin()
    (playing,) = [child for child in psutil.Process(process.pid).children() if place in working_directory(child)]
    playing.kill()
    said = process.communicate(timeout=30)[0].splitlines()
    assert process.returncode == 0
    assert said[-1].startswith("compile: a process was killed")
    assert not [line for line in said if "Traceback" in line]


def test_a_log_that_is_not_there_is_one_line(started: Started) -> None:
    started.edit(workload={"name": "swf", "path": "nowhere.swf"})
    done = subprocess.run(
        [sys.executable, "-m", "pipeline", "compile"],
        check=False,
        cwd=started.root,
        env=started._environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    line = f"error: params.yaml: workload.path: no such file or folder: {started.root / 'nowhere.swf'}"
    assert done.stderr.splitlines()[-1] == line


MORE = """
from pipeline.core.config import load_params
from pipeline.stages import compiling
from pipeline.stages.compiling import parts, play

compiling.LIMITS = {**compiling.LIMITS, "validation": 20, "test": 70, "jobsets": 20, "updates": 2}
params = load_params()
less = compiling.smoke_test_params(params)
for steps in ([("log", "")], *parts(params, list(params.scenarios))):
    said = play(less, steps)
    assert not said, said
"""


@pytest.mark.slow
def test_behind_it_no_stage_of_params_yaml_compiles_anything(tmp_path: Path) -> None:
    folder = copied(tmp_path, {"HOME": str(tmp_path)})
    said = folder.run(sys.executable, "-m", "pipeline", "compile")
    assert "left out" not in said
    assert "done in" in said
    assert not (tmp_path / "data" / "jobsets").exists()
    place = tmp_path / "pipeline" / "__pycache__"
    kept = {path: path.stat().st_mtime_ns for path in place.rglob("*.nbc")}
    assert len(kept) >= 50
    assert len(list(place.rglob("sampling.*.nbc"))) == 2  # one of each: the same from whichever process comes first
    folder.run(sys.executable, "-c", MORE)
    assert {path: path.stat().st_mtime_ns for path in place.rglob("*.nbc")} == kept


def test_what_was_compiled_is_not_compiled_again_and_other_words_are(
    params: Params, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    asked: list[list[list[compiling.Step]]] = []

    def played(small: Params, by_problem: list[list[list[compiling.Step]]]) -> None:
        asked.append(by_problem)
        for steps in itertools.chain.from_iterable(by_problem):
            compiling._set(compiling._mark(small, steps))

    monkeypatch.setattr(compiling, "_play_all", played)
    row, recipe = params.agents["deeprm"], params.recipes["ours"]
    compiling.first(params, {"compare", "log", "finetune@nobody"})
    assert asked == []
    compiling.first(params, {"finetune@deeprm"})
    (problems,) = asked
    assert [problem for problem in problems if ("generate", "shares") in itertools.chain.from_iterable(problem)] == []
    compiling.first(params, {"finetune@deeprm", "heuristics@online"})
    faster = params.model_copy(
        update={"recipes": params.recipes | {"ours": recipe.model_copy(update={"learning_rate": 0.5})}}
    )
    compiling.first(faster, {"finetune@deeprm"})
    assert len(asked) == 1
    other = row.model_copy(update={"network": params.agents["deeprm2"].network})
    compiling.first(params.model_copy(update={"agents": params.agents | {"deeprm": other}}), {"finetune@deeprm"})
    assert len(asked) == 2
