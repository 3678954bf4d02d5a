"""`repro` (and `make repro`): make all stale stages, then update MLflow's view and the report; and `prune`.

MLflow and the report are up to date if no stage was stale, and code, params.yaml, dvc.lock and the last commit have not
changed since the last complete run. `prune`, which is part of it, removes the outputs of rows deleted from params.yaml.
It is not a DVC stage, because it changes dvc.lock.
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
from pipeline.progress import remark, say
from pipeline.report import TEMPLATES
from pipeline.stages import farm, report
from pipeline.tracking.digests import LOCK, dvc_waits, measured
from pipeline.tracking.record import waiting
from pipeline.tracking.store import database

PUBLISH = (sys.executable, "-m", "pipeline", "publish")
SEEN = Path(".cache/repro")  # state at the last update of MLflow and the report


def run(params: Params, workers: int) -> None:
    """Bring everything up to date, with up to `workers` stages at the same time."""

    def prune_rows() -> None:
        with dvc_waits():
            prune()

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


def prune() -> dict[str, list[str]]:
    """Remove the stages of deleted rows from dvc.lock, and their outputs unless they changed after the stage ran.

    Return the stages, and the outputs that were removed and left.
    DVC's cache keeps the removed outputs: if the row is added again, `dvc repro` restores them.
    """
    stages = evidence.forgotten()
    outs = {path: md5 for made in stages.values() for path, md5 in made.items()}
    there = [path for path in outs if path.exists()]
    changed = [path for path in there if measured(path) != outs[path]]
    removed = [path for path in there if path not in changed]
    for path in removed:
        evidence.remove(path)
    if stages:
        evidence.forget(set(stages))
        rows = ", ".join(dict.fromkeys(name.partition("@")[2] for name in stages))
        count = f"{_count(len(stages), 'stage')} of dvc.lock and {_count(len(removed), 'output')}"
        remark(f"prune: removed {count} of rows that params.yaml does not have ({rows}); DVC's cache keeps them")
    for path in changed:
        say(f"prune: {path} is left: it was changed since its stage ran")
    if not stages:
        remark("prune: nothing to remove")
    return {"stages": [*stages], "removed": [*map(str, removed)], "left": [*map(str, changed)]}


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
