"""Record: what happened in one stage, event by event.

The events are the same whether MLflow takes them while the stage runs, `publish` takes them later from the spool, or
`publish` makes them up from what DVC stored. Sending one twice changes nothing.
"""

import time
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

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
