"""Store: open MLflow's database or server, and get or create the experiment and the parent run.

A new sqlite file is spoilt for good when several processes set it up at once, and two stages must not create two
parents: a file lock lets one process through at a time. The database has an absolute path, for a temporary experiment
runs in a folder that is thrown away.
"""

import os
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pipeline.config import Params, repository_root
from pipeline.tracking.identity import Identity, shared_params

if TYPE_CHECKING:
    from filelock import BaseFileLock
    from mlflow import MlflowClient
    from mlflow.entities import Run

EXPERIMENT = "scheduler-pipeline"
PIPELINE_STAGE = "pipeline"  # tag `stage` of a parent run
EXPERIMENT_TAGS = {
    "mlflow.experimentKind": "custom_model_development",
    "mlflow.note.content": (
        "One row = one `dvc repro` or `dvc exp run`; unfold it for its stages. The charts `slowdown/<policy>` show "
        "slowdown (step = load in percent), one line per row. DVC decides what runs and holds the results; a stage "
        "that DVC restores from its cache runs no code and has no row here."
    ),
}
QUIET = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",  # MLflow's own default waits four minutes for a dead server
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "3",
    "MLFLOW_LOGGING_LEVEL": "CRITICAL",  # below it MLflow prints every error it raises, with its traceback
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
}
LOCK_TIMEOUT_S = 60
BUSY_TIMEOUT_S = 10


class Store(NamedTuple):
    """An open store and the parent run of this pipeline run."""

    client: "MlflowClient"
    parent: "Run"


def open_store(identity: Identity, params: Params) -> Store:
    """Return the store that MLFLOW_TRACKING_URI names, else the database at the repository's root."""
    for key, value in QUIET.items():
        os.environ.setdefault(key, value)
    from mlflow import MlflowClient

    root = repository_root().absolute()
    chosen = os.environ.get("MLFLOW_TRACKING_URI")
    with _lock(root):
        if not chosen:
            _check_database(root / "mlflow.db")
        client = MlflowClient(chosen or f"sqlite:///{root / 'mlflow.db'}")
        experiment = _experiment(client, None if chosen else (root / "mlartifacts").as_uri())
        return Store(client, _parent(client, experiment, identity, params))


def _lock(root: Path) -> "BaseFileLock":
    from filelock import FileLock

    hidden = root / ".dvc" / "tmp"
    if not (root / ".dvc").is_dir():
        return FileLock(root / "mlflow.db.lock", timeout=LOCK_TIMEOUT_S)
    hidden.mkdir(exist_ok=True)
    return FileLock(hidden / "mlflow.lock", timeout=LOCK_TIMEOUT_S)


def _check_database(path: Path) -> None:
    """Refuse a file that cannot be written at once; MLflow would try it ten times, for 100 seconds."""
    try:
        with closing(sqlite3.connect(path, timeout=BUSY_TIMEOUT_S)) as database:
            database.execute("PRAGMA schema_version")
            database.execute("BEGIN IMMEDIATE")
            database.rollback()
    except sqlite3.Error as error:
        advice = "" if isinstance(error, sqlite3.OperationalError) else "; move it away"
        raise OSError(f"{path} cannot be used ({error}){advice}") from error


def _experiment(client: "MlflowClient", artifacts: str | None) -> str:
    found = client.get_experiment_by_name(EXPERIMENT)
    if found is not None:
        return found.experiment_id
    return client.create_experiment(EXPERIMENT, artifact_location=artifacts, tags=EXPERIMENT_TAGS)


def _parent(client: "MlflowClient", experiment: str, identity: Identity, params: Params) -> "Run":
    wanted = f"tags.`pipeline.id` = '{identity.pipeline}' AND tags.stage = '{PIPELINE_STAGE}'"
    found = client.search_runs([experiment], wanted, max_results=1)
    if found:
        return found[0]
    tags = {**identity.tags, "stage": PIPELINE_STAGE}
    return begin_run(client, experiment, identity.pipeline, tags, shared_params(params))


def begin_run(
    client: "MlflowClient", experiment: str, title: str, tags: Mapping[str, str], params: Mapping[str, str]
) -> "Run":
    """Create a run with its tags and params."""
    from mlflow.entities import Param

    run = client.create_run(experiment, tags=dict(tags), run_name=title)
    client.log_batch(run.info.run_id, params=[Param(key, value) for key, value in params.items()])
    return run
