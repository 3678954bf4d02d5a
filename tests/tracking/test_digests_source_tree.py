"""What git knows, and what is said where it refuses or where a merge left a conflict."""

import shlex
import subprocess
from pathlib import Path

import pytest

from pipeline.core.config.git import git, refusal
from pipeline.core.storage.evidence import from_commit, head
from pipeline.errors import UserError
from pipeline.tracking.digests import tree_of


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with one commit; the working directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    run("init", "-q", "-b", "main")
    commit("dvc.lock", "stages: {one: 1}\n")
    return tmp_path


def run(*words: str) -> "subprocess.CompletedProcess[str]":
    own = ("-c", "user.name=a", "-c", "user.email=a@b")
    return subprocess.run(["git", *own, *words], check=False, capture_output=True, text=True)


def commit(name: str, text: str) -> None:
    Path(name).write_text(text)
    run("add", name)
    assert run("commit", "-qm", text).returncode == 0


def test_a_repository_of_another_owner_is_refused_in_gits_words(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert refusal() is None
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    assert head() is None
    assert (refusal() or "").startswith("fatal: detected dubious ownership in repository at")


@pytest.mark.parametrize("there", ["no repository", "no commit", "no git"])
def test_no_repository_no_commit_and_no_git_are_no_refusals(
    there: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    if there == "no commit":
        run("init", "-q")
    if there == "no git":
        monkeypatch.setenv("PATH", str(tmp_path))
    assert (git("rev-parse", "HEAD"), refusal()) == (None, None)


def test_a_revision_is_read_with_its_code_and_its_lock(repository: Path) -> None:
    with pytest.raises(UserError, match=r"^the run: expected a revision with .*dvc\.lock$"):
        tree_of("HEAD", "the run")
    Path("pipeline").mkdir()
    for name in ("pipeline/core.py", "params.yaml", "dvc.yaml"):
        commit(name, f"{name}\n")
    assert set(tree_of("HEAD", "the run").files) == {"pipeline/core.py", "params.yaml", "dvc.yaml", "dvc.lock"}


def test_the_advice_for_a_damaged_file_works_after_a_merge_with_conflicts(repository: Path) -> None:
    run("switch", "-qc", "other")
    commit("dvc.lock", "stages: {one: 2}\n")
    run("switch", "-q", "main")
    commit("dvc.lock", "stages: {one: 3}\n")
    assert run("merge", "-q", "other").returncode == 1
    assert run("checkout", "dvc.lock").returncode == 1  # the earlier advice: git refuses
    advice = shlex.split(from_commit(Path("dvc.lock")).split("'")[1])
    assert run(*advice[1:]).returncode == 0
    assert Path("dvc.lock").read_text() == "stages: {one: 3}\n"
    assert run("ls-files", "--unmerged").stdout == ""
