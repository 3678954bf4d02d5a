"""Run: the record of one stage; its failures never stop the stage."""

import os
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from uuid import uuid4

from pipeline.core.config import Params
from pipeline.tracking import identity, record
from pipeline.tracking.delivery import OTHERS_S, Delivery, MissingFileError, reason, send_earlier
from pipeline.tracking.digests import digest, measured
from pipeline.tracking.store import open_store

LONG_S = 30.0  # a stage that runs longer sends its record itself, so that it can be watched
LAST = "papers"  # the last stage sends the records of all others
LONGEST_TAG = 5000


class StageRun:
    """The record of one stage, spooled event by event.

    A long stage sends its record while it runs; a failed stage and the last one send theirs at the end. Other records
    are sent by the next stage of the pipeline run that sends, or by `publish`. PIPELINE_TRACKING=live sends at once.
    """

    def __init__(self, name: str, subject: str, params: Params) -> None:
        self._title = identity.title_of(name, subject)
        self._name, self._subject, self._params = name, subject, params
        how = os.environ.get("PIPELINE_TRACKING", "").lower()
        self._off, self._live_at = how == "off", time.monotonic() + (0.0 if how == "live" else LONG_S)
        self._first: record.Begin | None = None
        self._spool: record.Spool | None = None
        self._delivery: Delivery | None = None
        self._unsent: list[record.Event] = []
        self._sends = True  # until MLflow does not answer
        self._complained = False

    def inputs(self, *paths: Path) -> None:
        """Record the stage's inputs: path and DVC's md5; the stage itself reports missing ones."""
        self._record(lambda: record.Inputs(md5={path.as_posix(): digest(path) for path in paths if path.exists()}))

    def metrics(self, values: Mapping[str, float], step: int) -> None:
        """Record numbers of one step; they are sent in batches."""
        self._record(
            lambda: record.Metrics(step=step, values={k: float(v) for k, v in values.items()}, at=record.now_ms())
        )

    def parent_curve(self, name: str, values: Mapping[int, float]) -> None:
        """Record a curve over loads, such as slowdown/sjf, on the pipeline's run: MLflow draws one chart for all."""

        def make() -> record.Curve:
            scenario = identity.scenario_of(self._params, self._name, self._subject)
            return record.Curve(name=identity.curve_name(name, scenario, values), values=dict(values))

        self._record(make)

    def parent_numbers(self, values: Mapping[str, float]) -> None:
        """Record single numbers by name on the pipeline's run."""
        for name, value in values.items():
            self._record(partial(record.Curve, name=name, values={0: value}))

    def figure(self, path: Path) -> None:
        """Record a file as an artifact."""
        self._record(lambda: record.Artifact(kind="figure", path=path.as_posix(), md5=measured(path)))

    def model(self, folder: Path) -> None:
        """Record a model directory as the model of this run, ready to be served."""
        self._record(lambda: record.Artifact(kind="policy", path=folder.as_posix(), md5=measured(folder)))

    def _open(self) -> None:
        if self._off:
            return
        try:
            this, at = identity.identify(), record.now_ms()
            params, tags = identity.every_param(self._params), this.tags
            parent = record.Pipeline(title=this.pipeline, at=at, tags=tags, params=params)
            self._first = record.Begin(
                id=uuid4().hex,
                title=self._title,
                at=at,
                tags={**tags, **identity.stage_tags(self._name, self._subject)},
                params=identity.stage_params(self._params, self._name, self._subject),
                pipeline=parent,
            )
        except Exception as error:
            self._complain(error)
            return
        with suppress(OSError):  # MLflow may be reachable even if the folder is read-only
            self._spool = record.Spool(self._first)
        self._send_if_due()

    def _record(self, make: Callable[[], record.Event]) -> None:
        """Spool an event, and send it if it is due; report only the first failure."""
        if self._first is None or (self._spool is None and not self._sends):
            return
        try:
            event = make()
        except Exception as error:
            self._complain(error, lost=True)
            return
        try:
            if self._spool is not None:
                self._spool.add(event)
        except OSError:
            self._spool = None
        if self._sends:
            self._unsent.append(event)
            self._send_if_due()

    def _send_if_due(self) -> None:
        if self._spool is None or time.monotonic() >= self._live_at:
            self._send()

    def _send(self, whole: bool = False) -> None:
        """Send the records of earlier stages, then the new events; register the agents if the run is complete."""
        if self._first is None or not self._sends:
            return
        try:
            if self._delivery is None:
                store = open_store()
                send_earlier(store, self._first.pipeline.title)
                self._delivery = Delivery(store, self._first, lambda path, _: Path(path), this_run=True)
            while self._unsent:
                try:
                    self._delivery.send(self._unsent.pop(0))
                except MissingFileError as error:
                    self._complain(error, lost=True)
            if whole:
                # Again, since the last stage of another run may have been sending: points of a sweep end together.
                send_earlier(self._delivery.store, self._first.pipeline.title, OTHERS_S)
                from pipeline.tracking.changes import compare_runs  # pandas, which short stages avoid
                from pipeline.tracking.registry import bring_up_to_date, here

                bring_up_to_date(self._delivery.store, here(self._params, self._first.pipeline.title))
                compare_runs(self._delivery.store, self._params)
        except Exception as error:
            self._delivery, self._sends, self._unsent = None, False, []
            self._complain(error)

    def _close(self, error: BaseException | None) -> None:
        if error is None:
            self._record(self._outputs)
        else:
            last_line = traceback.format_exception_only(error)[-1].strip().splitlines()[-1]
            self._record(lambda: record.Tags(tags={"error": last_line[:LONGEST_TAG]}))
        failed = record.FAILED if isinstance(error, Exception) else record.KILLED  # signals raise other errors
        self._record(lambda: record.End(at=record.now_ms(), status=record.FINISHED if error is None else failed))
        if error is not None or self._name == LAST:
            self._send(whole=error is None)
        if self._spool is not None:
            self._spool.close(sent=self._delivery is not None)

    def _outputs(self) -> record.Tags:
        found = identity.outputs(self._title)
        params = identity.stage_params(self._params, self._name, self._subject)
        return record.Tags(tags=identity.output_tags(self._title, found, params) if found else {})

    def _complain(self, error: Exception, lost: bool = False) -> None:
        if self._complained:
            return
        self._complained = True
        later = "what MLflow misses is sent by 'python -m pipeline publish'"
        rest = later if self._spool is not None and not lost else "only MLflow misses this"
        sys.stderr.write(f"tracking: {reason(error)}; the results are safe, {rest}\n")


@contextmanager
def stage(name: str, subject: str, params: Params) -> Iterator[StageRun]:
    """Record a stage while its body runs; errors are recorded and raised again.

    `subject` is its scenario or agent ("" for compare and papers), whose rows of `params` become params of the run.
    """
    run = StageRun(name, subject, params)
    run._open()
    try:
        yield run
    except BaseException as error:
        run._close(error)
        raise
    run._close(None)
