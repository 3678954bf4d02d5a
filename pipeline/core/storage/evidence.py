"""Inputs of the report other than results: pictures, dvc.lock, cards, and the files of the last commit."""

import io
import subprocess
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from pipeline.core.config import PARAMS_FILE
from pipeline.core.config.parsing import parsed
from pipeline.core.schemas import ResultTables
from pipeline.core.storage.files import read_table
from pipeline.core.storage.paths import MODELS, REPORTS, results_folder
from pipeline.core.types import Json
from pipeline.errors import UserError

LOCK = Path("dvc.lock")
PAPER_COLUMNS = ("figure", "title", "paper", "claim", "part", "verdict", "found", "no_if")
CODE = ("pipeline", "params.yaml", "dvc.yaml")
DVC_CONFIG = (Path(".dvc/config"), Path(".dvc/config.local"))


class Out(NamedTuple):
    """An output in dvc.lock."""

    path: str
    md5: str  # empty if DVC does not keep it
    size: int


class Lock(NamedTuple):
    """Content of dvc.lock for all stages."""

    outs: list[Out]
    params: list[Mapping[str, Json]]  # values of params.yaml used by stages, by place


class Commit(NamedTuple):
    """The commit that the working tree began from."""

    id: str
    subject: str
    dirty: list[str]  # files of code and parameters that differ from it


def head() -> Commit | None:
    """Return the last commit; None without git, a repository or a commit."""
    found = _git("log", "-1", "--format=%H%n%s")
    if found is None:
        return None
    name, subject = found.decode(errors="replace").rstrip("\n").split("\n", 1)
    status = _git("status", "--porcelain", "--untracked-files=normal", "--", *CODE) or b""
    return Commit(name, subject, [line[3:] for line in status.decode(errors="replace").splitlines()])


def committed(path: Path) -> bytes | None:
    """Return a file of the last commit; None if it has none."""
    return _git("show", f"HEAD:./{path.as_posix()}")


def from_commit(path: Path) -> str:
    """Return the advice for a damaged or unmerged file: without HEAD, git refuses to check out the latter."""
    return f"'git checkout HEAD -- {path.as_posix()}' brings back the last commit's"


def _git(*words: str) -> bytes | None:
    command = ["git", "--no-optional-locks", "-c", "core.quotePath=false", *words]
    try:
        return subprocess.run(command, capture_output=True, check=True, timeout=30).stdout
    except (OSError, subprocess.SubprocessError):
        return None


def check_exist(paths: Sequence[Path]) -> None:
    """Refuse, in one line, to continue without some outputs."""
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
    if missing := [name for name in PAPER_COLUMNS if name not in frame]:
        raise UserError(f"{path}: columns: missing {', '.join(missing)}: run 'dvc repro'")
    return frame


def read_lock(without: Collection[str] = ()) -> Lock:
    """Read dvc.lock, without some stages; a UserError if it is missing or invalid."""
    try:
        lock = _yaml(LOCK.read_bytes())
    except OSError as error:
        raise UserError(f"{LOCK}: cannot be read: run 'dvc repro' first") from error
    except (UserError, UnicodeDecodeError) as error:
        raise UserError(f"{LOCK}: not YAML: {from_commit(LOCK)}") from error
    found = _lock(lock, without)
    if found is None:
        raise UserError(f"{LOCK}: expected stages by name, each with outputs and params: {from_commit(LOCK)}")
    return found


def read_params_values() -> Mapping[str, Json]:
    """Return the values written in params.yaml, without defaults."""
    return _yaml(PARAMS_FILE.read_bytes())


def committed_lock() -> Lock:
    """Return dvc.lock of the last commit; an empty one if there is none."""
    return _lock(committed_yaml(LOCK)) or Lock([], [])


def committed_yaml(path: Path) -> Mapping[str, Json]:
    """Return the content of a YAML file in the last commit; empty if there is none."""
    content = committed(path)
    try:
        return _yaml(content) if content else {}
    except (UserError, UnicodeDecodeError):
        return {}


def committed_table(path: Path, columns: Sequence[str]) -> pd.DataFrame | None:
    """Return columns of a CSV table of the last commit; None if it does not have them."""
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


def _yaml(content: bytes) -> Mapping[str, Json]:
    found = parsed(content.decode(), "dvc.lock", of_dvc=True)
    return found if isinstance(found, dict) else {}


def _lock(found: Mapping[str, Json], without: Collection[str] = ()) -> Lock | None:
    """Return the outputs and params of a dvc.lock; None if it does not have DVC's structure."""
    stages = found.get("stages") or {}
    if not isinstance(stages, Mapping):
        return None
    lock = Lock([], [])
    for name, stage in stages.items():
        if name in without:
            continue
        if not isinstance(stage, Mapping):
            return None
        outs, params = stage.get("outs", []), stage.get("params", {})
        if not isinstance(outs, list) or not isinstance(params, Mapping):
            return None
        for out in outs:
            if not isinstance(out, Mapping) or "path" not in out:
                return None
            size = out.get("size", 0)
            lock.outs.append(Out(str(out["path"]), str(out.get("md5", "")), size if isinstance(size, int) else 0))
        used = params.get(PARAMS_FILE.as_posix())
        lock.params.append(used if isinstance(used, Mapping) else {})
    return lock
