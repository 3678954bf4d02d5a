"""Record: the events of one stage, and its spool, the file that keeps them until MLflow has them.

The events are the same whether MLflow takes them while the stage runs, `publish` takes them later from the spool, or
`publish` derives them from DVC's data. Sending one twice changes nothing.

Each event is written to the stage's file before it is sent, and the file is removed once all are sent. Loading MLflow
takes longer than most stages, so a short stage leaves its file to the next one that sends (see `run`). No event is lost
if the server is down or the process is killed: `publish` sends the rest. The process that writes a file holds a lock on
it, which the system releases when the process ends. So a file without a lock is complete, or its stage was killed.
"""

import fcntl
import glob
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Literal, TextIO

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from pipeline.core.config import repository_root

FINISHED, FAILED, KILLED = "FINISHED", "FAILED", "KILLED"
SOURCE = "source"  # tag: origin of a run that was not sent by its own process
WITHOUT = "record.without"  # tag: files that were missing when the record was sent


class OneEvent(BaseModel):
    """Base of all events."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")


class Pipeline(OneEvent):
    """The pipeline run of a stage."""

    title: str
    at: int  # ms since 1970, as all times here
    tags: dict[str, str]
    params: dict[str, str]


class Begin(OneEvent):
    """Start of a stage."""

    kind: Literal["begin"] = "begin"
    id: str  # of this record
    title: str
    at: int
    tags: dict[str, str]
    params: dict[str, str]
    pipeline: Pipeline


class Inputs(OneEvent):
    """Inputs of a stage: md5 by path."""

    kind: Literal["inputs"] = "inputs"
    md5: dict[str, str]


class Metrics(OneEvent):
    """Numbers of one step."""

    kind: Literal["metrics"] = "metrics"
    step: int
    values: dict[str, float]
    at: int | None = None  # None: when the run began


class Curve(OneEvent):
    """A curve over loads, on the pipeline's run."""

    kind: Literal["curve"] = "curve"
    name: str
    values: dict[int, float]


class Artifact(OneEvent):
    """A file for people, or a model directory."""

    kind: Literal["figure", "policy"]
    path: str
    md5: str


class Tags(OneEvent):
    """Results known at the end."""

    kind: Literal["tags"] = "tags"
    tags: dict[str, str]


class End(OneEvent):
    """End of a stage."""

    kind: Literal["end"] = "end"
    at: int
    status: str


Event = Annotated[Begin | Inputs | Metrics | Curve | Artifact | Tags | End, Field(discriminator="kind")]
_READER: TypeAdapter[Event] = TypeAdapter(Event)


def now_ms() -> int:
    """Return the time in MLflow's unit."""
    return int(time.time() * 1000)


def spool_folder() -> Path:
    """Return the folder of the spool: at the root, since a temporary experiment's folder is deleted."""
    root = repository_root().absolute()
    return root / ".dvc" / "tmp" / "mlflow-spool" if (root / ".dvc").is_dir() else root / "mlflow.db.spool"


class Spool:
    """The file of one stage."""

    def __init__(self, begin: Begin) -> None:
        folder = spool_folder()
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / f"{begin.pipeline.title}.{begin.at}.{begin.id}.jsonl"  # sorted by beginning
        self._stream: TextIO = self.path.open("a", encoding="utf-8")
        fcntl.flock(self._stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self.add(begin)

    def add(self, event: Event) -> None:
        """Write an event; once this returns, killing the process does not lose it."""
        self._stream.write(event.model_dump_json() + "\n")
        self._stream.flush()

    def close(self, sent: bool) -> None:
        """Close the file, and remove it if all was sent."""
        if sent:
            self.path.unlink(missing_ok=True)
        with suppress(OSError):
            self._stream.close()


def waiting(pipeline: str = "") -> list[Path]:
    """Return the files of stages, also of those that still run, of one pipeline run or of all."""
    return sorted(spool_folder().glob(f"{glob.escape(pipeline)}*.jsonl"))


@contextmanager
def taken(path: Path) -> Iterator[list[Event] | None]:
    """Yield a file's events, None while its stage runs; remove it unless the body fails; ValueError if invalid."""
    with path.open(encoding="utf-8") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield None
            return
        lines = stream.read().splitlines()
        events = [_READER.validate_json(line) for line in lines[:-1]]
        with suppress(ValueError):  # a kill can cut the last line
            events += [_READER.validate_json(line) for line in lines[-1:]]
        if events and not isinstance(events[0], Begin):
            raise ValueError("it does not begin with a stage")
        if events and not isinstance(events[-1], End):  # the stage was killed
            events.append(End(at=int(path.stat().st_mtime * 1000), status=KILLED))
        yield events
        path.unlink(missing_ok=True)
