"""Digests: DVC's md5 of a file or folder, so that a run's inputs can be found by what `dvc.lock` says."""

import hashlib
import json
import os
from pathlib import Path

from ruamel.yaml import YAML

LOCK = Path("dvc.lock")


def digest(path: Path) -> str:
    """Return the md5 of a file, or of a folder as DVC computes it (ends in .dir; 36 characters)."""
    return _locked(path) or (_folder(path) if path.is_dir() else _file(path))


def _locked(path: Path) -> str | None:
    """Return the md5 that DVC wrote down for an output.

    Only under DVC: a stage that is run by hand may read files that are newer than dvc.lock.
    """
    if not os.environ.get("DVC_STAGE") or not LOCK.exists():
        return None
    stages = YAML(typ="safe").load(LOCK)["stages"].values()
    outs = {out["path"]: out.get("md5") for stage in stages for out in stage.get("outs", [])}
    return outs.get(path.as_posix())


def _folder(path: Path) -> str:
    files = {file.relative_to(path).as_posix(): file for file in path.rglob("*") if file.is_file()}
    tree = [{"md5": _file(files[name]), "relpath": name} for name in sorted(files)]
    return _md5(json.dumps(tree, sort_keys=True).encode()) + ".dir"


def _file(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, _plain_md5).hexdigest()


def _md5(content: bytes) -> str:
    return hashlib.md5(content, usedforsecurity=False).hexdigest()


def _plain_md5() -> "hashlib._Hash":
    return hashlib.md5(usedforsecurity=False)
