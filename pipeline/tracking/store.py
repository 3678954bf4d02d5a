"""Store: open MLflow's database or server, and get or create the experiment, a pipeline's run and a stage's run.

A new sqlite file is broken for good if several processes set it up at once, and two stages must not create two
parents. So a file lock admits one process at a time, and a lease one clone if others may use the same store (see
`leases`). The database has an absolute path because a temporary experiment's folder is deleted.
"""

import os
import sqlite3
from collections.abc import Mapping
from contextlib import AbstractContextManager, closing, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pipeline.core.config import repository_root
from pipeline.tracking.identity import PIPELINE_STAGE
from pipeline.tracking.leases import TAKEN, lease
from pipeline.tracking.record import Begin, Pipeline

if TYPE_CHECKING:
    from filelock import BaseFileLock
    from mlflow import MlflowClient
    from mlflow.entities import Run

EXPERIMENT = "scheduler-pipeline"
RECORD = "record.id"  # tag of a stage's run, by which a record that is sent twice finds it
EXPERIMENT_TAGS = {
    "mlflow.experimentKind": "custom_model_development",
    "mlflow.note.content": (
        "One row = one `dvc repro` or `dvc exp run`; unfold it for its stages. `Change`: percent since the previous "
        "run (tag `against`), mean over changed agents (Description: where); `lo` and `up`: its paired interval. "
        "Below 0 is better; empty if the runs cannot be compared. Then each changed agent. `compare` and the report "
        "compare with the last commit instead. Charts `<scenario>/<policy>`: mean slowdown on the test jobsets over "
        "load (step, in percent); `<policy> <scenario>`: the same for one load. DVC decides what runs and holds the "
        "results; `python -m pipeline publish` adds the stages that it skipped or restored, tagged `source = "
        "restored`."
    ),
}
QUIET = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",  # MLflow's own default waits four minutes for a dead server
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "3",
    "MLFLOW_LOGGING_LEVEL": "CRITICAL",  # below it MLflow prints every error it raises, with its traceback
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
}
SET_UP_S = 60  # longest wait for other processes that set the database up
SHARED_WAIT_S = 4.0  # longest wait for another clone; then the record stays in the spool
SERVER_LOCK_S = 2  # replaces SET_UP_S for a server: the lock then covers only a query for the parent
BUSY_S = 4
LARGEST_BATCH = 100  # params that MLflow takes at once


class Store(NamedTuple):
    """An open MLflow store."""

    client: "MlflowClient"
    experiment: str
    file: Path | None  # the database, if it is a file
    shared: bool = False  # whether other clones may use it
    wait_s: float = SHARED_WAIT_S

    def exclusive(self, what: str) -> AbstractContextManager[None]:
        """Exclude other clones from the same work, as file locks do within a clone; OSError if they take too long."""
        return lease(self.client, what, self.wait_s) if self.shared else nullcontext()


def open_store(wait_s: float = SHARED_WAIT_S) -> Store:
    """Return the store of MLFLOW_TRACKING_URI, else the database at the repository's root.

    `wait_s` is the longest wait for other clones that add the same entry to a shared store.
    """
    for key, value in QUIET.items():
        os.environ.setdefault(key, value)
    from mlflow import MlflowClient

    chosen = os.environ.get("MLFLOW_TRACKING_URI")
    file = _file_of(chosen) if chosen else database()
    if chosen and file is None:
        client = MlflowClient(chosen)
        client.get_experiment_by_name(EXPERIMENT)  # a dead server fails here, before others wait for the lock
    with _set_up(file):
        if file is not None:
            check_database(file)
            client = MlflowClient(chosen or f"sqlite:///{file}")
        artifacts = None if chosen else (repository_root().absolute() / "mlartifacts").as_uri()
        return Store(client, _experiment(client, artifacts), file, bool(chosen), wait_s)


def _file_of(address: str) -> Path | None:
    """Return the file of an sqlite address; None for other addresses and for a database in memory."""
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError

    if not address.startswith("sqlite"):
        return None
    try:
        name = make_url(address).database
    except ArgumentError as error:
        raise OSError(f"MLFLOW_TRACKING_URI is {address}: not an address of sqlite") from error
    return None if name in (None, "", ":memory:") or name.startswith("file:") else Path(name)


def database() -> Path:
    """Return the path of the database, which is used unless MLFLOW_TRACKING_URI names another store."""
    return repository_root().absolute() / "mlflow.db"


