"""What the report is made of, beside tables: pictures, dvc.lock, cards, and what the last commit holds of them."""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from pipeline.config import PARAMS_FILE
from pipeline.errors import UserError
from pipeline.schemas import ResultTables
from pipeline.storage.files import read_table
from pipeline.storage.paths import MODELS, REPORTS, results_folder
from pipeline.storage.revisions import committed

LOCK = Path("dvc.lock")
PAPER_COLUMNS = ("figure", "title", "paper", "claim", "found", "agrees")
DVC_CONFIG = (Path(".dvc/config"), Path(".dvc/config.local"))


def must_exist(paths: Sequence[Path]) -> None:
    """Refuse, in one line, to go on without all of some outputs."""
    gone = [path.as_posix() for path in paths if not path.exists()]
    if gone:
        verb = "is" if len(gone) == 1 else "are"
        raise UserError(f"{', '.join(gone)} {verb} missing: run 'dvc repro' (or 'dvc pull') first")


def read_pictures(folder: Path) -> dict[str, bytes]:
    """Return the PNG files of a folder by name without suffix; none where there is no folder."""
    return {path.stem: path.read_bytes() for path in sorted(folder.glob("*.png"))}


def read_pair(agent: str, scenario: str, tables: ResultTables) -> pd.DataFrame:
    """Read the jobset results of one agent, and of the heuristics of its scenario."""
    folders = (results_folder("agents", agent), results_folder("heuristics", scenario))
    return pd.concat([read_table(folder / "jobsets.parquet", tables.jobsets) for folder in folders])


def read_papers() -> pd.DataFrame | None:
    """Return the papers' claims, or nothing where that stage has not run."""
    path = REPORTS / "papers.csv"
    if not path.exists():
        return None
    frame = pd.read_csv(path)
    if missing := [name for name in PAPER_COLUMNS if name not in frame]:
        raise UserError(f"{path}: columns: missing {', '.join(missing)}: run 'dvc repro'")
    return frame


def read_lock() -> dict[str, Any]:
    """Read dvc.lock.

    Raises:
        UserError: it is missing, or not what DVC writes.
    """
    try:
        lock = _yaml(LOCK.read_bytes())
    except (OSError, YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"{LOCK}: cannot be read: run 'dvc repro' first") from error
    if not _is_lock(lock):
        raise UserError(f"{LOCK}: expected stages by name, each with outputs and params: 'git checkout {LOCK}'")
    return lock


def read_params_text() -> str:
    """Return params.yaml as it is written."""
    return PARAMS_FILE.read_text(encoding="utf-8")


def read_params_values() -> dict[str, Any]:
    """Return the values of params.yaml as they are written, without defaults."""
    return _yaml(PARAMS_FILE.read_bytes())


def committed_yaml(path: Path) -> dict[str, Any]:
    """Return a YAML file as the last commit holds it; nothing in it where there is none."""
    content = committed(path)
    try:
        found = _yaml(content) if content else {}
    except (YAMLError, UnicodeDecodeError):
        return {}
    return found if path != LOCK or _is_lock(found) else {}


def committed_table(path: Path, columns: Sequence[str]) -> pd.DataFrame | None:
    """Return columns of a CSV table as the last commit holds it, or nothing where it does not hold them."""
    content = committed(path)
    try:
        return None if content is None else pd.read_csv(io.BytesIO(content), usecols=list(columns))
    except ValueError:
        return None


def read_cards() -> dict[str, bytes]:
    """Return the cards of all models by the folder of the model."""
    return {path.parent.as_posix(): path.read_bytes() for path in sorted(MODELS.glob("*/*/policy.json"))}


def has_remote() -> bool:
    """Return whether DVC has a place to pull data from."""
    return any(path.is_file() and "[remote " in path.read_text().replace("['", "[") for path in DVC_CONFIG)


def _yaml(content: bytes) -> dict[str, Any]:
    found = YAML(typ="safe").load(content.decode())
    return found if isinstance(found, dict) else {}


def _is_lock(lock: dict[str, Any]) -> bool:
    """Return whether a lock has the shape that its readers rely on."""
    stages = lock.get("stages") or {}
    if not isinstance(stages, dict) or not all(isinstance(stage, dict) for stage in stages.values()):
        return False
    outs = [out for stage in stages.values() for out in stage.get("outs", [])]
    used = [stage.get("params", {}) for stage in stages.values()]
    return all(isinstance(out, dict) and "path" in out for out in outs) and all(isinstance(one, dict) for one in used)
