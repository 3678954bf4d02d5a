"""Delivery: send the events of a stage to MLflow; each may be sent again and changes nothing the second time."""

import json
import time
from collections.abc import Callable
from functools import singledispatchmethod
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.tracking.record import SOURCE, Begin, Curve, End, Event, Figure, Inputs, Metrics, Policy, Tags
from pipeline.tracking.store import Store, check, parent_of, run_of

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import DatasetInput, Metric, Run

LARGEST_BATCH = 1000  # metrics that MLflow takes at once
FLUSH_S = 5.0

Find = Callable[[str, str], Path | None]


class MissingFileError(Exception):
    """A file of the record cannot be had, or is not what it should be; the store is not to blame."""


class Delivery:
    """The way of one stage's events into a store."""

    def __init__(self, store: Store, begin: Begin, find: Find) -> None:
        """Get or create the runs of a stage and of its pipeline.

        Args:
            store: where the events go.
            begin: the first event.
            find: returns where the file or folder of some path and md5 is now, or nothing.
        """
        self._store, self._find = store, find
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
        check(self._store)
        return self._store.client

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
        except Exception as error:
            raise MissingFileError(f"{event.path} is not a model that today's code can read: {error}") from error
        restored = SOURCE in self._run.data.tags
        log_policy(self._store, self._run, folder, event.md5, served, shared=restored)

    @send.register
    def _tags(self, event: Tags) -> None:
        from mlflow.entities import RunTag

        self._client.log_batch(self.run_id, tags=[RunTag(key, value) for key, value in event.tags.items()])

    @send.register
    def _end(self, event: End) -> None:
        self._flush()
        self._client.set_terminated(self.run_id, event.status, end_time=event.at)
        self._client.set_terminated(self._parent_id, event.status, end_time=event.at)  # as its last stage ended

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
