"""Delivery: send the events of a stage to MLflow; each may be sent again and changes nothing the second time."""

import json
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import singledispatchmethod
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from pipeline.tracking.record import (
    SOURCE,
    WITHOUT,
    Begin,
    Curve,
    End,
    Event,
    Figure,
    Inputs,
    Metrics,
    Policy,
    Tags,
    taken,
    waiting,
)
from pipeline.tracking.store import Store, check_database, lock, parent_of, run_of
from pipeline.tracking.stored_outputs import StoredOutputs

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import DatasetInput, Metric, Run

LARGEST_BATCH = 1000  # metrics that MLflow takes at once
FLUSH_S = 5.0
LONGEST_REASON = 300

Find = Callable[[str, str], Path | None]


class MissingFileError(Exception):
    """A file of the record cannot be had, or is not what it should be; the store is not to blame."""


def reason(error: Exception) -> str:
    """Return why something failed, on one line."""
    # The cause comes first: what follows is SQL on lines of its own, or the insides of an HTTP client.
    first_line = (str(error).strip().splitlines() or [type(error).__name__])[0]
    return re.split(r" with (?:\w+ )?exception ", first_line)[0].rstrip(":")[:LONGEST_REASON]


def send_waiting(store: Store, find: Find, pipeline: str = "") -> Iterator[str]:
    """Send the records that stages left, of one pipeline run or of all; one that cannot be read stays where it is."""
    for path in waiting(pipeline):
        try:
            with taken(path) as events:
                if events is None:
                    yield f"{path.name}: its stage is still running"
                elif events:
                    yield f"spooled: {_send_record(store, events, find, this_run=bool(pipeline))}"
        except FileNotFoundError:
            continue  # somebody else has just sent it
        except ValueError as error:
            yield f"{path}: not the record of a stage ({reason(error)}); remove it"


def send_earlier(store: Store, pipeline: str) -> None:
    """Send what earlier stages of a pipeline run left, unless another process is at it."""
    from filelock import Timeout

    with suppress(Timeout), lock("publish.lock", 0), TemporaryDirectory() as scratch:
        for _ in send_waiting(store, StoredOutputs(Path(scratch)).find, pipeline):
            pass


def _send_record(store: Store, events: Sequence[Event], find: Find, this_run: bool) -> str:
    """Send a record, and return which stage it was and how it ended."""
    begin, *rest = events
    assert isinstance(begin, Begin)
    delivery = Delivery(store, begin, find, this_run)
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


class Delivery:
    """The way of one stage's events into a store."""

    def __init__(self, store: Store, begin: Begin, find: Find, this_run: bool = False) -> None:
        """Get or create the runs of a stage and of its pipeline.

        Args:
            store: where the events go.
            begin: the first event.
            find: returns where the file or folder of some path and md5 is now, or nothing.
            this_run: is the stage of the pipeline run that goes on? Then its code is today's, and reads its model.
        """
        self.store, self._find, self._this_run = store, find, this_run
        self._parent: Run = parent_of(store, begin.pipeline)
        self._run: Run = run_of(store, begin, self._parent.info.run_id)
        self._buffer: list[Metric] = []
        self._flushed = time.monotonic()

    @property
    def run_id(self) -> str:
        """Return the id of the stage's run."""
        return str(self._run.info.run_id)

    @property
    def _client(self) -> "MlflowClient":
        if self.store.file is not None:
            check_database(self.store.file)
        return self.store.client

    @property
    def _parent_id(self) -> str:
        return str(self._parent.info.run_id)

    @singledispatchmethod
    def send(self, event: Event) -> None:
        """Send one event; metrics may wait for the next ones.

        Raises:
            MissingFileError: the event names a file that cannot be had; the next event may be sent.
        """
        raise TypeError(f"{event!r} begins another record")

    @send.register
    def _inputs(self, event: Inputs) -> None:
        datasets = [self._dataset(path, md5) for path, md5 in event.md5.items()]
        self._client.log_inputs(self.run_id, datasets)

    @send.register
    def _metrics(self, event: Metrics) -> None:
        from mlflow.entities import Metric

        at = self._run.info.start_time if event.at is None else event.at
        self._buffer += [Metric(key, value, at, event.step) for key, value in event.values.items()]
        if len(self._buffer) >= LARGEST_BATCH or time.monotonic() - self._flushed >= FLUSH_S:
            self._flush()

    @send.register
    def _curve(self, event: Curve) -> None:
        from mlflow.entities import Metric

        # One timestamp for all, so that a stage that runs again overwrites its points instead of doubling them.
        begun = self._parent.info.start_time
        points = [Metric(event.name, value, begun, load) for load, value in event.values.items()]
        self._client.log_batch(self._parent_id, metrics=points)

    @send.register
    def _figure(self, event: Figure) -> None:
        self._client.log_artifact(self.run_id, str(self._found(event)))

    @send.register
    def _policy(self, event: Policy) -> None:
        from pipeline.tracking.model import log_policy, served_by

        folder = self._found(event)
        try:
            served = served_by(folder)
            if not self._this_run:
                served.load()
        except Exception as error:
            raise MissingFileError(f"{event.path} is not a model that today's code can read: {error}") from error
        restored = SOURCE in self._run.data.tags
        log_policy(self.store, self._run, folder, event.md5, served, shared=restored)

    @send.register
    def _tags(self, event: Tags) -> None:
        from mlflow.entities import RunTag

        self._client.log_batch(self.run_id, tags=[RunTag(key, value) for key, value in event.tags.items()])

    @send.register
    def _end(self, event: End) -> None:
        self._flush()
        self._client.set_terminated(self.run_id, event.status, end_time=event.at)
        ended = self._client.get_run(self._parent_id).info.end_time
        if ended is None or event.at >= ended:  # as its last stage ended; records may come in another order
            self._client.set_terminated(self._parent_id, event.status, end_time=event.at)

    def _flush(self) -> None:
        waiting, self._buffer, self._flushed = self._buffer, [], time.monotonic()
        for first in range(0, len(waiting), LARGEST_BATCH):
            self._client.log_batch(self.run_id, metrics=waiting[first : first + LARGEST_BATCH])

    def _found(self, event: Figure | Policy) -> Path:
        place = self._find(event.path, event.md5)
        if place is None:
            raise MissingFileError(f"{event.path} with md5 {event.md5} is neither here nor in DVC's cache")
        return place

    def _dataset(self, path: str, md5: str) -> "DatasetInput":
        from mlflow.data.code_dataset_source import CodeDatasetSource
        from mlflow.entities import Dataset, DatasetInput, InputTag

        source = CodeDatasetSource({"dvc.path": path, "dvc.md5": md5})
        dataset = Dataset(path, md5, "code", json.dumps(source.to_dict()))
        return DatasetInput(dataset, [InputTag("mlflow.data.context", "input")])
