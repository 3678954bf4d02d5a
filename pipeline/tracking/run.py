"""Run: the record of one stage; whatever goes wrong with it, the stage goes on."""

import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Concatenate, NamedTuple, ParamSpec

from pipeline.config import Params
from pipeline.tracking.digests import digest
from pipeline.tracking.identity import identify, stage_params, stage_tags
from pipeline.tracking.store import Store, begin_run, open_store

if TYPE_CHECKING:
    from mlflow.entities import Metric, Run

Args = ParamSpec("Args")

LARGEST_BATCH = 1000  # metrics that MLflow takes at once
FLUSH_S = 5.0
LONGEST_TAG = 5000
LONGEST_REASON = 300


class Link(NamedTuple):
    """Where a stage writes to."""

    store: Store
    run: "Run"

    @property
    def run_id(self) -> str:
        """Return the id of the stage's run."""
        return str(self.run.info.run_id)

    @property
    def parent_id(self) -> str:
        """Return the id of the pipeline's run."""
        return str(self.store.parent.info.run_id)


def _soft(
    method: Callable[Concatenate["StageRun", Args], None],
) -> Callable[Concatenate["StageRun", Args], None]:
    """Make a method lose the record rather than raise, and do nothing once it is lost."""

    @wraps(method)
    def soft(self: "StageRun", /, *args: Args.args, **kwargs: Args.kwargs) -> None:
        if self._off:
            return
        try:
            method(self, *args, **kwargs)
        except Exception as error:
            self._off = True
            _complain(error)

    return soft


class StageRun:
    """The MLflow run of one stage."""

    def __init__(self) -> None:
        self._off = os.environ.get("PIPELINE_TRACKING", "").lower() == "off"
        self._link: Link | None = None
        self._buffer: list[Metric] = []
        self._flushed = time.monotonic()

    @property
    def _at(self) -> Link:
        if self._link is None:
            raise RuntimeError("the run is not open")
        return self._link

    @_soft
    def _open(self, name: str, subject: str, params: Params) -> None:
        identity = identify()
        store = open_store(identity, params)
        parent = store.parent.info
        title = f"{name}@{subject}" if subject else name
        tags = {**stage_tags(identity, name, subject), "mlflow.parentRunId": parent.run_id}
        rows = stage_params(params, name, subject)
        self._link = Link(store, begin_run(store.client, parent.experiment_id, title, tags, rows))

    @_soft
    def inputs(self, *paths: Path) -> None:
        """Record what the stage reads: path, DVC's md5 and commit."""
        from mlflow.data.code_dataset_source import CodeDatasetSource
        from mlflow.entities import Dataset, DatasetInput, InputTag

        def described(path: Path) -> DatasetInput:
            name, md5 = path.as_posix(), digest(path)
            tags = {"dvc.path": name, "dvc.md5": md5, "git.commit": self._at.run.data.tags["git.commit"]}
            dataset = Dataset(name, md5, "code", json.dumps(CodeDatasetSource(tags).to_dict()))
            return DatasetInput(dataset, [InputTag("mlflow.data.context", "input")])

        self._at.store.client.log_inputs(self._at.run_id, [described(path) for path in paths])

    @_soft
    def metrics(self, values: Mapping[str, float], step: int) -> None:
        """Record numbers of one step; they are written now and then, and at the end."""
        from mlflow.entities import Metric

        now = _now_ms()
        self._buffer += [Metric(key, float(value), now, step) for key, value in values.items()]
        if len(self._buffer) >= LARGEST_BATCH or time.monotonic() - self._flushed >= FLUSH_S:
            self._flush()

    @_soft
    def parent_curve(self, name: str, values: Mapping[int, float]) -> None:
        """Record a curve over loads on the pipeline's run, where MLflow draws all pipeline runs in one chart."""
        from mlflow.entities import Metric

        # One timestamp for all, so that a stage that runs again overwrites its points instead of doubling them.
        begun = self._at.store.parent.info.start_time
        points = [Metric(name, float(value), begun, load) for load, value in values.items()]
        self._at.store.client.log_batch(self._at.parent_id, metrics=points)

    @_soft
    def figure(self, path: Path) -> None:
        """Record a file as an artifact."""
        self._at.store.client.log_artifact(self._at.run_id, str(path))

    @_soft
    def model(self, folder: Path) -> None:
        """Record a model directory as the model of this run, ready to be served."""
        from pipeline.tracking.model import log_policy

        log_policy(self._at.store.client, self._at.run, folder)

    @_soft
    def _close(self, error: BaseException | None) -> None:
        client = self._at.store.client
        self._flush()
        if error is not None:
            last_line = traceback.format_exception_only(error)[-1].strip().splitlines()[-1]
            client.set_tag(self._at.run_id, "error", last_line[:LONGEST_TAG])
        client.set_terminated(self._at.run_id, "FINISHED" if error is None else "FAILED")
        client.set_terminated(self._at.parent_id, "FINISHED")

    def _flush(self) -> None:
        waiting, self._buffer, self._flushed = self._buffer, [], time.monotonic()
        for first in range(0, len(waiting), LARGEST_BATCH):
            batch = waiting[first : first + LARGEST_BATCH]
            self._at.store.client.log_batch(self._at.run_id, metrics=batch)


@contextmanager
def stage(name: str, subject: str, params: Params) -> Iterator[StageRun]:
    """Record a stage while its body runs; what the body raises is recorded and passes on.

    Args:
        name: the stage: generate, heuristics, pretrain, finetune, evaluate, compare or papers.
        subject: the scenario or agent it is about; "" for compare and papers.
        params: all of params.yaml; the rows about the subject become params of the run.
    """
    run = StageRun()
    run._open(name, subject, params)
    try:
        yield run
    except BaseException as error:
        run._close(error)
        raise
    run._close(None)


def _now_ms() -> int:
    return int(time.time() * 1000)


def _complain(error: Exception) -> None:
    # The cause comes first: what follows is SQL on lines of its own, or the insides of an HTTP client.
    first_line = (str(error).strip().splitlines() or [type(error).__name__])[0]
    why = first_line.split(" with exception ")[0][:LONGEST_REASON]
    sys.stderr.write(f"tracking: {why}; results are kept in the DVC outputs, only MLflow misses this run\n")
