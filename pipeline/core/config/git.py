"""Calls of git."""

import os
import subprocess

CODE = ("pipeline", "params.yaml", "dvc.yaml")


def git(*words: str) -> bytes | None:
    """Return the output of a git command, or None if git, the repository or the object is missing."""
    # Inside a hook or an experiment GIT_DIR may be set; that is the intended repository.
    try:
        return _run(*words).stdout
    except (OSError, subprocess.SubprocessError):
        return None


def refusal() -> str | None:
    """Return the reason why git refuses this repository (such as another owner), if it does."""
    try:
        _run("rev-parse", "--git-dir")
    except subprocess.CalledProcessError as error:
        said = error.stderr.decode(errors="replace").strip()
        return None if "not a git repository" in said else " ".join(said.split())
    except (OSError, subprocess.SubprocessError):
        return None
    return None


def _run(*words: str) -> "subprocess.CompletedProcess[bytes]":
    command = ["git", "--no-optional-locks", "-c", "core.quotePath=false", *words]
    return subprocess.run(command, capture_output=True, check=True, timeout=30, env={**os.environ, "LC_ALL": "C"})
