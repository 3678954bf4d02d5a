"""Workspaces of points: what goes along, what stays behind, and where there can be none."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from pipeline.errors import UserError
from pipeline.farming import workspaces
from pipeline.farming.grid import Point
from pipeline.farming.workspaces import PLACE, Base, lay_out, lend_compiled


def git(*words: str) -> str:
    who = {f"GIT_{who}_{what}": "t@t" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    return subprocess.run(
        ["git", *words], check=True, env={**os.environ, **who}, capture_output=True, text=True
    ).stdout.strip()


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a change, and a file that git does not track."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(workspaces, "cache_folder", lambda: str(tmp_path / "cache"))
    git("init", "--quiet", "--initial-branch", "main")
    git("config", "user.name", "somebody")
    git("config", "user.email", "some@body")
    (tmp_path / "params.yaml").write_text("rate: 0.1  # of learning\nagents: {net: {updates: 3}}\n")
    (tmp_path / "code").write_text("old")
    (tmp_path / ".dvc").mkdir()
    (tmp_path / ".dvc" / "config").write_text("")
    (tmp_path / ".dvc" / ".gitignore").write_text("/tmp\n/config.local\n")
    git("add", "--all")
    git("commit", "--quiet", "-m", "begun")
    (tmp_path / "code").write_text("new")
    (tmp_path / "note").write_text("")
    (tmp_path / ".dvc" / "config.local").write_text("[core]\n    jobs = 1\n")
    return tmp_path


def test_a_file_that_was_touched_and_not_changed_is_no_change(repository: Path) -> None:
    (repository / "code").write_text("old")
    os.utime(repository / "code", (1.0, 1.0))
    assert Base.here().changes == ""


def test_a_point_has_what_is_changed_its_own_values_and_the_settings_of_this_machine(repository: Path) -> None:
    base = Base.here()
    assert base.said == [
        "farm: files are changed since the last commit; every point has them so, as with dvc exp run",
        "farm: git does not track note: left out, as with dvc exp run --temp; git add takes them",
    ]
    task = lay_out(base, Point("rate=0.2", 3, {"rate": 0.2, "agents.net.seed": 3}), "point")
    place = PLACE / "point"
    assert task.place == place
    assert task.more["DVC_ROOT"] == str(repository)
    assert (place / "code").read_text() == "new"
    assert not (place / "note").exists()
    assert (place / ".dvc" / "config.local").exists()
    assert YAML(typ="safe").load(place / "params.yaml") == {"rate": 0.2, "agents": {"net": {"updates": 3, "seed": 3}}}
    assert "# of learning" in (place / "params.yaml").read_text()
    assert (repository / "params.yaml").read_text().startswith("rate: 0.1 ")
    assert git("-C", str(place), "rev-parse", "HEAD") == base.head
    assert git("-C", str(place), "config", "user.name") == "somebody"
    assert git("stash", "list") == ""


def test_an_experiment_of_the_same_commit_counts_as_saved_and_no_other(repository: Path) -> None:
    base = Base.here()
    git("update-ref", base.ref("mine"), base.head)
    git("update-ref", f"refs/exps/00/{'0' * 38}/other", base.head)
    assert base.saved() == {"mine"}


def test_without_a_commit_there_is_nothing_to_start_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    git("init", "--quiet")
    with pytest.raises(UserError, match="a sweep starts from a commit"):
        Base.here()


def test_a_folder_within_a_repository_is_told_the_root(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (repository / "inner").mkdir()
    monkeypatch.chdir(repository / "inner")
    with pytest.raises(UserError, match=f"expected git's root here, it is {repository}"):
        Base.here()


def test_compiled_code_is_lent_under_the_place_that_numba_looks_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    numba = "from numba import njit\n\n@njit(cache=True)\ndef twice(x):\n    return 2 * x\n"
    asked = "from pipeline.inner.kernel import twice; twice(2); print(sum(twice.stats.cache_hits.values()))"
    root, clone = tmp_path / "root", tmp_path / "clone"
    compiled = root / "pipeline" / "__pycache__" / "compiled-1"
    for place in (root, clone):
        (place / "pipeline" / "inner").mkdir(parents=True)
        (place / "pipeline" / "__init__.py").touch()
        (place / "pipeline" / "inner" / "kernel.py").write_text(numba)

    def hits(place: Path) -> str:
        named = place / "pipeline" / "__pycache__" / compiled.name
        env = {**os.environ, "NUMBA_CACHE_DIR": str(named), "PYTHONPATH": ""}
        env.pop("NUMBA_CACHE_LOCATOR_CLASSES", None)
        return subprocess.run(
            [sys.executable, "-c", asked], cwd=place, env=env, check=True, capture_output=True, text=True
        ).stdout

    assert hits(root) == "0\n"
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(compiled))
    lend_compiled(root, clone)
    assert hits(clone) == "1\n"
