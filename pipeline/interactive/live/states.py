"""Common parts of the states of live clusters and of the decisions; both have a version.

Names are plain text: they are compared and returned. Validators raise ValueError, which pydantic reports.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, TypeVar

import numpy as np
from pydantic import Field
from pydantic.fields import FieldInfo

from pipeline.core.config.records import Frozen, Name
from pipeline.core.types import IntArray

MOST_WAITING, MOST_RUNNING, MOST_RESOURCES = 2000, 200_000, 8  # of a state
VERB = {"arrived": "arrives", "started": "starts"}
Text = Annotated[str, Field(min_length=1, max_length=256)]  # a name


def at_most(count: int, least: int | None = None) -> FieldInfo:
    """Bound the length of a sequence or a mapping, which is read no further than its first mistake."""
    found: FieldInfo = Field(min_length=least, max_length=count, fail_fast=True)
    return found


Part = TypeVar("Part")
Amounts = Annotated[dict[Name, Part], at_most(MOST_RESOURCES)]  # by resource
Waiting = Annotated[tuple[Part, ...], at_most(MOST_WAITING)]
Running = Annotated[tuple[Part, ...], at_most(MOST_RUNNING)]


def once(what: str, names: Iterable[str]) -> None:
    """Refuse names that occur twice."""
    for name, count in Counter(names).items():
        if count > 1:
            raise ValueError(f"{what} '{name}' is there {count} times")


def in_the_past(what: str, jobs: Sequence[Any], time: str, now: float) -> None:
    """Refuse jobs whose time, `arrived` or `started`, is in the future; jobs without names appear by number."""
    for number, job in enumerate(jobs):
        if (at := getattr(job, time)) > now:
            name = f"'{job.id}'" if hasattr(job, "id") else number
            raise ValueError(f"{what} job {name} {VERB[time]} at {_number(at)}, after now, {_number(now)}")


def consistent(state: Any) -> None:
    """Refuse a state with a job twice, or with a waiting job or the last arrival in the future."""
    once("job", (job.id for job in (*state.waiting, *state.running)))
    in_the_past("waiting", state.waiting, "arrived", state.now)
    if state.last_arrival is not None and state.last_arrival > state.now:
        raise ValueError(f"last_arrival is {_number(state.last_arrival)}, after now, {_number(state.now)}")


def _number(time: float) -> str:
    return f"{time:g}" if isinstance(time, float) else str(time)


def last_arrival(state: Any) -> float:
    """Return the time of the last arrival; if the state lacks it, that of the waiting jobs."""
    if state.last_arrival is not None:
        return float(state.last_arrival)
    return float(max((job.arrived for job in state.waiting), default=state.now))


def amounts(every: Iterable[Mapping[str, float]], resources: Sequence[str], scale: int = 1) -> IntArray:
    """Return amounts [N, R] of resources, as integers in units of 1 / `scale`."""
    rows = [[round(one.get(name, 0) * scale) for name in resources] for one in every]
    return np.array(rows, dtype=np.int64).reshape(-1, len(resources))


def others(demand: Mapping[str, float], resources: Sequence[str]) -> list[str]:
    """Return the resources that a job demands and that are not among `resources`."""
    return [name for name, amount in demand.items() if amount and name not in resources]


def in_order(own: Sequence[str], there: Sequence[str]) -> tuple[str, ...]:
    """Return the resources `there`, in the order of the scenario's `own` if both are the same."""
    return tuple(own if set(own) == set(there) else there)


class Ranked(Frozen):
    """A waiting job in the policy's order."""

    job: str
    score: float | None  # higher is sooner; None: held back, not tried, or beyond the slots of the policy


class Decision(Frozen):
    """A decision; `starts` differ by problem."""

    order: tuple[Ranked, ...]  # all waiting jobs that can run here, the first to start at the head
    starts: tuple[Any, ...]  # one after another
    never: tuple[str, ...] = ()  # waiting jobs that can never run here
    more: bool = False  # others might start, too: start these, and ask again
