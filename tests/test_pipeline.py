"""The pipeline under DVC, on a problem of seconds: what runs, what does not run, and what is reproducible."""

import json
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from repositories import AGENTS, NOTHING, STAGES, Folder, begin, bytes_of, ran, tracked
from ruamel.yaml import YAML

# What runs

KINDS = ("deps", "outs")  # of a stage in dvc.lock


def test_one_repro_runs_every_stage_once(reproduced: tuple[Folder, str]) -> None:
    folder, said = reproduced
    assert sorted(ran(said)) == sorted(STAGES)
    points = json.loads((folder.root / "reports" / "slowdown.json").read_text())
    assert {(point["scenario"], point["load"]) for point in points} == {("online", 60), ("online", 150)}
    policies = {point["policy"] for point in points if point["load"] == 60}
    assert {"sjf", "plain", "plain_pretrained", "cloned", "cloned_pretrained"} <= policies
    assert {path.name for path in (folder.root / "reports" / "figures").iterdir()} == {
        "slowdown_online.png",
        "learning_plain.png",
        "learning_cloned.png",
    }
    # `cloned` is trained for makespan; of the papers' schedulers there is only DeepRM.
    assert {path.name for path in (folder.root / "reports" / "papers").iterdir()} == {
        "loads_online.png",
        "objectives_online_60.png",
        "objectives_online_150.png",
        "learning_plain.png",
        "learning_cloned.png",
        "durations_plain.png",
        "withheld_plain.png",
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
    assert {"dvc.lock", "reports/comparison.csv", "reports/metrics.json", "reports/papers.csv"} <= tracked
    assert not [name for name in tracked if name.startswith(("data/", "models/", "reports/tables/"))]


def test_the_report_of_a_run_is_one_page_that_git_does_not_see(folder: Folder) -> None:
    # a separate process: it may have to compile, which a fork cannot do on more threads than its parent
    folder.run(sys.executable, "-m", "pipeline", "report")
    page = (folder.root / "reports" / "index.html").read_text()
    assert "No changes: metrics, parameters and outputs are those of commit " in page
    assert page.count("data:image/png;base64,") >= 4  # slowdown, two learning curves, one schedule
    assert folder.git("status", "--porcelain") == ""
    assert folder.dvc("status").strip() == NOTHING


@pytest.fixture(scope="module")
def asked(reproduced: tuple[Folder, str], tmp_path_factory: pytest.TempPathFactory) -> Folder:
    """A copy of the repository in which no stage runs: DVC only says what would run."""
    return reproduced[0].copied(tmp_path_factory.mktemp("asked") / "copy")


@pytest.fixture
def edited(asked: Folder) -> Iterator[Folder]:
    """The same copy, whose files git restores after the test."""
    yield asked
    asked.git("checkout", "--quiet", ".")
    assert asked.git("status", "--porcelain") == ""


@pytest.mark.parametrize(
    ("values", "stale", "then"),
    [
        ({"agents__plain__finetune__updates": 3}, {"finetune@plain", "compare"}, {"evaluate@plain", "gate", "papers"}),
        (
            {"agents__cloned__pretrain__epochs": 3},
            {"pretrain@cloned", "compare"},
            {"finetune@cloned", "evaluate@cloned", "gate", "papers"},
        ),
        (
            {"agents__plain__pretrain__seed": 2},
            {"pretrain@plain", "compare"},
            {"finetune@plain", "evaluate@plain", "gate", "papers"},
        ),
        ({"agents__plain__finetune__seed": 2}, {"finetune@plain", "compare"}, {"evaluate@plain", "gate", "papers"}),
        ({"evaluation__confidence": 0.9}, {"compare"}, {"gate", "papers"}),
        (
            {"heuristics__pool__hold_quantiles": [0.8]},
            {"heuristics@online"},
            {"hindsight@online", "compare", "gate", "papers"},
        ),
        (
            {"recipes__paper__gamma": 0.9},
            {"pretrain@cloned", "finetune@cloned"},
            {"evaluate@cloned", "compare", "gate", "papers"},
        ),
        ({"seed": 2}, STAGES - {"log", "gate", "papers"}, {"gate", "papers"}),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_number_touches_only_the_stages_that_read_it_and_those_behind_them(
    edited: Folder, values: dict[str, Any], stale: set[str], then: set[str]
) -> None:
    edited.edit(**values)
    assert edited.stale() == stale
    assert behind(edited, stale) - stale == then


def behind(folder: Folder, stages: set[str]) -> set[str]:
    """Return the stages that read an output of the given stages, directly or through others."""
    lock = YAML(typ="safe").load(folder.root / "dvc.lock")["stages"]
    paths = {kind: {name: {item["path"] for item in row.get(kind, [])} for name, row in lock.items()} for kind in KINDS}
    found = set(stages)
    while True:
        made = set().union(*(paths["outs"][name] for name in found))
        more = {
            name
            for name, read in paths["deps"].items()
            if any(out == dep or out.startswith(f"{dep}/") for out in made for dep in read)
        }
        if more <= found:
            return found
        found |= more


def test_an_agents_finetuning_runs_again_alone(folder: Folder) -> None:
    before = folder.outs()
    said = folder.dvc("exp", "run", "-S", "agents.plain.finetune.updates=8", "compare")  # other stages follow it
    changed = {path for path, md5 in folder.outs().items() if md5 != before[path]}
    assert "reports/curves/plain_finetune.csv" in changed
    assert set(ran(said)) == {"finetune@plain", "evaluate@plain", "compare"}
    first, second = said.partition("Running stage 'compare'")[2].splitlines()[2:4]
    assert re.fullmatch(r"plain: \d+\.\d\d -> \d+\.\d\d \([+-][\d.]+ %, -?[\d.]+ to -?[\d.]+\)", first)
    assert second.endswith("1 agent unchanged; all of them: reports/comparison.md")
    assert not [path for path in changed if "cloned" in path or path.startswith(("data", "reports/tables/heur"))]


def test_a_row_that_was_tried_leaves_nothing_behind(folder: Folder) -> None:
    both = (folder.root / "params.yaml").read_bytes()
    folder.edit(agents={"plain": AGENTS["plain"]})
    prune(folder)
    folder.dvc("repro", "compare")
    folder.git("commit", "--quiet", "--all", "-m", "one agent")
    before = bytes_of(folder.root)

    (folder.root / "params.yaml").write_bytes(both)  # the row is there again: its training is in the cache
    folder.dvc("repro", "compare")
    assert (folder.root / "models" / "cloned").is_dir()
    folder.git("checkout", "--quiet", "params.yaml")
    assert "3 stages of dvc.lock and 5 outputs of rows that params.yaml does not have (cloned)" in prune(folder)
    assert ran(folder.dvc("repro", "compare")) == []
    assert folder.git("status", "--porcelain") == ""
    assert bytes_of(folder.root) == before


def prune(folder: Folder) -> str:
    return folder.pipeline("prune")


def test_code_touches_only_the_stages_that_run_it(edited: Folder) -> None:
    with (edited.root / "pipeline" / "problems" / "pool" / "agents" / "networks" / "encodings.py").open("a") as file:
        file.write("# changed\n")
    assert edited.stale() == {
        f"{kind}@{agent}" for kind in ("pretrain", "finetune", "evaluate") for agent in AGENTS
    } | {
        "compare",
        "gate",
        "papers",
    }


def test_deleted_results_come_back_without_running(folder: Folder) -> None:
    before = bytes_of(folder.root)
    for name in ("data/jobsets", "models/cloned/policy", "reports/tables/agents"):
        shutil.rmtree(folder.root / name)
    (folder.root / "reports" / "slowdown.json").unlink()
    said = folder.dvc("repro")
    assert ran(said) == []
    assert "is cached - skipping run, checking out outputs" in said
    assert bytes_of(folder.root) == before


# Starting a process takes most of a command's time.
IN_ONE_PROCESS = """
import sys
from pipeline.cli import main

for words in sys.argv[1:]:
    sys.argv[1:] = words.split()
    try:
        main()
    except SystemExit as end:
        assert not end.code, words
"""


def test_another_folder_gives_the_same_bytes(
    reproduced: tuple[Folder, str], tmp_path: Path, environment: dict[str, str]
) -> None:
    here, there = reproduced[0], begin(tmp_path / "elsewhere" / "deeper", environment)
    commands = {
        "log": "log",
        "generate@online": "generate online",
        "heuristics@online": "evaluate heuristics online",
        "pretrain@cloned": "pretrain cloned",
        "finetune@cloned": "finetune cloned",
    }
    there.run(sys.executable, "-c", IN_ONE_PROCESS, *commands.values(), PYTHONHASHSEED="7")
    stages = YAML(typ="safe").load(here.root / "dvc.lock")["stages"]
    outs = [Path(out["path"]) for name in commands for out in stages[name]["outs"]]
    assert len(outs) == 9
    assert bytes_of(there.root) == {
        name: content
        for name, content in bytes_of(here.root).items()
        if any(Path(name).is_relative_to(out) for out in outs)
    }


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2])
def test_another_folder_gives_the_same_dvc_lock(tmp_path: Path, environment: dict[str, str], threads: int) -> None:
    locks = []
    for place, more in (("here", {}), ("elsewhere/deeper", {"PYTHONHASHSEED": "7"})):
        folder = begin(tmp_path / place, {**environment, **more})
        folder.edit(threads=threads)
        folder.dvc("repro")
        locks.append((folder.root / "dvc.lock").read_bytes())
    assert locks[0] == locks[1]
    assert b"threads: %d\n" % threads in locks[0]


# Experiments, and MLflow's view of them


def test_a_temporary_experiment_logs_beside_the_repository_s_own_runs(folder: Folder) -> None:
    folder.edit(evaluation__confidence=0.9)
    said = folder.dvc("repro", "papers", PIPELINE_TRACKING="on")  # the last stage sends the records of all
    assert ran(said) == ["compare", "papers"]
    assert "tracking:" not in said
    ((own, stages),) = tracked(folder.root).items()
    assert sorted(stages) == ["compare", "papers"]
    lock = (folder.root / "dvc.lock").read_bytes()
    before = bytes_of(folder.root)

    words = ("--temp", "-n", "bold", "-S", "evaluation.confidence=0.8", "papers")
    said = folder.dvc("exp", "run", *words, PIPELINE_TRACKING="on")
    # The link to the log is never cached, so a new folder has none.
    assert sorted(ran(said)) == ["compare", "log", "papers"]
    assert "tracking:" not in said
    found = tracked(folder.root)
    assert len(found) == 2
    (added,) = set(found) - {own}
    assert added.startswith("bold-")
    assert {name: sorted(stages) for name, stages in found.items()} == {
        own: ["compare", "papers"],
        added: ["compare", "papers"],
    }
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
    assert [sorted(stages) for stages in found.values()] == [["compare", "gate", "papers"]] * 2
    assert {"first", "second"} <= set(folder.dvc("exp", "list", "--name-only").split())


@pytest.mark.slow
def test_every_stage_of_a_tracked_repro_is_recorded(tmp_path: Path, environment: dict[str, str]) -> None:
    folder = begin(tmp_path / "tracked", environment)
    said = folder.dvc("repro", PIPELINE_TRACKING="on")
    assert "tracking:" not in said
    (stages,) = tracked(folder.root).values()
    assert sorted(stages) == sorted(STAGES - {"log"})
    # Records must not change results.
    again = begin(tmp_path / "untracked", environment)
    again.dvc("repro")
    assert folder.outs() == again.outs()


# A user's log


def write_log(path: Path, jobs: int, run_s: int = 3600) -> None:
    """Write a log of 16 processors: job k arrives in hour k / 2 and runs for one to seven times `run_s`."""
    lines = [
        f"{k} {k * 1800} 0 {run_s * (1 + k * k % 7)} {1 + k * 5 % 9} -1 1000 {1 + k * 5 % 9} -1 1000 1 1 1 1 1 -1 -1 -1"
        for k in range(1, jobs + 1)
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(["; MaxProcs: 16", *lines, ""]))


@pytest.fixture
def on_log(folder: Folder) -> Folder:
    """The same repository, on a log outside of it."""
    write_log(folder.root.parent / "logs" / "small.swf", 400)
    busy = {"accept": ["size", "load"]}  # more than its 16 processors could have run
    folder.edit(workload={"name": "swf", "path": "../logs/small.swf", "window": 10, **busy})
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
    """Return the git reference of an experiment."""
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
