"""Paths of the pipeline's files, and digests of their content."""

import hashlib
import json
from pathlib import Path

DATA = Path("data")
MODELS = Path("models")
REPORTS = Path("reports")
TABLES = REPORTS / "tables"
LOG = DATA / "log"
LOGS = DATA / "logs"
OUTAGES_NAME = "outages"  # a folder in that of a scenario's log
POLICIES = DATA / "policies"


def scenario_log(scenario: str) -> Path:
    """Return the folder of a scenario's own log."""
    return LOGS / scenario


def jobsets_folder(scenario: str) -> Path:
    """Return the folder of a scenario's jobsets."""
    return DATA / "jobsets" / scenario


def model_folder(agent: str, which: str) -> Path:
    """Return the folder of an agent's model: `pretrained` or `policy`."""
    return MODELS / agent / which


def policy_folder(name: str) -> Path:
    """Return the folder of links to an external policy's files."""
    return POLICIES / name


def curve_file(agent: str, stage: str) -> Path:
    """Return the file of an agent's learning curve."""
    return REPORTS / "curves" / f"{agent}_{stage}.csv"


def results_folder(kind: str, name: str) -> Path:
    """Return the folder of results: of the `heuristics` of a scenario, or of a row of `agents`, `plans` and so on."""
    return TABLES / kind / name


def sha256_of(path: Path) -> str:
    """Return the sha256 of a file, or of the names and contents in a folder."""
    if path.is_dir():
        inside = {file.relative_to(path).as_posix(): sha256_of(file) for file in path.rglob("*") if file.is_file()}
        return hashlib.sha256(json.dumps(inside, sort_keys=True).encode()).hexdigest()
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
