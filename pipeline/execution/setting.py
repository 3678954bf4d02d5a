"""The place where tasks run: the variable PIPELINE_EXECUTOR, else [executor] of pipeline.toml at the root."""

import os
import re
import tomllib
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from pipeline.core.config import Frozen, repository_root
from pipeline.errors import UserError

VARIABLE, FILE = "PIPELINE_EXECUTOR", Path("pipeline.toml")
FOLDER = Path(".cache/tasks")
LOOKED_S = 1.0  # between two reports of progress
WORD = re.compile(r"(?P<backend>serial|processes|ray|slurm)(:(?P<workers>[1-9][0-9]{0,4}))?(@(?P<at>\S+))?")
ADDRESS = re.compile(r"(?P<host>[^\s:]+):(?P<port>[0-9]{1,5})")
EXPECTED = "expected serial, processes:N, ray:N, ray:N@HOST:PORT, slurm:N or slurm:N@PARTITION"

Backend = Literal["serial", "processes", "ray", "slurm"]


class Setting(Frozen):
    """Place where tasks run, and how many run at a time."""

    backend: Backend = "serial"
    workers: int | None = Field(default=None, ge=1)  # None: the number of cores, here or in Ray's cluster
    address: str = ""  # host:port of a Ray cluster; without one, the stage starts and ends a Ray of its own
    partition: str = ""  # of Slurm; without one, its default
    minutes: int = Field(default=60, ge=1)  # time limit of a worker in Slurm
    options: dict[str, str | int | bool] = Field(default={})  # further options of srun, such as {account = "mine"}
    folder: Path = FOLDER  # of task results; every worker must see it under the same path


def setting(default: Setting | None = None) -> Setting:
    """Return the user's setting, or the default; a UserError if it is invalid."""
    if word := os.environ.get(VARIABLE):
        parts = WORD.fullmatch(word)
        if not parts or (parts["at"] and parts["backend"] not in ("ray", "slurm")):
            raise UserError(f"{VARIABLE}: {EXPECTED}, found '{word}'")
        fields: dict[str, Any] = {"backend": parts["backend"]}
        if parts["workers"]:
            fields["workers"] = int(parts["workers"])
        if parts["at"]:
            fields["address" if parts["backend"] == "ray" else "partition"] = parts["at"]
        return _checked(fields, VARIABLE)
    path = repository_root() / FILE
    if not path.exists():
        return default or Setting()
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UserError(f"{FILE}: cannot be read ({error})") from error
    if unknown := sorted(set(tables) - {"executor"}):
        raise UserError(f"{FILE}: expected a table [executor] only, found '{unknown[0]}'")
    if "executor" not in tables:
        return default or Setting()
    if not isinstance(rows := tables["executor"], dict):
        raise UserError(f"{FILE}: expected a table [executor], found {rows!r}")
    return _checked(rows, f"{FILE}: executor")


def _checked(fields: dict[str, Any], where: str) -> Setting:
    try:
        found = Setting.model_validate(fields)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise UserError(f"{where}.{place}: {first['msg']}, found {first['input']!r}") from error
    if found.address and not ADDRESS.fullmatch(found.address):
        raise UserError(f"{where}: expected HOST:PORT of a Ray cluster, found '{found.address}'")
    if found.backend == "slurm" and found.workers is None:
        raise UserError(f"{where}: expected how many workers Slurm runs at a time, as slurm:4")
    return found


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
