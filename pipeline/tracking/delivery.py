"""Delivery: send the events of a stage to MLflow; sending an event again changes nothing."""

import json
import re
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from pipeline.tracking import record
from pipeline.tracking.digests import StoredOutputs
from pipeline.tracking.store import Store, check_database, lock, parent_of, run_of

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import DatasetInput, Metric, Run

LARGEST_BATCH = 1000  # metrics that MLflow takes at once
FLUSH_S = 5.0
OTHERS_S = 60  # longest wait for another process of this clone that sends records
LONGEST_REASON = 300

Find = Callable[[str, str], Path | None]


class MissingFileError(Exception):
    """A file of the record is missing or wrong; the store is not to blame."""


def reason(error: Exception) -> str:
    """Return the cause of a failure on one line."""
    # The cause comes first; SQL on lines of its own, or the internals of an HTTP client, follow.
    first_line = (str(error).strip().splitlines() or [type(error).__name__])[0]
    return re.split(r" with (?:\w+ )?exception ", first_line)[0].rstrip(":")[:LONGEST_REASON]


def send_waiting(store: Store, find: Find, pipeline: str = "") -> Iterator[str]:
    """Send the records in the spool, of one pipeline run or of all; unreadable ones stay there."""
    for path in record.waiting(pipeline):
        try:
            with record.taken(path) as events:
                if events is None:
                    yield f"{path.name}: its stage is still running"
                elif events:
                    yield f"spooled: {_send_record(store, events, find, this_run=bool(pipeline))}"
        except FileNotFoundError:
            continue  # another process has just sent it
        except ValueError as error:
            yield f"{path}: not the record of a stage ({reason(error)}); remove it"


def send_earlier(store: Store, pipeline: str, wait_s: float = 0.0) -> None:
    """Send the records of earlier stages of a pipeline run, unless another process sends records for too long."""
    from filelock import Timeout

    with suppress(Timeout), lock("publish.lock", wait_s), TemporaryDirectory() as scratch:
        for _ in send_waiting(store, StoredOutputs(Path(scratch)).find, pipeline):
            pass


def _send_record(store: Store, events: list[record.Event], find: Find, this_run: bool) -> str:
    """Send a record, and return the stage and its status."""
    begin, *rest = events
    assert isinstance(begin, record.Begin)
    delivery = Delivery(store, begin, find, this_run)
    missing: list[str] = []
    status = ""
    for event in rest:
        if isinstance(event, record.End):
            status = event.status.lower()
            if missing:
                delivery.send(record.Tags(tags={record.WITHOUT: ", ".join(missing)}))
        try:
            delivery.send(event)
        except MissingFileError as error:
            missing.append(str(error))
    return f"{begin.title} of {begin.pipeline.title}, {status}{''.join(f'; {one}' for one in missing)}"


class Delivery:
    """Transfer of one stage's events to a store."""

    def __init__(self, store: Store, begin: record.Begin, find: Find, this_run: bool = False) -> None:
        """Get or create the runs of a stage and of its pipeline.

        `find` returns where the file or folder with a path and md5 is now, or None. With `this_run`, the stage belongs
        to the current pipeline run, so today's code can read its model.
        """
        self.store, self._find, self._this_run = store, find, this_run
        self._parent: Run = parent_of(store, begin.pipeline)
        self._run: Run = run_of(store, begin, self._parent.info.run_id)
        self._buffer: list[Metric] = []
        self._flushed = time.monotonic()

    @property
    def _client(self) -> "MlflowClient":
        if self.store.file is not None:
            check_database(self.store.file)
        return self.store.client

    def send(self, event: record.Event) -> None:
        """Send one event; metrics are sent in batches. After a MissingFileError, the next event can be sent."""
        from mlflow.entities import Metric, RunTag

        run_id, parent_id = self._run.info.run_id, self._parent.info.run_id
        match event:
            case record.Inputs(md5=md5):
                self._client.log_inputs(run_id, [_dataset(path, digest) for path, digest in md5.items()])
            case record.Metrics():
                at = self._run.info.start_time if event.at is None else event.at
                self._buffer += [Metric(key, value, at, event.step) for key, value in event.values.items()]
                if len(self._buffer) >= LARGEST_BATCH or time.monotonic() - self._flushed >= FLUSH_S:
                    self._flush()
            case record.Curve():
                # One timestamp for all, so that a stage that runs again overwrites its points instead of adding more.
                begun = self._parent.info.start_time
                points = [Metric(event.name, value, begun, load) for load, value in event.values.items()]
                self._client.log_batch(parent_id, metrics=points)
            case record.Artifact():
                self._send_artifact(event)
            case record.Tags(tags=tags):
                self._client.log_batch(run_id, tags=[RunTag(key, value) for key, value in tags.items()])
            case record.End(at=at, status=status):
                self._flush()
                self._client.set_terminated(run_id, status, end_time=at)
                ended = self._client.get_run(parent_id).info.end_time
                if ended is None or at >= ended:  # the last stage to end decides; records may arrive in another order
                    self._client.set_terminated(parent_id, status, end_time=at)
            case _:
                raise TypeError(f"{event!r} begins another record")

    def _send_artifact(self, event: record.Artifact) -> None:
        place = self._find(event.path, event.md5)
        if place is None:
            raise MissingFileError(f"{event.path} with md5 {event.md5} is neither here nor in DVC's cache")
        if event.kind == "figure":
            self._client.log_artifact(self._run.info.run_id, str(place))
            return
        from pipeline.tracking.model import log_policy, served_by  # imports all problems, which figures do not need

        try:
            served = served_by(place)
            if not self._this_run:
                served.load()
        except Exception as error:
            raise MissingFileError(f"{event.path} is not a model that today's code can read: {error}") from error
        log_policy(self.store, self._run, place, event.md5, served, shared=record.SOURCE in self._run.data.tags)

    def _flush(self) -> None:
        waiting, self._buffer, self._flushed = self._buffer, [], time.monotonic()
        for first in range(0, len(waiting), LARGEST_BATCH):
            self._client.log_batch(self._run.info.run_id, metrics=waiting[first : first + LARGEST_BATCH])


def _dataset(path: str, md5: str) -> "DatasetInput":
    from mlflow.data.code_dataset_source import CodeDatasetSource
    from mlflow.entities import Dataset, DatasetInput, InputTag

    source = CodeDatasetSource({"dvc.path": path, "dvc.md5": md5})
    dataset = Dataset(path, md5, "code", json.dumps(source.to_dict()))
    return DatasetInput(dataset, [InputTag("mlflow.data.context", "input")])
