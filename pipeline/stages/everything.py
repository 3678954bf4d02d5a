"""`repro`: all that is stale is made, then MLflow's view and the report are brought up to date; `make repro` is this.

Where nothing is stale, and code, params.yaml, dvc.lock and the last commit are those of when this last came to its end,
MLflow and the report have it all already.
"""

import hashlib
import os
from pathlib import Path

from pipeline import storage
from pipeline.config import PARAMS_FILE, Params
from pipeline.errors import UserError
from pipeline.execution.version import code_digest
from pipeline.logs.registry import check_there
from pipeline.progress import say
from pipeline.stages import farm, prune, report
from pipeline.storage import revisions
from pipeline.tracking.digests import LOCK
from pipeline.tracking.publish import publish

SEEN = Path(".cache/repro")  # of what MLflow and the report were last brought up to date


def run(params: Params, workers: int) -> None:
    """Bring everything up to date.

    Args:
        params: of params.yaml.
        workers: stages at the same time, at most.

    Raises:
        UserError: a log is missing, or a stage failed.
    """
    check_there(params)
    prune.run()
    made = farm.run(params, workers)
    if not made and report.PAGE.exists() and SEEN.exists() and SEEN.read_text(encoding="utf-8") == _now():
        say(f"the report: {report.PAGE}; runs: make ui")
        return
    SEEN.unlink(missing_ok=True)
    published = _published()
    report.run(params)
    if published:
        storage.write(SEEN, _now().encode())
    say(f"the report: {report.PAGE}; runs: make ui")


def _published() -> bool:
    """Add to MLflow what it misses; tell whether it has it all. Without it, the results are there all the same."""
    try:
        for line in publish([], everything=False):
            say(line)
    except UserError as error:
        say(f"{error}\nMLflow's view is not complete; the results are")
        return False
    return True


def _now() -> str:
    """Return what MLflow's view and the report come from."""
    head = revisions.head()
    files = [path.read_bytes() for path in (LOCK, PARAMS_FILE) if path.exists()]
    where = [os.environ.get(name, "") for name in ("MLFLOW_TRACKING_URI", "PIPELINE_TRACKING")]
    parts = [code_digest(), str(head), *where, *(hashlib.sha256(held).hexdigest() for held in files)]
    return "\n".join(parts) + "\n"
