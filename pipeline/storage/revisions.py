"""What git knows: the commit of the working tree, and files as that commit holds them."""

import os
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
    found = git("log", "-1", "--format=%H%n%s")
    if found is None:
        return None
    name, subject = found.decode(errors="replace").rstrip("\n").split("\n", 1)
    status = git("status", "--porcelain", "--untracked-files=normal", "--", *CODE) or b""
    return Commit(name, subject, [line[3:] for line in status.decode(errors="replace").splitlines()])


def committed(path: Path) -> bytes | None:
    """Return a file as the last commit holds it, or nothing where it does not."""
    return git("show", f"HEAD:./{path.as_posix()}")


def from_commit(path: Path) -> str:
    """Return the advice for a file that is damaged, or that a merge left with its marks of a conflict.

    Without HEAD, git refuses to check out a path that is unmerged.
    """
    return f"'git checkout HEAD -- {path.as_posix()}' brings back the last commit's"


def git(*words: str) -> bytes | None:
    """Return the output of a git command, or nothing where there is no git, no repository or no such object."""
    # Inside a hook or an experiment GIT_DIR may be set; that is the repository meant.
    try:
        return _run(*words).stdout
    except (OSError, subprocess.SubprocessError):
        return None


def refusal() -> str | None:
    """Return why git refuses this repository (another owner's, say), or nothing where it does not, or is not there."""
    try:
        _run("rev-parse", "--git-dir")
    except subprocess.CalledProcessError as error:
        said = error.stderr.decode(errors="replace").strip()
        return None if "not a git repository" in said else " ".join(said.split())
    except subprocess.TimeoutExpired as error:
        return str(error)
    except OSError:
        return None
    return None


def _run(*words: str) -> "subprocess.CompletedProcess[bytes]":
    command = ["git", "--no-optional-locks", "-c", "core.quotePath=false", *words]
    english = {**os.environ, "LC_ALL": "C"}
    return subprocess.run(command, capture_output=True, check=True, timeout=30, env=english)
