"""Stages of DVC: their graph, the stale ones, and DVC's messages while it runs one. DVC's failures are UserErrors."""

import re
import sys
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pipeline.errors import UserError

# DVC holds its own lock for seconds if outputs are large; without the option, others wait only three seconds for it.
DVC = (sys.executable, "-m", "dvc", "--wait-for-lock")
BUSY_S = 10.0  # for a stage that another DVC runs; a killed one counts until the system has removed its process
LOOK_S = 0.2
LONGEST = 300  # characters of a message
RAN, CACHED, UNCHANGED = "ran", "from DVC's cache", "unchanged"
FATES = {
    RAN: re.compile(r"^Running stage '(.+)':$"),
    CACHED: re.compile(r"^Stage '(.+)' is cached - skipping run"),
    UNCHANGED: re.compile(r"^(?:Stage )?'(.+)' didn't change, skipping$"),
}
# Other messages of DVC: the command that it runs, notes on dvc.lock, advice on git.
NOISE = (
    "> ",
    "Updating lock file",
    "Generating lock file",
    "To track the changes",
    "\tgit add",
    "To enable auto staging",
    "\tdvc config",
    "Use `dvc push`",
    "Verifying ",
    "Data and pipelines are up to date",
)

Graph = Mapping[str, frozenset[str]]  # the stages that each stage needs


@contextmanager
def _repository() -> Iterator[Any]:
    from dvc.exceptions import DvcException
    from dvc.repo import Repo

    try:
        with Repo(".", _wait_for_lock=True) as repo:
            yield repo
    except DvcException as error:
        raise UserError(f"dvc: {' '.join(str(error).split())[:LONGEST]}") from error


def graph() -> Graph:
    """Return the stages of dvc.yaml, each with the stages that it needs, as DVC finds them from their outputs."""
    with _repository() as repo:
        found = repo.index.graph
        return {stage.addressing: frozenset(other.addressing for other in found.successors(stage)) for stage in found}


def stale() -> set[str]:
    """Return the stages whose code, parameters, inputs or outputs differ from dvc.lock, without their dependents."""
    from dvc.lock import LockError

    until = time.monotonic() + BUSY_S
    while True:
        with _repository() as repo:
            try:
                return set(repo.status())
            except LockError:
                if time.monotonic() > until:
                    raise
        time.sleep(LOOK_S)


def cache_folder() -> str:
    """Return the path of DVC's cache."""
    with _repository() as repo:
        return str(Path(repo.cache.local_cache_dir).absolute())


def stages_reading(keys: Collection[str]) -> set[str]:
    """Return the stages that read any of the given dotted keys of params.yaml, or a part of one."""
    from dvc.dependency import ParamsDependency

    with _repository() as repo:
        read = [
            (stage.addressing, name)
            for stage in repo.index.stages
            if hasattr(stage, "name")
            for dep in stage.deps
            if isinstance(dep, ParamsDependency)
            for name in dep.params
        ]
    dotted = [f"{key}." for key in keys]
    return {stage for stage, name in read if any(f"{name}.".startswith(k) or k.startswith(f"{name}.") for k in dotted)}


def repro(stage: str = "") -> list[str]:
    """Return DVC's command for one stage, without the stages that it needs; or for all."""
    return [*DVC, "repro", *(["--single-item", stage] if stage else [])]


def fate(line: str) -> tuple[str, str] | None:
    """Return the stage in a message of DVC and DVC's action, if the line has them.

    >>> fate("Running stage 'gate':"), fate("Stage 'log' didn't change, skipping"), fate("gate: done")
    (('gate', 'ran'), ('log', 'unchanged'), None)
    """
    found = ((match[1], what) for what, said in FATES.items() if (match := said.match(line)))
    return next(found, None)


def is_noise(line: str) -> bool:
    """Return whether a line is a message of DVC's own that users do not need."""
    return not line.strip() or line.startswith(NOISE) or fate(line) is not None
