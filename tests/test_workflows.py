"""The workflows follow their rules, and every shell block in them does what it says, in a clone."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from builders import REPOSITORY
from repositories import Folder, ran
from walks import STAND_INS, STATED, WORKFLOWS, Walk, lint, steps, workflow

NAMES = ("audit", "check", "release", "rerun", "watch")
JOINED = {"compare", "gate", "papers"}  # they read the results of every policy
SETTING = "heuristics.pool.tetris_weights=[0.9]"


# The rules


def test_every_workflow_has_its_tests() -> None:
    assert sorted(path.name for path in WORKFLOWS.iterdir()) == [f"{name}.yml" for name in NAMES]


SCHEMA = ("check-jsonschema", "--builtin-schema", "vendor.github-workflows")
ZIZMOR = ("zizmor", "--offline", "--no-progress")


def test_workflows_keep_to_the_schema_and_the_linter_finds_nothing() -> None:
    for words in (SCHEMA, ZIZMOR):
        done = lint(*words, *(WORKFLOWS / f"{name}.yml" for name in NAMES))
        assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("words", "old", "new", "found"),
    [
        (SCHEMA, "    runs-on:", "    run-on:", "run-on"),
        (ZIZMOR, 'run: echo "$PWD', 'run: echo "${{ github.head_ref }}/$PWD', "template-injection"),
        (ZIZMOR, "\npermissions:\n  contents: read", "\npermissions: write-all", "excessive-permissions"),
    ],
    ids=["key", "injection", "permissions"],
)
def test_the_linters_find_a_fault(tmp_path: Path, words: tuple[str, ...], old: str, new: str, found: str) -> None:
    text = (WORKFLOWS / "rerun.yml").read_text()
    assert old in text
    broken = tmp_path / ".github" / "workflows" / "rerun.yml"
    broken.parent.mkdir(parents=True)
    broken.write_text(text.replace(old, new))
    done = lint(*words, broken)
    assert done.returncode != 0
    assert found in done.stdout


@pytest.mark.parametrize("name", NAMES)
def test_a_workflow_may_read_only_and_has_an_end(name: str) -> None:
    loaded = workflow(name)
    assert loaded["permissions"] == {"contents": "read"}
    assert loaded["defaults"] == {"run": {"shell": "bash"}}
    assert loaded["concurrency"]["group"].startswith(f"{name}-${{{{")
    assert all(
        step["with"]["persist-credentials"] is False for step in steps(name) if "/checkout@" in step.get("uses", "")
    )
    for job in loaded["jobs"].values():
        assert 0 < job["timeout-minutes"] <= 180


@pytest.mark.parametrize("name", NAMES)
def test_inputs_reach_the_shell_through_the_environment(name: str) -> None:
    assert not [step["run"] for step in steps(name) if "run" in step and "${{" in step["run"]]


@pytest.mark.parametrize("name", NAMES)
def test_actions_are_pinned_by_commit_and_the_same_everywhere(name: str) -> None:
    pinned = re.findall(r"uses: (\S+)@([0-9a-f]{40}) # v[\d.]+\n", (WORKFLOWS / f"{name}.yml").read_text())
    assert len(pinned) == sum("uses" in step for step in steps(name))
    assert {action for action, _ in pinned} <= set(STAND_INS)
    known = [step["uses"] for other in NAMES for step in steps(other) if "uses" in step]
    for action in {use.split("@")[0] for use in known}:
        assert len({use for use in known if use.startswith(f"{action}@")}) == 1


def test_only_jobs_that_run_nothing_of_the_repository_may_write() -> None:
    jobs = workflow("rerun")["jobs"]
    assert {name: job.get("permissions") for name, job in jobs.items()} == {
        "repro": None,
        "pictures": {"contents": "write"},
        "comment": {"pull-requests": "write"},
        "propose": {"contents": "write", "pull-requests": "write"},
    }
    for job in (jobs["pictures"], jobs["comment"], jobs["propose"]):
        shell = "\n".join(step.get("run", "") for step in job["steps"])
        assert not re.search(r"\b(make|python|dvc (?!lock)|bash|\.ci)\b", shell.replace("dvc.lock", ""))


def test_nothing_is_pushed_but_branches_of_the_rerun() -> None:
    pushes = [line.strip() for name in NAMES for step in steps(name) for line in step.get("run", "").splitlines()]
    assert [line for line in pushes if "git push" in line] == [
        'git push --quiet --force "$REPOSITORY" "HEAD:refs/heads/rerun-pictures/$BRANCH"',
        'git push --force origin "HEAD:refs/heads/rerun/$BRANCH"',
    ]


def test_the_rerun_comes_at_an_odd_minute_by_hand_and_by_label() -> None:
    events = workflow("rerun")["on"]
    (schedule,) = events["schedule"]
    minute, hour, *_ = schedule["cron"].split()
    assert int(minute) % 2 == 1
    assert 0 <= int(hour) < 24
    assert set(events["workflow_dispatch"]["inputs"]) == {"targets", "settings"}
    assert events["pull_request"] == {"types": ["labeled"]}


def test_checks_on_push_and_pull_request_are_those_at_home() -> None:
    loaded = workflow("check")
    assert set(loaded["on"]) == {"push", "pull_request"}
    assert [step["run"] for step in steps("check") if "run" in step] == [".ci/run"]


WHEEL = "python -m pytest -m slow -n 2 tests/test_packaging.py"
FIRST = ["make clean", "make setup", "python .ci/fresh.py"]
SIDE_BY_SIDE = {"make test-live", "make test-whole"}


def ci(tmp_path: Path, fails: str) -> tuple[int, list[str]]:
    """Run `.ci/run` with stand-ins, of which one fails; return its exit code and the printed commands."""
    root, said = tmp_path / "root", tmp_path / "said"
    for place in ("bin", "root/.ci", "root/.venv/bin"):
        (tmp_path / place).mkdir(parents=True)
    shutil.copy(REPOSITORY / ".ci" / "run", root / ".ci")
    for name in ("bin/make", "root/.venv/bin/python"):
        words = f'"{Path(name).name} $*"'
        (tmp_path / name).write_text(f"#!/bin/sh\necho {words} | tee -a {said}\n[ {words} != '{fails}' ]\n")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "bin" / "id").write_text("#!/bin/sh\necho 1000\n")  # simulates a user other than root
    (tmp_path / "bin" / "id").chmod(0o755)
    given = {**os.environ, "PATH": f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run([root / ".ci" / "run"], check=False, env=given, capture_output=True, text=True)
    lines = said.read_text().splitlines()
    assert sorted(done.stdout.splitlines()) == sorted(lines)
    return done.returncode, lines


def test_ci_asks_whether_the_lock_is_fresh_and_ends_where_it_is_not(tmp_path: Path) -> None:
    assert ci(tmp_path, fails=FIRST[-1]) == (1, FIRST)


def test_ci_ends_with_the_tests_of_the_readme(tmp_path: Path) -> None:
    code, lines = ci(tmp_path, fails="")
    assert code == 0
    assert lines[:-3] == [*FIRST, "make check", WHEEL, "make .venv/.compiled"]
    assert set(lines[-3:-1]) == SIDE_BY_SIDE
    assert lines[-1] == "make test"


@pytest.mark.parametrize("fails", sorted(SIDE_BY_SIDE))
def test_ci_fails_with_either_of_the_tests_that_run_side_by_side(tmp_path: Path, fails: str) -> None:
    code, lines = ci(tmp_path, fails)
    assert code == 1
    assert set(lines[-2:]) == SIDE_BY_SIDE


# The watch

SAYS = """#!/usr/bin/env bash
printf '%s\\n' "$*" >> "$SAID"
exit "$CODE"
"""


def watch_step(tmp_path: Path, code: int, log: str = "grown.swf", scenario: str = "") -> tuple[int, str, str]:
    """Return the exit code of the watch step, its output, and the commands it ran; `watch` ends with a code."""
    (step,) = (step for step in steps("watch") if step.get("id") == "watch")
    python, output, said = tmp_path / "python", tmp_path / "output", tmp_path / "said"
    python.write_text(SAYS)
    python.chmod(0o755)
    for path in (output, said):
        path.write_text("")
    given = {"CODE": str(code), "SAID": str(said), "GITHUB_OUTPUT": str(output), "WATCH_LOG": log}
    given |= {"WATCH_SCENARIO": scenario, "GITHUB_STEP_SUMMARY": str(tmp_path / "summary")}
    words = ["bash", "-euo", "pipefail", "-c", step["run"]]
    done = subprocess.run(words, check=False, env={"PATH": f"{tmp_path}:/usr/bin:/bin", **given})
    return done.returncode, output.read_text(), said.read_text()


@pytest.mark.parametrize(("code", "alarm"), [(0, "false"), (3, "true"), (4, "false")])
def test_an_alarm_alone_starts_a_rerun(tmp_path: Path, code: int, alarm: str) -> None:
    ended, output, said = watch_step(tmp_path, code, scenario="site")
    assert (ended, output) == (0, f"alarm={alarm}\n")
    assert said == "-m pipeline watch grown.swf --scenario site\n"


def test_a_mistake_ends_the_watch_and_without_a_log_there_is_none(tmp_path: Path) -> None:
    assert watch_step(tmp_path, 2)[:2] == (2, "")
    assert watch_step(tmp_path, 3, log="") == (0, "alarm=false\n", "")


def test_the_job_that_starts_a_rerun_does_nothing_else() -> None:
    loaded = workflow("watch")
    assert {name: job.get("permissions") for name, job in loaded["jobs"].items()} == {
        "watch": None,
        "rerun": {"actions": "write"},
    }
    (step,) = loaded["jobs"]["rerun"]["steps"]
    assert step["run"] == 'gh workflow run rerun.yml --ref "$BRANCH"'
    assert "promote" not in (WORKFLOWS / "watch.yml").read_text()


# The walks

EVENTS = {
    "schedule": {"github.event_name != 'schedule'": False},
    "workflow_dispatch": {"github.event_name != 'schedule'": True},
    "pull_request": {"github.event_name != 'schedule'": True},
}
MAY_RUN = "github.event_name != 'pull_request' || (github.event.label.name == 'rerun' && "
MAY_RUN += "github.event.pull_request.head.repo.full_name == github.repository)"


@pytest.fixture
def shared(folder: Folder, tmp_path: Path) -> Path:
    """What outlives a job: the repository that jobs clone, and later caches and artifacts."""
    place = tmp_path / "shared"
    place.mkdir()
    folder.git("clone", "--quiet", "--bare", str(folder.root), str(place / "origin"))
    folder.git("remote", "add", "origin", str(place / "origin"))
    return place


def rerun(shared: Path, environment: dict[str, str], event: str, branch: str = "main", **values: str) -> Walk:
    """Walk through the rerun of a branch; values are inputs, secrets and the like, keyed by the end of their name."""
    given = {
        "github.head_ref || github.ref_name": branch,
        "github.event.pull_request.head.sha || github.sha": f"origin/{branch}",
        "github.event.pull_request.base.sha || 'HEAD'": values.get("base", "HEAD"),
        "github.event.pull_request.number": values.get("number", ""),
        "github.token": "token",
        "github.server_url": str(shared),
        "github.repository": "origin",
        "hashFiles('dvc.lock')": "hash",
        "inputs.settings": values.get("settings", ""),
        "inputs.targets": values.get("targets", ""),
        "secrets.DVC_REMOTE_URL": values.get("remote", ""),
        **{f"secrets.AWS_{name}": "" for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "ENDPOINT_URL")},
        "open": values.get("open", ""),
        MAY_RUN: True,
        **EVENTS[event],
    }
    return Walk("rerun", shared, environment, given)


def branches(origin: Path) -> dict[str, str]:
    said = subprocess.check_output(["git", "for-each-ref", "--format=%(refname:short) %(objectname)"], cwd=origin)
    return dict(line.split() for line in said.decode().splitlines() if not line.startswith("refs/"))


def changed_files(origin: Path, old: str, new: str) -> list[str]:
    return subprocess.check_output(["git", "diff", "--name-only", old, new], cwd=origin, text=True).split()


def test_a_rerun_that_changes_nothing_proposes_nothing(shared: Path, environment: dict[str, str]) -> None:
    before = branches(shared / "origin")
    walk = rerun(shared, environment, "schedule")  # without cache and remote there is nothing to run
    assert walk.run() == {"repro", "pictures"}
    assert ran(walk.values["log"]) == []
    assert branches(shared / "origin") == before
    assert walk.said.read_text() == ""
    assert "### Metrics of main against HEAD" in walk.summary.read_text()


@pytest.mark.slow
def test_a_changed_parameter_is_run_told_and_proposed(
    folder: Folder, shared: Path, environment: dict[str, str]
) -> None:
    shutil.copytree(folder.root / ".dvc" / "cache", shared / "cache")
    before = branches(shared / "origin")
    walk = rerun(shared, environment, "workflow_dispatch", settings=SETTING)
    assert walk.run() == {"repro", "pictures", "comment", "propose"}
    assert set(ran(walk.values["log"])) == {"heuristics@online", "hindsight@online", *JOINED}

    summary = walk.summary.read_text()
    assert re.search(r"\| reports/metrics.json \| online.tetris.slowdown +\| [\d.]+ +\| [\d.]+ ", summary)
    assert "| params.yaml | heuristics.pool.tetris_weights | [0.1, 0.5] | [0.9]" in re.sub(" +", " ", summary)

    after = branches(shared / "origin")
    assert after == {**before, **{name: after[name] for name in ("rerun/main", "rerun-pictures/main")}}
    proposed = changed_files(shared / "origin", "main", "rerun/main")
    results = {"reports/metrics.json", "reports/comparison.csv"}
    assert {"dvc.lock", "params.yaml", "champions.yaml", *results} <= set(proposed)
    kinds = ("dvc.lock", "params.yaml", "champions.yaml", "reports/")
    assert [name for name in proposed if not name.startswith(kinds)] == []
    said = walk.said.read_text().splitlines()
    assert [line.split(" --")[0] for line in said] == ["pr list", "auth setup-git", "pr list", "pr create"]
    assert "--head rerun/main --base main" in said[-1]
    assert "online.tetris.slowdown" in walk.bodies.read_text()
    assert f"/origin/raw/{after['rerun-pictures/main']}/pictures/slowdown.png)" in walk.bodies.read_text()
    assert "pictures/slowdown.png" in changed_files(shared / "origin", "main", "rerun-pictures/main")
    assert "### Champions\n\n- online: hold: the best heuristic on validation jobsets" in walk.bodies.read_text()
    kept = shared / "artifacts" / "reports"
    assert (kept / "dvc.lock").is_file()
    assert (kept / "reports" / "comparison.md").is_file()


def test_pictures_are_pushed_and_linked_and_nothing_else_is(
    folder: Folder, shared: Path, environment: dict[str, str]
) -> None:
    uploaded = shared / "artifacts" / "rerun"
    (uploaded / "pictures").mkdir(parents=True)
    (uploaded / "difference.md").write_text("### Metrics\n")
    for name in ("slowdown.png", "two words.png", "run.sh"):
        (uploaded / "pictures" / name).write_bytes(b"x")
    walk = rerun(shared, environment, "pull_request", "wider", number="7")
    for name in ("pictures", "comment"):
        walk.job(name, walk.file["jobs"][name])
    origin = shared / "origin"
    commit = branches(origin)["rerun-pictures/wider"]
    words = ["git", "ls-tree", "-r", "--name-only", commit]
    assert subprocess.check_output(words, cwd=origin, text=True) == "pictures/slowdown.png\n"
    link = f"![slowdown]({origin}/raw/{commit}/pictures/slowdown.png)"
    assert walk.bodies.read_text() == f"### Metrics\n\n### Pictures\n\n {link}\n"


def label(folder: Folder) -> None:
    """Make a pull request: a branch with a commit that needs a rerun."""
    folder.git("switch", "--quiet", "--create", "wider")
    folder.edit(evaluation__confidence=0.9)
    folder.git("commit", "--quiet", "--all", "-m", "wider")
    folder.git("push", "--quiet", "origin", "wider")


@pytest.mark.slow
def test_a_labelled_pull_request_gets_the_difference_and_a_proposal(
    folder: Folder, shared: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    folder.dvc("remote", "add", "--local", "--default", "here", str(tmp_path / "remote"))
    folder.dvc("push", "--run-cache")
    label(folder)
    base = branches(shared / "origin")["main"]
    with_remote = {"remote": str(tmp_path / "remote"), "base": base, "number": "7", "open": "rerun/wider"}
    walk = rerun(shared, environment, "pull_request", "wider", **with_remote)
    assert walk.run() == {"repro", "pictures", "comment", "propose"}
    assert set(ran(walk.values["log"])) == JOINED
    said = walk.said.read_text().splitlines()
    assert said[0].startswith("pr comment 7 --edit-last --create-if-none --body-file ")
    assert said[-1].startswith("pr edit 7 --body-file ")  # one is still open from the last time
    assert "evaluation.confidence" in walk.bodies.read_text()
    assert branches(shared / "origin")["main"] == base
    # After merging the proposal, its data come from the remote.
    taken = Folder(tmp_path / "taken", environment)
    folder.git("clone", "--quiet", "--branch", "rerun/wider", str(shared / "origin"), str(taken.root))
    taken.dvc("remote", "add", "--local", "--default", "here", str(tmp_path / "remote"))
    taken.dvc("pull")
    assert ran(taken.dvc("repro")) == ["log"]  # never cached


@pytest.mark.slow
def test_data_that_is_nowhere_is_made_again(folder: Folder, shared: Path, environment: dict[str, str]) -> None:
    label(folder)
    walk = rerun(shared, environment, "workflow_dispatch", "wider")
    assert walk.run() == {"repro", "pictures", "comment", "propose"}
    assert {"generate@online", "heuristics@online", "compare"} <= set(ran(walk.values["log"]))
    assert "dvc.lock" in changed_files(shared / "origin", "wider", "rerun/wider")
    assert (shared / "cache" / "runs").is_dir()


def test_every_stand_in_is_used(tmp_path: Path) -> None:
    blocks = [step["run"].strip() for name in NAMES for step in steps(name) if "run" in step]
    assert set(STATED) <= set(blocks)


# dvc.lock


def fresh(folder: Folder) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, str(REPOSITORY / ".ci" / "fresh.py")]
    return subprocess.run(words, check=False, cwd=folder.root, capture_output=True, text=True)


def test_a_lock_is_fresh_without_data_and_stale_with_other_code(folder: Folder, tmp_path: Path) -> None:
    clone = Folder(tmp_path / "clone", {})
    folder.git("clone", "--quiet", str(folder.root), str(clone.root))
    (clone.root / "models").mkdir(exist_ok=True)
    (clone.root / "models" / ".gitkeep").touch()  # present in every checkout
    assert fresh(clone).returncode == 0, fresh(clone).stderr
    with (clone.root / "pipeline" / "problems" / "pool" / "agents" / "networks" / "mlp.py").open("a") as file:
        file.write("# changed\n")
    clone.edit(evaluation__confidence=0.9)
    done = fresh(clone)
    assert done.returncode == 1
    first, *lines = done.stderr.splitlines()
    assert first == "dvc.lock is stale: run 'dvc repro', then commit dvc.lock and reports/"
    assert "  evaluate@plain: pipeline/problems/pool/agents modified" in lines
    (compare,) = [line for line in lines if line.startswith("  compare: ")]
    assert "params.yaml: evaluation modified" in compare
    assert not [line for line in lines if "deleted" in line or line.startswith("  generate")]