def parent_of(store: Store, pipeline: Pipeline) -> "Run":
    """Get or create MLflow's run of a pipeline run."""
    wanted = f"tags.`pipeline.id` = '{pipeline.tags['pipeline.id']}' AND tags.stage = '{PIPELINE_STAGE}'"

    def search() -> "tuple[Run | None, bool]":
        """Return the run, and whether it has all params: the process that created it may have been killed."""
        run = next(iter(store.client.search_runs([store.experiment], wanted, max_results=1)), None)
        return run, run is not None and pipeline.params.items() <= run.data.params.items()

    with _set_up(store.file):
        found, whole = search()
        if found is not None and whole:
            return found
        with store.exclusive(f"the run of {pipeline.title}"):
            found, whole = search()  # another clone may have been first
            if found is None:
                tags = {**pipeline.tags, "stage": PIPELINE_STAGE}
                return _create(store, pipeline.title, pipeline.at, tags, pipeline.params)
            if not whole:
                _log_params(store, found.info.run_id, pipeline.params)
            return found


def run_of(store: Store, begin: Begin, parent: str) -> "Run":
    """Get or create the run of a record; delete duplicates that unanswered requests left."""
    found = store.client.search_runs([store.experiment], f"tags.`{RECORD}` = '{begin.id}'")
    for extra in found[1:]:
        store.client.delete_run(extra.info.run_id)
    if found:
        run = found[0]
        _log_params(store, run.info.run_id, begin.params)
        return run
    tags = {**begin.tags, RECORD: begin.id, "mlflow.parentRunId": parent}
    return _create(store, begin.title, begin.at, tags, begin.params)


def _create(store: Store, title: str, at: int, tags: Mapping[str, str], params: Mapping[str, str]) -> "Run":
    run = store.client.create_run(store.experiment, start_time=at, tags=dict(tags), run_name=title)
    _log_params(store, run.info.run_id, params)
    return run


def _log_params(store: Store, run_id: str, params: Mapping[str, str]) -> None:
    from mlflow.entities import Param

    every = [Param(key, value) for key, value in params.items()]
    for first in range(0, len(every), LARGEST_BATCH):
        store.client.log_batch(run_id, params=every[first : first + LARGEST_BATCH])


def _set_up(file: Path | None) -> "BaseFileLock":
    return lock("lock", SERVER_LOCK_S if file is None else SET_UP_S)


def lock(name: str, timeout_s: float) -> "BaseFileLock":
    """Return a lock that one process of the repository can hold at a time."""
    from filelock import FileLock

    root = repository_root().absolute()
    if not (root / ".dvc").is_dir():
        return FileLock(root / f"mlflow.db.{name}", timeout=timeout_s)
    (root / ".dvc" / "tmp").mkdir(exist_ok=True)
    return FileLock(root / ".dvc" / "tmp" / f"mlflow.{name}", timeout=timeout_s)


def check_database(path: Path) -> None:
    """Refuse a file that cannot be written at once (another program may hold it); MLflow would wait 20 to 100 s."""
    try:
        with closing(sqlite3.connect(path, timeout=BUSY_S)) as file:
            file.execute("PRAGMA schema_version")
            file.execute("BEGIN IMMEDIATE")
            file.rollback()
    except sqlite3.Error as error:
        advice = "" if isinstance(error, sqlite3.OperationalError) else "; move it away"
        raise OSError(f"{path} cannot be used ({error}){advice}") from error


def _experiment(client: "MlflowClient", artifacts: str | None) -> str:
    from mlflow.entities import LifecycleStage
    from mlflow.exceptions import MlflowException

    found = client.get_experiment_by_name(EXPERIMENT)
    if found is None:
        try:
            return str(client.create_experiment(EXPERIMENT, artifact_location=artifacts, tags=EXPERIMENT_TAGS))
        except MlflowException as error:
            # Another clone may have been first.
            found = client.get_experiment_by_name(EXPERIMENT) if error.error_code == TAKEN else None
            if found is None:
                raise
    if found.lifecycle_stage == LifecycleStage.DELETED:
        restored = f"mlflow experiments restore --experiment-id {found.experiment_id}"
        raise OSError(
            f"experiment '{EXPERIMENT}' was deleted in MLflow: 'MLFLOW_TRACKING_URI={client.tracking_uri} {restored}'"
        )
    for key, value in EXPERIMENT_TAGS.items():
        if found.tags.get(key) != value:
            client.set_experiment_tag(found.experiment_id, key, value)
    return str(found.experiment_id)
