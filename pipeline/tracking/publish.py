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
from pipeline.tracking.delivery import Delivery, Find, MissingFileError
from pipeline.tracking.record import WITHOUT, Begin, End, Event, Tags
from pipeline.tracking.restore import restore
from pipeline.tracking.run import reason
from pipeline.tracking.spool import taken, waiting
from pipeline.tracking.store import Store, lock, open_store
from pipeline.tracking.stored_outputs import StoredOutputs
from pipeline.tracking.targets import chosen

PATIENT = {"MLFLOW_HTTP_REQUEST_TIMEOUT": "30", "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2"}  # no stage waits for it
OTHERS_S = 60  # longest wait for another `publish`


def publish(revs: Sequence[str], everything: bool) -> Iterator[str]:
    """Publish revisions, everything, or the workspace; yield a line on each.

    Raises:
        UserError: MLflow cannot be reached, or a revision had to be skipped.
    """
    if os.environ.get("PIPELINE_TRACKING", "").lower() == "off":
        yield "publish: nothing, for PIPELINE_TRACKING is off"
        return
    skipped = []
    with _one_line(), lock("publish.lock", OTHERS_S), TemporaryDirectory() as scratch:
        targets = chosen(revs, everything)
        store = _open()
        yield from _spooled(store, Path(scratch) / "spool")
        for target in targets:
            try:
                yield f"publish: {restore(store, target, Path(scratch) / (target.rev or 'workspace'))}"
            except UserError as error:
                skipped.append(target.title)
                yield f"publish: skipped: {error}"
    if skipped:
        raise UserError(f"publish: {len(skipped)} of {len(targets)} skipped: {', '.join(skipped)}")


@contextmanager
def _one_line() -> Iterator[None]:
    """Tell what goes wrong with MLflow as a user's error; what was sent stays, and is not sent again."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        raise UserError(f"publish: {reason(error)}; nothing is lost, run it again later") from error


def _open() -> Store:
    for key, value in PATIENT.items():
        os.environ.setdefault(key, value)
    return open_store()


def _spooled(store: Store, scratch: Path) -> Iterator[str]:
    """Send the records that stages left; one that cannot be read stays where it is."""
    for path in waiting():
        try:
            with taken(path) as events:
                if events is None:
                    yield f"publish: {path.name}: its stage is still running"
                elif events:
                    yield f"publish: spooled: {_send(store, events, StoredOutputs(scratch).find)}"
        except ValueError as error:
            yield f"publish: {path}: not the record of a stage ({reason(error)}); remove it"


def _send(store: Store, events: Sequence[Event], find: Find) -> str:
    """Send a record, and return which stage it was and how it ended."""
    begin, *rest = events
    assert isinstance(begin, Begin)
    delivery = Delivery(store, begin, find)
    missing: list[str] = []
    status = ""
    for event in rest:
        if isinstance(event, End):
            status = event.status.lower()
            if missing:
                delivery.send(Tags(tags={WITHOUT: ", ".join(missing)}))
        try:
            delivery.send(event)
        except MissingFileError as error:
            missing.append(str(error))
    return f"{begin.title} of {begin.pipeline.title}, {status}{''.join(f'; {one}' for one in missing)}"
