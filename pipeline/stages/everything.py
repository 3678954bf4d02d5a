"""`repro` (and `make repro`): make all stale stages, then update MLflow's view and the report.

MLflow and the report are up to date if no stage was stale, and code, params.yaml, dvc.lock and the last commit have not
changed since the last complete run.
"""

import hashlib
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pipeline.core import storage
from pipeline.core.config import PARAMS_FILE, Params
from pipeline.core.logs.registry import check_there
from pipeline.core.storage import evidence
from pipeline.errors import UserError
from pipeline.execution.commands import Commands
from pipeline.execution.worker import code_digest
from pipeline.progress import say
from pipeline.report.templating import TEMPLATES
from pipeline.stages import farm, prune, report
from pipeline.tracking.digests import LOCK, dvc_waits
from pipeline.tracking.record import waiting
from pipeline.tracking.store import database

PUBLISH = (sys.executable, "-m", "pipeline", "publish")
SEEN = Path(".cache/repro")  # state at the last update of MLflow and the report


def run(params: Params, workers: int) -> None:
    """Bring everything up to date, with up to `workers` stages at the same time."""

    def prune_rows() -> None:
        with dvc_waits():
            prune.run()

    check_there(params)
    failed: UserError | None = None
    try:
        made = farm.run(params, workers, first=prune_rows) is not None
    except UserError as error:
        if not storage.failures(params):
            raise
        made, failed = True, error  # only external policies failed; all others have results and a report
    if made or not _up_to_date():
        SEEN.unlink(missing_ok=True)
        said = list[str]()
        with ThreadPoolExecutor(1) as pool, Commands() as commands:  # the report does not depend on publishing
            publishing = pool.submit(commands.run, PUBLISH, said.append)
            report.run(params)
            failed_to_publish = publishing.result()
        say(*said)
        if failed_to_publish:
            say("MLflow's view is not complete; the results are")
        else:
            storage.write(SEEN, _state().encode())
    say(f"the report: {report.PAGE}; runs: make ui")
    if failed is not None:
        raise failed


def _up_to_date() -> bool:
    if waiting() or not report.PAGE.exists() or not SEEN.exists():
        return False
    tracked = os.environ.get("PIPELINE_TRACKING", "").lower() != "off"
    if tracked and not os.environ.get("MLFLOW_TRACKING_URI") and not database().exists():
        return False
    return SEEN.read_text(encoding="utf-8") == _state()


def _state() -> str:
    """Return digests of all inputs of MLflow's view and the report."""
    files = [path for path in (LOCK, PARAMS_FILE, *sorted(TEMPLATES.iterdir())) if path.is_file()]
    where = [os.environ.get(name, "") for name in ("MLFLOW_TRACKING_URI", "PIPELINE_TRACKING")]
    parts = [code_digest(), str(evidence.head()), *where]
    return "\n".join([*parts, *(hashlib.sha256(path.read_bytes()).hexdigest() for path in files)]) + "\n"
