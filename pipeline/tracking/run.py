"""Run: the record of one stage; whatever goes wrong with it, the stage goes on."""

import os
import re
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING
from uuid import uuid4

from pipeline.config import Params
from pipeline.tracking.digests import digest, measured
from pipeline.tracking.identity import (
    Identity,
    identify,
    output_tags,
    outputs,
    scenario_of,
    shared_params,
    stage_params,
    stage_tags,
    title_of,
)
from pipeline.tracking.record import (
    FAILED,
    FINISHED,
    KILLED,
    Begin,
    Curve,
    End,
    Event,
    Figure,
    Inputs,
    Metrics,
    Pipeline,
    Policy,
    Tags,
    now_ms,
)
from pipeline.tracking.spool import Spool

if TYPE_CHECKING:
    from pipeline.tracking.delivery import Delivery

LONGEST_TAG = 5000
LONGEST_REASON = 300
TERMINATED = 128 + signal.SIGTERM  # exit code of a process that a signal ended, as shells have it


class StageRun:
    """The record of one stage: spooled event by event, and sent to MLflow at once as long as MLflow answers."""

    def __init__(self, name: str, subject: str, params: Params) -> None:
        self._title = title_of(name, subject)
        self._name, self._subject, self._params = name, subject, params
        self._off = os.environ.get("PIPELINE_TRACKING", "").lower() == "off"
        self._spool: Spool | None = None
        self._delivery: Delivery | None = None
        self._complained = False

    def inputs(self, *paths: Path) -> None:
        """Record what the stage reads: path and DVC's md5; the stage itself reports what is missing."""
        self._record(lambda: Inputs(md5={path.as_posix(): digest(path) for path in paths if path.exists()}))

    def metrics(self, values: Mapping[str, float], step: int) -> None:
        """Record numbers of one step; they are sent now and then, and at the end."""
        self._record(lambda: Metrics(step=step, values={k: float(value) for k, value in values.items()}, at=now_ms()))

    def parent_curve(self, name: str, values: Mapping[int, float]) -> None:
        """Record a curve over loads on the pipeline's run, where MLflow draws all pipeline runs in one chart.

        Args:
            name: as slowdown/sjf.
            values: by load.
        """
        self._record(lambda: Curve(name=curve_name(name, self._scenario, values), values=dict(values)))

    def figure(self, path: Path) -> None:
        """Record a file as an artifact."""
        self._record(lambda: Figure(path=path.as_posix(), md5=measured(path)))

    def model(self, folder: Path) -> None:
        """Record a model directory as the model of this run, ready to be served."""
        self._record(lambda: Policy(path=folder.as_posix(), md5=measured(folder)))

    @property
    def _scenario(self) -> str:
        return scenario_of(self._params, self._name, self._subject)

    def _open(self) -> None:
        if self._off:
            return
        try:
            begin = self._begin(identify())
            with suppress(OSError):  # where nothing can be written MLflow may still be reached
                self._spool = Spool(begin.id)
                self._spool.add(begin)
            from pipeline.tracking.delivery import Delivery
            from pipeline.tracking.store import open_store

            self._delivery = Delivery(open_store(), begin, lambda path, _: Path(path))
        except Exception as error:
            self._complain(error)

    def _begin(self, identity: Identity) -> Begin:
        at = now_ms()
        parent = Pipeline(title=identity.pipeline, at=at, tags=identity.tags, params=shared_params(self._params))
        return Begin(
            id=uuid4().hex,
            title=self._title,
            at=at,
            tags={**identity.tags, **stage_tags(self._name, self._subject)},
            params=stage_params(self._params, self._name, self._subject),
            pipeline=parent,
        )

    def _record(self, make: Callable[[], Event]) -> None:
        """Spool an event and send it; the first failure is reported, and what can still be done is done."""
        if self._off or (self._spool is None and self._delivery is None):
            return
        from pipeline.tracking.delivery import MissingFileError

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
        try:
            if self._delivery is not None:
                self._delivery.send(event)
        except MissingFileError as error:
            self._complain(error, lost=True)
        except Exception as error:
            self._delivery = None
            self._complain(error)

    def _close(self, error: BaseException | None) -> None:
        if error is None:
            self._record(self._outputs)
        else:
            last_line = traceback.format_exception_only(error)[-1].strip().splitlines()[-1]
            self._record(lambda: Tags(tags={"error": last_line[:LONGEST_TAG]}))
        self._record(lambda: End(at=now_ms(), status=_status(error)))
        if self._spool is not None:
            self._spool.close(sent=self._delivery is not None)

    def _outputs(self) -> Tags:
        found = outputs(self._title)
        params = stage_params(self._params, self._name, self._subject)
        return Tags(tags=output_tags(self._title, found, params) if found else {})

    def _complain(self, error: Exception, lost: bool = False) -> None:
        if self._complained:
            return
        self._complained = True
        later = "what MLflow misses is sent by 'python -m pipeline publish'"
        rest = later if self._spool is not None and not lost else "only MLflow misses this"
        sys.stderr.write(f"tracking: {reason(error)}; the results are safe, {rest}\n")


@contextmanager
def stage(name: str, subject: str, params: Params) -> Iterator[StageRun]:
    """Record a stage while its body runs; what the body raises is recorded and passes on.

    Args:
        name: the stage: generate, heuristics, hindsight, pretrain, finetune, evaluate, compare or papers.
        subject: the scenario or agent it is about; "" for compare and papers.
        params: all of params.yaml; the rows about the subject become params of the run.
    """
    run = StageRun(name, subject, params)
    with _terminable():
        run._open()
        try:
            yield run
        except BaseException as error:
            run._close(error)
            raise
        run._close(None)


def curve_name(name: str, scenario: str, loads: Collection[int]) -> str:
    """Return the metric of a curve: it says the scenario, for scenarios have policies and loads in common.

    MLflow makes a section of charts of what stands before a slash; sections come first, so what is one point and no
    curve has no slash. Titles of charts are cut after some ten letters: slowdown goes without saying.

    >>> curve_name("slowdown/sjf", "online", [10, 50]), curve_name("makespan/sjf", "online", [10, 50])
    ('online/sjf', 'online makespan/sjf')
    >>> curve_name("slowdown/sjf", "offline", [100])
    'sjf offline'
    """
    kind, _, policy = name.partition("/")
    heading = scenario if kind == "slowdown" else f"{scenario} {kind}"
    return f"{heading}/{policy}" if len(loads) > 1 else f"{policy} {heading}"


def reason(error: Exception) -> str:
    """Return why something failed, on one line."""
    # The cause comes first: what follows is SQL on lines of its own, or the insides of an HTTP client.
    first_line = (str(error).strip().splitlines() or [type(error).__name__])[0]
    return re.split(r" with (?:\w+ )?exception ", first_line)[0].rstrip(":")[:LONGEST_REASON]


def _status(error: BaseException | None) -> str:
    if error is None:
        return FINISHED
    return FAILED if isinstance(error, Exception) else KILLED  # what is no Exception is a signal's wish to end


@contextmanager
def _terminable() -> Iterator[None]:
    """Let SIGTERM end the stage as an exception does, so that it can be recorded; others' handlers stay."""
    ours = threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    if ours:
        signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    finally:
        if ours:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _terminate(number: int, frame: FrameType | None) -> None:
    raise SystemExit(TERMINATED)
