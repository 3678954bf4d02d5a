"""Where tasks run: the variable PIPELINE_EXECUTOR, else [executor] of pipeline.toml at the repository's root."""

import os
import re
import tomllib
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pipeline.config import repository_root
from pipeline.errors import UserError

VARIABLE, FILE = "PIPELINE_EXECUTOR", Path("pipeline.toml")
FOLDER = Path(".cache/tasks")
WORD = re.compile(r"(?P<backend>serial|processes|ray|slurm)(:(?P<workers>[1-9][0-9]{0,4}))?(@(?P<at>\S+))?")
ADDRESS = re.compile(r"(?P<host>[^\s:]+):(?P<port>[0-9]{1,5})")
EXPECTED = "expected serial, processes:N, ray:N, ray:N@HOST:PORT, slurm:N or slurm:N@PARTITION"

Backend = Literal["serial", "processes", "ray", "slurm"]


class Setting(BaseModel):
    """Where tasks run, and how many at a time."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    backend: Backend = "serial"
    workers: int | None = Field(default=None, ge=1)  # None: as many as there are cores, here or in Ray's cluster
    address: str = ""  # host:port of a Ray cluster; without one, Ray is started here and ended with the stage
    partition: str = ""  # of Slurm; without one, its default
    minutes: int = Field(default=60, ge=1)  # that Slurm lets a worker run
    options: dict[str, str | int | bool] = {}  # more of sbatch, as {account = "mine"}
    folder: Path = FOLDER  # of what tasks found; every worker must see it under the same path


def setting(default: Setting | None = None) -> Setting:
    """Return what the user set, or the default.

    Raises:
        UserError: it is none of those that there are; one line.
    """
    if word := os.environ.get(VARIABLE):
        return checked(_fields(word), VARIABLE)
    path = repository_root() / FILE
    if not path.exists():
        return default or Setting()
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UserError(f"{FILE}: cannot be read ({error})") from error
    if unknown := sorted(set(tables) - {"executor"}):
        raise UserError(f"{FILE}: expected a table [executor] only, found '{unknown[0]}'")
    rows = tables.get("executor")
    if rows is None:
        return default or Setting()
    if not isinstance(rows, dict):
        raise UserError(f"{FILE}: expected a table [executor], found {rows!r}")
    return checked(rows, f"{FILE}: executor")


def checked(fields: dict[str, Any], where: str) -> Setting:
    """Return a setting whose fields go together."""
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


def _fields(word: str) -> dict[str, Any]:
    found = WORD.fullmatch(word)
    if not found or (found["at"] and found["backend"] not in ("ray", "slurm")):
        raise UserError(f"{VARIABLE}: {EXPECTED}, found '{word}'")
    fields: dict[str, Any] = {"backend": found["backend"]}
    if found["workers"]:
        fields["workers"] = int(found["workers"])
    if found["at"]:
        fields["address" if found["backend"] == "ray" else "partition"] = found["at"]
    return fields
