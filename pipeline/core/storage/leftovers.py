"""Leftovers of removed rows of params.yaml: stages of dvc.lock, and their outputs."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from pydantic import BaseModel, ValidationError, field_validator

from pipeline.core.config import PARAMS_FILE
from pipeline.core.config.parsing import parsed, value_at
from pipeline.core.storage.evidence import from_commit
from pipeline.core.storage.files import discard, write
from pipeline.core.storage.paths import DATA, MODELS, REPORTS
from pipeline.core.types import Json
from pipeline.errors import UserError

LOCK, STAGES = Path("dvc.lock"), Path("dvc.yaml")
OURS = {place.name for place in (DATA, MODELS, REPORTS)}  # only these are removed
HEAD = re.compile(r"  (\S.*):$")  # of a stage, as DVC writes it


class StageOutput(BaseModel):
    """An output in dvc.lock."""

    path: Path
    md5: str = ""


class Stage(BaseModel):
    """A stage, in dvc.yaml or in dvc.lock."""

    foreach: str = ""  # of dvc.yaml: the section of params.yaml that it multiplies over
    outs: list[StageOutput] = []

    @field_validator("outs", mode="before")
    @classmethod
    def _of_the_lock(cls, outs: list[Json]) -> list[Json]:
        return [out for out in outs if isinstance(out, Mapping) and "path" in out]  # those of dvc.yaml are not needed


class Stages(BaseModel):
    """All stages by name."""

    stages: dict[str, Stage] | None = None


def forgotten() -> dict[str, dict[Path, str]]:
    """Return the stages of dvc.lock without a row in params.yaml, with the md5 of each output; UserError if invalid."""
    if not (LOCK.exists() and STAGES.exists()):
        return {}
    locked, named = _stages(LOCK), set(_named())
    return {
        name: {out.path: out.md5 for out in stage.outs if _is_ours(out.path)}
        for name, stage in locked.items()
        if name not in named
    }


def forget(stages: set[str]) -> None:
    """Remove stages from dvc.lock; all other lines stay unchanged."""
    kept, keep = list[str](), True
    for line in LOCK.read_text(encoding="utf-8").splitlines(keepends=True):
        if head := HEAD.match(line):
            keep = head[1].strip("'\"") not in stages
        elif not line.startswith(" "):
            keep = True
        kept += [line] if keep else []
    write(LOCK, "".join(kept).encode())


def remove(path: Path) -> None:
    """Remove an output, and folders that become empty."""
    discard(path)
    for folder in [*path.parents][:-2]:  # but not data, models and reports
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()


def _is_ours(path: Path) -> bool:
    return len(path.parts) > 1 and path.parts[0] in OURS and ".." not in path.parts


def _named() -> Iterator[str]:
    """Yield the name of every stage of dvc.yaml and params.yaml."""
    params = _read(PARAMS_FILE)
    for kind, stage in _stages(STAGES).items():
        if not stage.foreach:
            yield kind
            continue
        rows = value_at(params, stage.foreach.removeprefix("${").removesuffix("}"))
        yield from (f"{kind}@{row}" for row in (rows if isinstance(rows, Mapping | list) else ()))


def _stages(path: Path) -> dict[str, Stage]:
    try:
        return Stages.model_validate(_read(path)).stages or {}
    except ValidationError as error:
        raise UserError(f"{path}: expected stages by name: {from_commit(path)}") from error


def _read(path: Path) -> Json:
    try:
        found: Json = parsed(path.read_bytes().decode(), str(path), of_dvc=True)
    except (OSError, UserError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: cannot be read: {from_commit(path)}") from error
    return found
