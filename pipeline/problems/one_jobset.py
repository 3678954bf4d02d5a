"""The jobset that a command is about, for every problem, and what is refused in the same words."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

from pipeline.core import TimeArray
from pipeline.errors import UserError
from pipeline.problems.parts import ShowRequest
from pipeline.simulation.results import MOST_JOBSETS

MOST_NAMED = 12  # ids in a line of refusal
NO_CHOICE = "nothing to explain: in the test jobsets that are looked at there is never a choice while a job could start"


class _Jobs(Protocol):
    @property
    def arrival(self) -> TimeArray: ...


OneJobset = TypeVar("OneJobset", bound=_Jobs)


def test_jobset(jobsets: Mapping[int, Sequence[OneJobset]], asked: ShowRequest) -> tuple[str, OneJobset, int]:
    """Return one of a scenario's test jobsets: its title, its jobs, and the number of its random draws.

    Raises:
        UserError: there is no such load or jobset, or several and none is named.
    """
    loads = ", ".join(str(known) for known in jobsets)
    if asked.load is None and len(jobsets) > 1:
        raise UserError(f"scenario '{asked.scenario}': choose a load by --load; there are: {loads}")
    load = next(iter(jobsets)) if asked.load is None else asked.load
    if load not in jobsets:
        raise UserError(f"scenario '{asked.scenario}': unknown load {load}; there are: {loads}")
    known = [str(k) for k in range(len(jobsets[load]))]
    if (asked.jobset or "0") not in known:
        raise UserError(
            f"scenario '{asked.scenario}', load {load}: unknown test jobset '{asked.jobset}'; "
            f"there are: 0 to {len(known) - 1}"
        )
    number = known.index(asked.jobset or "0")
    jobs = jobsets[load][number]
    title = f"Scenario {asked.scenario}, load {load} %, test jobset {number}: {len(jobs.arrival)} jobs"
    return title, jobs, load * MOST_JOBSETS + number


def place_of(known: Sequence[str], where: Path | str, name: str | None) -> int:
    """Return the place of the named jobset of a user's file, or of the only one.

    Raises:
        UserError: there is no such jobset, or several and none is named.
    """
    more = f" and {len(known) - MOST_NAMED} more" if len(known) > MOST_NAMED else ""
    there = f"there are: {', '.join(known[:MOST_NAMED])}{more}"
    if name is None and len(known) > 1:
        raise UserError(f"{where}: choose a jobset by --jobset; {there}")
    if name is not None and name not in known:
        raise UserError(f"{where}: unknown jobset '{name}'; {there}")
    return 0 if name is None else known.index(name)
