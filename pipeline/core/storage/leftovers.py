"""Leftovers of removed rows of params.yaml: stages of dvc.lock, and their outputs."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from pipeline.core.config.parsing import value_at
from pipeline.core.storage.evidence import LOCK, Stage, read_params_values, stages_in
from pipeline.core.storage.files import discard, write
from pipeline.core.storage.paths import DATA, MODELS, REPORTS

STAGES = Path("dvc.yaml")
OURS = {place.name for place in (DATA, MODELS, REPORTS)}  # only these are removed
HEAD = re.compile(r"  (\S.*):$")  # the first line of a stage, as DVC writes it


def forgotten() -> dict[str, dict[Path, str]]:
    """Return the stages of dvc.lock without a row in params.yaml, with the md5 of each output; UserError if invalid."""
    if not (LOCK.exists() and STAGES.exists()):
        return {}
    locked, named = stages_in(LOCK.read_bytes(), LOCK), set(_named())
    return {name: dict(_ours(stage)) for name, stage in locked.items() if name not in named}


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


def _ours(stage: Stage) -> Iterator[tuple[Path, str]]:
    for out in stage.locked:
        path = Path(out.path)
        if len(path.parts) > 1 and path.parts[0] in OURS and ".." not in path.parts:
            yield path, out.md5


def _named() -> Iterator[str]:
    """Yield the name of every stage of dvc.yaml and params.yaml."""
    params = read_params_values()
    for kind, stage in stages_in(STAGES.read_bytes(), STAGES).items():
        if not stage.foreach:
            yield kind
            continue
        rows = value_at(params, stage.foreach.removeprefix("${").removesuffix("}"))
        yield from (f"{kind}@{row}" for row in (rows if isinstance(rows, Mapping | list) else ()))
