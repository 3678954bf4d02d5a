"""Hindsight: the scenarios and jobsets that are solved, and the time limit."""

from typing import Annotated

from pydantic import AfterValidator, Field

from pipeline.core.config.pool.scenario import PoolScenario
from pipeline.core.config.records import Frozen, Many, Name
from pipeline.errors import UserError


def _each_once(names: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(names)) != len(names):
        raise ValueError(f"expected each scenario once, got {list(names)}")
    return names


class Hindsight(Frozen):
    """Schedules found with full knowledge of the jobs."""

    scenarios: Annotated[tuple[Name, ...], AfterValidator(_each_once)]  # of pooled clusters
    jobsets: Many  # the first test jobsets of each load; all where there are fewer
    limit: Annotated[float, Field(gt=0)]  # deterministic time units per jobset


def must_be_solvable(where: str, name: str, scenario: PoolScenario) -> None:
    """Refuse, with a UserError, a scenario that cannot be solved in hindsight: a stream, or one that places ahead."""
    if scenario.measured is not None:
        raise UserError(f"{where}: '{name}': expected runs of which all jobs count, found a stream")
    if scenario.place_ahead:
        raise UserError(f"{where}: '{name}': expected place_ahead false, found {str(scenario.place_ahead).lower()}")
