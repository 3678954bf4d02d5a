"""`repro`: all that is stale is made, then MLflow's view and the report are brought up to date; `make repro` is this.

Where nothing is stale, and code, params.yaml, dvc.lock and the last commit are those of when this last came to its end,
MLflow and the report have it all already.
"""

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pipeline import storage
from pipeline.config import PARAMS_FILE, Params
from pipeline.errors import UserError
from pipeline.execution.environment import code_digest
from pipeline.logs.registry import check_there
from pipeline.progress import say
from pipeline.report.templating import TEMPLATES
from pipeline.stages import farm, prune, report
from pipeline.storage import evidence
from pipeline.tracking.digests import LOCK, dvc_waits
from pipeline.tracking.record import waiting
from pipeline.tracking.store import database

ENDED_S = 5.0  # in which what is told to end does so
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
    failed: UserError | None = None
    try:
        made = farm.run(params, workers, first=_pruned)
    except UserError as error:
        if not storage.failures(params):
            raise
        made, failed = True, error  # an external policy alone: the others have their results, and a report
    if made or not _settled():
        SEEN.unlink(missing_ok=True)
        with _publishing() as sending:
            report.run(params)
            published = _told(sending)
        if published:
            storage.write(SEEN, _now().encode())
    say(f"the report: {report.PAGE}; runs: make ui")
    if failed is not None:
        raise failed


def _pruned() -> None:
    """Remove what rows left that are gone, while no DVC writes dvc.lock."""
    with dvc_waits():
        prune.run()


def _settled() -> bool:
    """Return whether MLflow and the report have all of this already."""
    if waiting() or not report.PAGE.exists() or not SEEN.exists():
        return False
    tracked = os.environ.get("PIPELINE_TRACKING", "").lower() != "off"
    if tracked and not os.environ.get("MLFLOW_TRACKING_URI") and not database().exists():
        return False
    return SEEN.read_text(encoding="utf-8") == _now()


@contextmanager
def _publishing() -> "Iterator[subprocess.Popen[str]]":
    """Begin to add to MLflow what it misses, beside the report: neither needs the other; it ends with what began it."""
    line = (sys.executable, "-m", "pipeline", "publish")
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as sending:
        try:
            yield sending
        except BaseException:
            sending.terminate()
            with suppress(subprocess.TimeoutExpired):
                sending.wait(ENDED_S)
            sending.kill()
            raise


def _told(sending: "subprocess.Popen[str]") -> bool:
    """Say what came of it; tell whether MLflow has it all. Without it, the results are there all the same."""
    said, wrong = sending.communicate()
    for line in (*said.splitlines(), *wrong.splitlines()):
        say(line)
    if sending.returncode:
        say("MLflow's view is not complete; the results are")
    return sending.returncode == 0


def _now() -> str:
    """Return what MLflow's view and the report come from."""
    files = [path for path in (LOCK, PARAMS_FILE, *sorted(TEMPLATES.iterdir())) if path.is_file()]
    where = [os.environ.get(name, "") for name in ("MLFLOW_TRACKING_URI", "PIPELINE_TRACKING")]
    parts = [code_digest(), str(evidence.head()), *where]
    return "\n".join([*parts, *(hashlib.sha256(path.read_bytes()).hexdigest() for path in files)]) + "\n"
