"""Workspaces of a sweep: each point in its own clone, which shares git's objects, DVC's cache and compiled code.

As in DVC's own temporary experiments, tracked files are included with their changes, untracked ones are left out.
`dvc repro` runs the stages, `dvc exp run` saves them as an experiment, `dvc exp push` brings it here.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pipeline.core.config.git import git, refusal
from pipeline.errors import UserError
from pipeline.farming.dvc_stages import cache_folder
from pipeline.farming.farm import Command
from pipeline.farming.grid import Point
from pipeline.farming.notes import FOLDER

PLACE = FOLDER / "points"
LOCAL = Path(".dvc/config.local")
# Only the last command writes to the repository; only `repro` runs stages.
MAKE = """
"$0" -m dvc cache dir --quiet --local "$1"
"$0" -m dvc --wait-for-lock repro
"$0" -m dvc --wait-for-lock exp run --quiet --name "$2"
"$0" -m dvc exp push --quiet --no-cache "$3" "$2"
"""
NAMED = 3  # untracked files in a message


@dataclass(frozen=True)
class Base:
    """The starting point of all points."""

    head: str  # commit
    changes: str  # commit of later changes, or ""
    cache: str  # path of DVC's cache
    untracked: list[str]  # files that are left out

    @classmethod
    def here(cls) -> "Base":
        """Return the base of this repository."""
        head, top = git("rev-parse", "--verify", "--quiet", "HEAD"), git("rev-parse", "--show-toplevel")
        if head is None or top is None:
            why = refusal() or "git has none here: commit"
            raise UserError(f"farm: a sweep starts from a commit, as DVC's experiments do: {why}")
        if Path(top.decode().strip()).resolve() != Path.cwd().resolve():
            raise UserError(f"farm: expected git's root here, it is {top.decode().strip()}")
        git("update-index", "-q", "--refresh")  # else `create` fails if a file was only touched or copied
        changes = git("stash", "create")
        if changes is None:
            raise UserError("farm: git cannot keep what is changed here: a merge that is not done, or no user.name")
        other = git("ls-files", "-z", "--others", "--exclude-standard") or b""
        names = [name for name in other.decode().split("\0") if name and not name.startswith(".dvc/")]
        return cls(head.decode().strip(), changes.decode().strip(), cache_folder(), names)

    @property
    def said(self) -> list[str]:
        """Return notes for users, a line each."""
        lines = []
        if self.changes:
            lines.append("farm: files are changed since the last commit; every point has them so, as with dvc exp run")
        if self.untracked:
            more = ", ..." if len(self.untracked) > NAMED else ""
            names = ", ".join(self.untracked[:NAMED]) + more
            lines.append(f"farm: git does not track {names}: left out, as with dvc exp run --temp; git add takes them")
        return lines

    def saved(self) -> set[str]:
        """Return the experiments that start from the same commit."""
        found = git("for-each-ref", "--format=%(refname)", self.ref("")) or b""
        return {name.removeprefix(self.ref("")) for name in found.decode().split()}

    def ref(self, name: str) -> str:
        """Return the git reference of an experiment."""
        return f"refs/exps/{self.head[:2]}/{self.head[2:]}/{name}"


def lay_out(base: Base, point: Point, name: str) -> Command:
    """Create the workspace of a point, and return the command that makes the point in it."""
    from dvc.utils.hydra import apply_overrides

    root, place = Path.cwd(), PLACE / name
    clear(name)
    place.parent.mkdir(parents=True, exist_ok=True)
    _git(root, "clone", "--quiet", "--shared", "--no-checkout", str(root), str(place))
    _git(place, "checkout", "--quiet", "--detach", base.head)
    if base.changes:
        _git(place, "restore", f"--source={base.changes}", "--staged", "--worktree", ".")
    for key in ("user.name", "user.email"):
        if own := git("config", key):
            _git(place, "config", key, own.decode().strip())
    if LOCAL.exists():
        shutil.copy(LOCAL, place / LOCAL)
    apply_overrides(place / "params.yaml", [f"++{key}={json.dumps(value)}" for key, value in point.values.items()])
    lend_compiled(root, place)
    words = ("/bin/sh", "-e", "-c", MAKE, sys.executable, base.cache, name, str(root))
    return Command(words, place, {"DVC_ROOT": str(root), "DVC_EXP_NAME": name, "DVC_EXP_BASELINE_REV": base.head})


def clear(name: str = "") -> None:
    """Remove the workspace of a point, or all: checkpoints are elsewhere, and results in DVC's cache."""
    shutil.rmtree(PLACE / name, ignore_errors=True)


def lend_compiled(root: Path, place: Path) -> None:
    """Link this repository's compiled code into a clone: numba stores it by the path of its sources."""
    from numba.core.caching import UserProvidedCacheLocator

    named: Callable[[str], str] = UserProvidedCacheLocator.get_suitable_cache_subpath
    compiled = Path(os.environ.get("NUMBA_CACHE_DIR", ""))
    own = root / "pipeline" / "__pycache__"
    if not compiled.is_dir() or compiled.parent.resolve() != own.resolve():
        return
    there = place / "pipeline" / "__pycache__" / compiled.name
    for folder in {source.parent for source in (root / "pipeline").rglob("*.py")}:
        inside = folder.relative_to(root) / "_.py"
        ours, theirs = (named(str(base.absolute() / inside)) for base in (root, place))
        if (compiled / ours).is_dir():
            shutil.copytree(compiled / ours, there / theirs, copy_function=os.link)  # numba never rewrites files


def _git(place: Path, *words: str) -> None:
    done = subprocess.run(["git", "-C", str(place), *words], check=False, capture_output=True, text=True)
    if done.returncode:
        raise UserError(f"farm: git {words[0]}: {' '.join(done.stderr.split())[:300] or 'failed'}")
