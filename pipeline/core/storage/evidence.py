"""Inputs of the report other than results (pictures, dvc.lock, cards, the files of the last commit), and leftovers.

Leftovers of removed rows of params.yaml are stages of dvc.lock and their outputs.
"""

import io
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from pydantic import BaseModel, ValidationError

from pipeline.core.config import PARAMS_FILE
from pipeline.core.config.git import CODE, git
from pipeline.core.config.parsing import parsed, value_at
from pipeline.core.schemas import ResultTables
from pipeline.core.schemas.tables import PAPERS
from pipeline.core.storage.files import discard, read_table, write
from pipeline.core.storage.paths import DATA, MODELS, REPORTS, results_folder
from pipeline.core.types import Json
from pipeline.errors import UserError

LOCK = Path("dvc.lock")
STAGES = Path("dvc.yaml")
OURS = {place.name for place in (DATA, MODELS, REPORTS)}  # only these are removed
HEAD = re.compile(r"  (\S.*):$")  # the first line of a stage, as DVC writes it
DVC_CONFIG = (Path(".dvc/config"), Path(".dvc/config.local"))


class Out(NamedTuple):
    """An output in dvc.lock."""

    path: str
    md5: str  # empty if DVC does not keep it
    size: int


class Stage(BaseModel):
    """A stage, in dvc.yaml or in dvc.lock."""

    foreach: str = ""  # of dvc.yaml: the section of params.yaml for whose rows it is repeated
    outs: list[Any] = []
    params: Any = None

    @property
    def locked(self) -> list[Out]:
        """Return the outputs with their md5; those of dvc.yaml have none."""
        found = [out for out in self.outs if isinstance(out, Mapping) and "path" in out]
        return [Out(str(out["path"]), str(out.get("md5", "")), int(out.get("size", 0))) for out in found]


class Stages(BaseModel):
    """All stages by name."""

    stages: dict[str, Stage] | None = None


class Lock(NamedTuple):
    """Content of dvc.lock for all stages."""

    outs: list[Out]
    params: list[Mapping[str, Json]]  # values of params.yaml used by stages, by place


class Commit(NamedTuple):
    """The commit that the working tree is based on."""

    id: str
    subject: str
    dirty: list[str]  # files of code and parameters that differ from it


def head() -> Commit | None:
    """Return the last commit; None without git, a repository or a commit."""
    found = git("log", "-1", "--format=%H%n%s")
    if found is None:
        return None
    name, subject = found.decode(errors="replace").rstrip("\n").split("\n", 1)
    status = git("status", "--porcelain", "--untracked-files=normal", "--", *CODE) or b""
    return Commit(name, subject, [line[3:] for line in status.decode(errors="replace").splitlines()])


def committed(path: Path) -> bytes | None:
    """Return the content of a file in the last commit; None if it is not there."""
    return git("show", f"HEAD:./{path.as_posix()}")


def from_commit(path: Path) -> str:
    """Return the advice for a damaged or unmerged file; without HEAD, git refuses to check out an unmerged one."""
    return f"'git checkout HEAD -- {path.as_posix()}' brings back the last commit's"


def check_exist(paths: Sequence[Path]) -> None:
    """Raise a one-line UserError if outputs are missing."""
    gone = [path.as_posix() for path in paths if not path.exists()]
    if gone:
        verb = "is" if len(gone) == 1 else "are"
        raise UserError(f"{', '.join(gone)} {verb} missing: run 'dvc repro' (or 'dvc pull') first")


def read_pictures(folder: Path) -> dict[str, bytes]:
    """Return the PNG files of a folder, if any, by name without suffix."""
    return {path.stem: path.read_bytes() for path in sorted(folder.glob("*.png"))}


def read_pair(agent: str, scenario: str, tables: ResultTables) -> pd.DataFrame:
    """Read the jobset results of one agent, and of the heuristics of its scenario."""
    made = results_folder("policies", agent)
    folders = (made if made.is_dir() else results_folder("agents", agent), results_folder("heuristics", scenario))
    return pd.concat([read_table(folder / "jobsets.parquet", tables.jobsets) for folder in folders])


def read_papers() -> pd.DataFrame | None:
    """Return the papers' claims; None if that stage has not run."""
    path = REPORTS / "papers.csv"
    if not path.exists():
        return None
    frame = pd.read_csv(path)
    if missing := [name for name in PAPERS.columns if name not in frame]:
        raise UserError(f"{path}: columns: missing {', '.join(missing)}: run 'dvc repro'")
    return frame


def read_lock(without: Collection[str] = ()) -> Lock:
    """Read dvc.lock, without some stages; a UserError if it is missing or invalid."""
    try:
        content = LOCK.read_bytes()
    except OSError as error:
        raise UserError(f"{LOCK}: cannot be read: run 'dvc repro' first") from error
    return _lock(content, without)


def read_params_values() -> Mapping[str, Json]:
    """Return the values written in params.yaml, without defaults."""
    return _yaml(PARAMS_FILE.read_bytes(), PARAMS_FILE)


def committed_lock() -> Lock:
    """Return dvc.lock of the last commit; an empty one if there is none."""
    with suppress(UserError):
        return _lock(committed(LOCK) or b"{}")
    return Lock([], [])


def committed_yaml(path: Path) -> Mapping[str, Json]:
    """Return the content of a YAML file in the last commit; empty if there is none."""
    with suppress(UserError):
        return _yaml(committed(path) or b"", path)
    return {}


def committed_table(path: Path, columns: Sequence[str]) -> pd.DataFrame | None:
    """Return columns of a CSV table in the last commit; None if that has no such table or columns."""
    content = committed(path)
    try:
        return None if content is None else pd.read_csv(io.BytesIO(content), usecols=list(columns))
    except ValueError:
        return None


def read_cards() -> dict[str, bytes]:
    """Return the cards of all models by the folder of the model."""
    return {path.parent.as_posix(): path.read_bytes() for path in sorted(MODELS.glob("*/*/policy.json"))}


def has_remote() -> bool:
    """Return whether DVC has a remote."""
    return any(path.is_file() and "[remote " in path.read_text().replace("['", "[") for path in DVC_CONFIG)


def stages_in(content: bytes, path: Path) -> dict[str, Stage]:
    """Return the stages of dvc.yaml or dvc.lock by name; a UserError if the file is invalid."""
    try:
        return Stages.model_validate(_yaml(content, path)).stages or {}
    except ValidationError as error:
        raise UserError(f"{path}: expected stages by name: {from_commit(path)}") from error


def _yaml(content: bytes, path: Path) -> Mapping[str, Json]:
    try:
        found = parsed(content.decode(), str(path), of_dvc=True)
    except (UserError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: cannot be read: {from_commit(path)}") from error
    return found if isinstance(found, dict) else {}


def _lock(content: bytes, without: Collection[str] = ()) -> Lock:
    """Return the outputs and params of a dvc.lock."""
    stages = [stage for name, stage in stages_in(content, LOCK).items() if name not in without]
    used = [stage.params.get(PARAMS_FILE.as_posix(), {}) for stage in stages if isinstance(stage.params, Mapping)]
    return Lock([out for stage in stages for out in stage.locked], used)


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
