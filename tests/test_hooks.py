"""The hooks, installed in a clone and triggered by commits, pushes and checkouts as a contributor makes them."""

import os
import shutil
import sys
from pathlib import Path

import pytest
from builders import REPOSITORY
from repositories import Folder
from ruamel.yaml import YAML

CONFIG = ".pre-commit-config.yaml"
DVC = {"dvc-status": "pre-commit", "dvc-push": "pre-push", "dvc-checkout": "post-checkout"}


@pytest.fixture
def hooked(folder: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    """A clone with the hooks, whose origin is a bare repository; no hook may use a network."""
    for name in [name for name in os.environ if name.endswith("_proxy")]:
        monkeypatch.delenv(name)
    for name in (CONFIG, "pyproject.toml"):
        shutil.copy(REPOSITORY / name, folder.root)
    (folder.root / ".gitignore").write_text((folder.root / ".gitignore").read_text() + "/.venv\n")
    folder.git("add", "--all")
    folder.git("commit", "--quiet", "-m", "hooks")
    folder.git("clone", "--quiet", "--bare", str(folder.root), str(tmp_path / "origin"))
    folder.git("remote", "add", "origin", str(tmp_path / "origin"))
    (folder.root / ".venv").symlink_to(sys.prefix)
    folder.run("pre-commit", "install")
    return folder


def refused(folder: Folder, *words: str) -> str:
    """Return git's message when a hook stops it."""
    with pytest.raises(AssertionError) as error:
        folder.git(*words)
    return str(error.value)


def test_one_install_sets_all_three_hooks(hooked: Folder) -> None:
    hooks = hooked.root / ".git" / "hooks"
    assert {name for name in DVC.values() if "pre-commit" in (hooks / name).read_text()} == set(DVC.values())


def test_hooks_are_local_and_run_what_is_in_the_environment() -> None:
    (only,) = YAML(typ="safe").load(REPOSITORY / CONFIG)["repos"]
    assert only["repo"] == "local"
    assert {hook["language"] for hook in only["hooks"]} == {"system"}
    assert [hook["id"] for hook in only["hooks"] if ".venv/bin/" not in hook["entry"]] == []
    stages = {hook["id"]: hook.get("stages", ["pre-commit"]) for hook in only["hooks"]}
    assert {name: stages[name] for name in DVC} == {name: [stage] for name, stage in DVC.items()}


def test_a_bad_file_is_not_committed(hooked: Folder) -> None:
    (hooked.root / "pipeline" / "bad.py").write_text('"""Bad."""\n\nimport os, sys\n\nx = undefined\n')
    hooked.git("add", "--all")
    said = refused(hooked, "commit", "-m", "bad")
    assert "Undefined name `undefined`" in said
    assert "ruff" in said


def test_a_bad_workflow_is_not_committed(hooked: Folder) -> None:
    path = hooked.root / ".github" / "workflows" / "bad.yml"
    path.parent.mkdir(parents=True)
    path.write_text("name: bad\non: push\njobs: {one: {steps: []}}\n")
    hooked.git("add", "--all")
    assert "Schema validation errors" in refused(hooked, "commit", "-m", "bad")


def test_a_stale_lock_is_told_at_commit_and_stopped_at_push(hooked: Folder, tmp_path: Path) -> None:
    hooked.edit(evaluation__confidence=0.9)
    said = hooked.git("commit", "--all", "-m", "wider")
    assert "params.yaml" in said.partition("dvc status")[2]
    assert "modified:           evaluation" in said
    said = refused(hooked, "push", "origin", "main")
    assert "dvc.lock is stale" in said
    assert "compare: params.yaml: evaluation modified" in said

    hooked.dvc("repro")
    hooked.git("commit", "--quiet", "--all", "-m", "rerun")
    said = hooked.git("push", "origin", "main")  # without a remote for data there is nothing to push
    assert "main -> main" in said
    hooked.dvc("remote", "add", "--local", "--default", "here", str(tmp_path / "data"))
    (hooked.root / "note.txt").write_text("a note\n")
    hooked.git("add", "--all")
    hooked.git("commit", "--quiet", "-m", "note")
    hooked.git("push", "origin", "main")
    assert (tmp_path / "data" / "files").is_dir()


def test_a_checkout_brings_the_data_of_its_commit(hooked: Folder) -> None:
    model = hooked.root / "models" / "plain" / "policy" / "policy.safetensors"
    content = model.read_bytes()
    hooked.git("switch", "--quiet", "--create", "other")
    shutil.rmtree(model.parent)
    hooked.git("switch", "main")
    assert model.read_bytes() == content


def test_a_checkout_without_data_says_so_and_succeeds(hooked: Folder) -> None:
    shutil.rmtree(hooked.root / "models")
    shutil.rmtree(hooked.root / ".dvc" / "cache")
    switched = ("--hook-stage", "post-checkout", "--from-ref", "HEAD", "--to-ref", "HEAD", "--checkout-type", "1")
    said = hooked.run("pre-commit", "run", *switched)
    assert "dvc pull or dvc repro brings it" in said
