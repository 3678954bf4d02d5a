"""Record: what happened in one stage, event by event, and its spool, the file that holds it until MLflow has it.

The events are the same whether MLflow takes them while the stage runs, `publish` takes them later from the spool, or
`publish` derives them from what DVC stored. Sending one twice changes nothing.

Each event is written to the stage's file before it is sent, and the file is removed once all are sent. Loading MLflow
takes longer than most stages, so a short stage leaves its file to the next one that sends (see `run`). Nothing is lost
when the server is away or the process is killed: `publish` sends what is left. The process that writes a file holds a
lock on it, which the system releases when it dies: a file without a lock is complete, or its stage was killed.
"""

import fcntl
import glob
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Literal, TextIO

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from pipeline.config import repository_root

FINISHED, FAILED, KILLED = "FINISHED", "FAILED", "KILLED"
SOURCE = "source"  # tag: how a run came here, if not from its own process
WITHOUT = "record.without"  # tag: what could not be had when the record was sent


class OneEvent(BaseModel):
    """One event."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")


class Pipeline(OneEvent):
    """The pipeline run that a stage belongs to."""

    title: str
    at: int  # ms since 1970, as all times here
    tags: dict[str, str]
    params: dict[str, str]


class Begin(OneEvent):
    """A stage begins."""

    kind: Literal["begin"] = "begin"
    id: str  # of this record
    title: str
    at: int
    tags: dict[str, str]
    params: dict[str, str]
    pipeline: Pipeline


class Inputs(OneEvent):
    """What it reads: md5 by path."""

    kind: Literal["inputs"] = "inputs"
    md5: dict[str, str]


class Metrics(OneEvent):
    """Numbers of one step."""

    kind: Literal["metrics"] = "metrics"
    step: int
    values: dict[str, float]
    at: int | None = None  # None: when the run began


class Curve(OneEvent):
    """A curve over loads, drawn on the pipeline's run."""

    kind: Literal["curve"] = "curve"
    name: str
    values: dict[int, float]


class Figure(OneEvent):
    """A file to look at."""

    kind: Literal["figure"] = "figure"
    path: str
    md5: str


class Policy(OneEvent):
    """A model directory."""

    kind: Literal["policy"] = "policy"
    path: str
    md5: str


class Tags(OneEvent):
    """What became known in the end."""

    kind: Literal["tags"] = "tags"
    tags: dict[str, str]


class End(OneEvent):
    """A stage ends."""

    kind: Literal["end"] = "end"
    at: int
    status: str


Event = Annotated[Begin | Inputs | Metrics | Curve | Figure | Policy | Tags | End, Field(discriminator="kind")]
_READER: TypeAdapter[Event] = TypeAdapter(Event)


def line_of(event: Event) -> str:
    """Return an event as a line of text."""
    return event.model_dump_json() + "\n"


def event_of(line: str) -> Event:
    """Return the event of a line; ValueError where it is none."""
    return _READER.validate_json(line)


def now_ms() -> int:
    """Return the time as MLflow counts it."""
    return int(time.time() * 1000)


def spool_folder() -> Path:
    """Return where the files are: at the root, for a temporary experiment's folder is thrown away."""
    root = repository_root().absolute()
    return root / ".dvc" / "tmp" / "mlflow-spool" if (root / ".dvc").is_dir() else root / "mlflow.db.spool"


class Spool:
    """The file of one stage."""

    def __init__(self, begin: Begin) -> None:
        folder = spool_folder()
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / f"{begin.pipeline.title}.{begin.at}.{begin.id}.jsonl"  # in the order they began
        self._stream: TextIO = self.path.open("a", encoding="utf-8")
        fcntl.flock(self._stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self.add(begin)

    def add(self, event: Event) -> None:
        """Write an event; once this returns, killing the process does not lose it."""
        self._stream.write(line_of(event))
        self._stream.flush()

    def close(self, sent: bool) -> None:
        """End the file, and remove it if all was sent."""
        if sent:
            self.path.unlink(missing_ok=True)
        with suppress(OSError):
            self._stream.close()


def waiting(pipeline: str = "") -> list[Path]:
    """Return the files that stages left or still write, of one pipeline run or of all."""
    return sorted(spool_folder().glob(f"{glob.escape(pipeline)}*.jsonl"))


@contextmanager
def taken(path: Path) -> Iterator[list[Event] | None]:
    """Give the events of a file; None while its stage still runs. The file is removed if the body raises nothing.

    Raises:
        ValueError: it holds something else.
    """
    with path.open(encoding="utf-8") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield None
            return
        yield _complete(stream.read().splitlines(), int(path.stat().st_mtime * 1000))
        path.unlink(missing_ok=True)


def _complete(lines: list[str], last_ms: int) -> list[Event]:
    """Return the events of some lines; a stage that did not come to its end was killed."""
    events = [event_of(line) for line in lines[:-1]]
    with suppress(ValueError):  # a kill can cut the last line
        events += [event_of(line) for line in lines[-1:]]
    if events and not isinstance(events[0], Begin):
        raise ValueError("it does not begin with a stage")
    if events and not isinstance(events[-1], End):
        events.append(End(at=last_ms, status=KILLED))
    return events
