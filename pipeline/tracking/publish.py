"""Publish: make MLflow say what DVC and git know; what it says already stays as it is.

First come the records that stages left in the spool, then, for each revision, the stages of dvc.lock that have no run
yet: DVC skipped them, or brought their outputs back from its cache. The whole of MLflow's database can be rebuilt so.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from pipeline.errors import UserError
from pipeline.tracking.delivery import reason, send_waiting
from pipeline.tracking.registry import Version, bring_up_to_date
from pipeline.tracking.restore import restore
from pipeline.tracking.store import Store, lock, open_store
from pipeline.tracking.stored_outputs import StoredOutputs
from pipeline.tracking.targets import chosen

PATIENT = {"MLFLOW_HTTP_REQUEST_TIMEOUT": "30", "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2"}  # no stage waits for it
OTHERS_S = 60  # longest wait for another `publish` of this clone
CLONES_S = 600.0  # the same of other clones that share the store, for one pipeline run


def publish(revs: Sequence[str], everything: bool) -> Iterator[str]:
    """Publish revisions, everything, or the workspace; yield a line on each.

    Raises:
        UserError: MLflow cannot be reached, or a revision that was named, or the workspace, had to be skipped. Of
            everything there is, commits that today's code cannot read are left out with a line each.
    """
    if os.environ.get("PIPELINE_TRACKING", "").lower() == "off":
        yield "publish: nothing, for PIPELINE_TRACKING is off"
        return
    skipped: list[str] = []
    versions: dict[tuple[str, str], Version] = {}  # the verdict of the last revision that has a policy
    with _one_line(), lock("publish.lock", OTHERS_S), TemporaryDirectory() as scratch:
        targets = chosen(revs, everything)
        store = _open()
        for line in send_waiting(store, StoredOutputs(Path(scratch) / "spool").find):
            yield f"publish: {line}"
        for target in targets:
            try:
                found = restore(store, target, Path(scratch) / (target.rev or "workspace"))
                versions |= {(one.agent, one.md5): one for one in found.versions}
                yield f"publish: {found.line}"
            except UserError as error:
                if target.rev is None or not everything:
                    skipped.append(target.title)
                yield f"publish: skipped: {error}"
        if added := bring_up_to_date(store, versions.values()):
            yield f"publish: models: {', '.join(added)} registered"
    if skipped:
        raise UserError(f"publish: {len(skipped)} of {len(targets)} skipped: {', '.join(skipped)}")


def send_left() -> None:
    """Send the records that stages left, and nothing else.

    Raises:
        UserError: MLflow cannot be reached.
    """
    with _one_line(), lock("publish.lock", OTHERS_S), TemporaryDirectory() as scratch:
        for _ in send_waiting(_open(), StoredOutputs(Path(scratch)).find):
            pass


@contextmanager
def _one_line() -> Iterator[None]:
    """Tell what goes wrong with MLflow as a user's error; what was sent stays, and is not sent again."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        raise UserError(f"publish: {reason(error)}; nothing is lost; once that is fixed, run it again") from error


def _open() -> Store:
    for key, value in PATIENT.items():
        os.environ.setdefault(key, value)
    return open_store(CLONES_S)
