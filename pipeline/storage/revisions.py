"""What git knows: the commit of the working tree, and files as that commit holds them."""

import subprocess
from pathlib import Path
from typing import NamedTuple

CODE = ("pipeline", "params.yaml", "dvc.yaml")


class Commit(NamedTuple):
    """The commit that the working tree began from."""

    id: str
    subject: str
    dirty: list[str]  # files of code and parameters that differ from it


def head() -> Commit | None:
    """Return the last commit, or nothing where there is no git, no repository or no commit."""
    found = _git("log", "-1", "--format=%H%n%s")
    if found is None:
        return None
    name, subject = found.decode(errors="replace").rstrip("\n").split("\n", 1)
    status = _git("status", "--porcelain", "--untracked-files=normal", "--", *CODE) or b""
    return Commit(name, subject, [line[3:] for line in status.decode(errors="replace").splitlines()])


def committed(path: Path) -> bytes | None:
    """Return a file as the last commit holds it, or nothing where it does not."""
    return _git("show", f"HEAD:./{path.as_posix()}")


def from_commit(path: Path) -> str:
    """Return the advice for a file that is damaged, or unmerged: without HEAD, git refuses to check that out."""
    return f"'git checkout HEAD -- {path.as_posix()}' brings back the last commit's"


def _git(*words: str) -> bytes | None:
    command = ["git", "--no-optional-locks", "-c", "core.quotePath=false", *words]
    try:
        return subprocess.run(command, capture_output=True, check=True, timeout=30).stdout
    except (OSError, subprocess.SubprocessError):
        return None
