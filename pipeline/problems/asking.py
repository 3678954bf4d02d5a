"""Asked of a cluster as it is: what a problem gives a service that decides for a live cluster.

A problem has a package `live` that holds LIVE; it is found by the problem's word, so that no stage depends on it.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Annotated, Generic, TypeVar

from pydantic import BaseModel, Field
from pydantic.fields import FieldInfo

from pipeline.config import Params
from pipeline.core import Json
from pipeline.errors import UserError

State = TypeVar("State", bound=BaseModel)  # of a cluster, as it is asked about
Decision = TypeVar("Decision", bound=BaseModel)


MOST_WAITING, MOST_RUNNING, MOST_RESOURCES = 2000, 200_000, 8  # of a state
Text = Annotated[str, Field(min_length=1, max_length=256)]  # a name: compared and given back, and nothing else


def at_most(count: int, least: int | None = None) -> FieldInfo:
    """Bound the length of a sequence or a mapping, which is read no further than its first mistake."""
    found: FieldInfo = Field(min_length=least, max_length=count, fail_fast=True)
    return found


class RefusedError(Exception):
    """A policy does not know what it is asked about, or what it answers is not an answer; others may be asked."""


@dataclass(frozen=True)
class Live(Generic[State, Decision]):
    """How policies of one problem decide for a cluster as it is."""

    door: str  # what is asked for, as a word of the address: decide, or shares
    state: type[State]
    decision: type[Decision]
    example: Callable[[Params, str], Mapping[str, Json]]  # a state of a scenario
    fallback: str  # a heuristic that answers whatever it is asked
    # (params, scenario, a heuristic or a model's folder, its tuned numbers) -> what decides; or raises RefusedError
    decider: Callable[[Params, str, str, Mapping[str, float]], Callable[[State], Decision]]
    places: bool = False  # does a decision say on which machines a job starts?


def once(what: str, names: Iterable[str]) -> None:
    """Refuse names that are there twice.

    Raises:
        ValueError: the first of them, as pydantic tells it.
    """
    for name, count in Counter(names).items():
        if count > 1:
            raise ValueError(f"{what} '{name}' is there {count} times")


AnyLive = Live[BaseModel, BaseModel]


def live_of(params: Params, scenario: str) -> AnyLive:
    """Return how policies decide for a live cluster of a scenario's problem.

    Raises:
        UserError: there is no such scenario, or its problem is not served.
    """
    word = params.scenario(scenario).problem
    place = f"pipeline.problems.{word}.live"
    try:
        found: AnyLive = import_module(place).LIVE
    except ModuleNotFoundError as error:
        if error.name != place:
            raise
        raise UserError(f"scenario '{scenario}': problem {word} is not served") from None
    return found
