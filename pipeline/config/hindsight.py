"""How hindsight is solved: which scenarios, how many jobsets, and how long."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from pipeline.config.checks import must_know
from pipeline.config.problem import PoolScenario
from pipeline.config.records import Frozen, Many, Name
from pipeline.errors import UserError


def _each_once(names: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(names)) != len(names):
        raise ValueError(f"expected each scenario once, got {list(names)}")
    return names


class Hindsight(Frozen):
    """The schedules that full knowledge of the jobs could have made."""

    scenarios: Annotated[tuple[Name, ...], AfterValidator(_each_once)]
    jobsets: Many  # the first test jobsets of each load; all where there are fewer
    limit: Annotated[float, Field(gt=0)]  # deterministic time units a jobset


def check_hindsight(where: str, names: tuple[str, ...], scenarios: Mapping[str, Any]) -> None:
    """Refuse scenarios that cannot be solved in hindsight.

    Raises:
        UserError: there is no such scenario, it does not go in steps, is a stream, or places jobs ahead.
    """
    for name in names:
        must_know(where, "hindsight.scenarios", name, scenarios)
        must_be_solvable(f"{where}: hindsight.scenarios", name, scenarios[name])


def must_be_solvable(where: str, name: str, scenario: Any) -> None:
    """Refuse one scenario that cannot be solved in hindsight.

    Raises:
        UserError: it does not go in steps, is a stream, or places jobs ahead.
    """
    if not isinstance(scenario, PoolScenario):
        raise UserError(f"{where}: '{name}': expected problem pool, found {scenario.problem}")
    if scenario.measured is not None:
        raise UserError(f"{where}: '{name}': expected runs of which all jobs count, found a stream")
    if scenario.place_ahead:
        raise UserError(f"{where}: '{name}': expected place_ahead false, found true")
