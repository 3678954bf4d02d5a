"""Rules of who may become the champion of a scenario, and of when it is time to look for another one."""

from difflib import get_close_matches
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from pipeline.config.records import Frozen, Many, Name, Share, check_known

if TYPE_CHECKING:
    from pipeline.config.params import Params

LEAST = 10  # independent jobsets; fewer have no interval
ALIKE = 0.9  # of two names, by difflib: one of them is misspelt
Level = Annotated[float, Field(gt=0, lt=0.5)]


class Watch(Frozen):
    """When `watch` raises an alarm over a champion."""

    level: Level  # chance of an alarm without regret, however often and however long it is looked at
    # Regret in a window: how much worse the champion is than the best heuristic, as part of the worse of the two. Its
    # mean may be so much without an alarm.
    tolerance: Share
    bound: Annotated[float, Field(gt=0, le=1)]  # the regret of one window is cut here, above and below 0
    plan: Annotated[float, Field(gt=0, le=1)]  # regret to be seen: how many windows are too few


class Gate(Frozen):
    """What a candidate must show to become the champion; declared before its results are seen."""

    jobsets: Annotated[Many, Field(ge=LEAST)]  # independent jobsets, or windows, that each load needs at least
    # The same of scenarios in which fewer are enough, by name.
    fewer: dict[Name, Annotated[Many, Field(ge=LEAST)]]
    level: Level  # chance that a candidate which is no better is promoted, over all candidates of a scenario (Holm)
    margin: Share  # part of the champion's mean over all loads by which a candidate must be better
    load_margin: Share  # part of the champion's mean by which it may be worse at any one load, with its interval
    tail_margin: Share  # the same of the 99th percentile, over all loads
    watch: Watch  # of the champion, once it is one

    def needed(self, scenario: str) -> int:
        """Return how many independent jobsets each load of a scenario needs."""
        return self.fewer.get(scenario, self.jobsets)


def check_gate(params: "Params", where: str) -> None:
    """Refuse a number for a misspelt scenario; one whose scenario was taken out has no effect."""
    for name in params.gate.fewer if params.gate else ():
        if get_close_matches(name, params.scenarios, cutoff=ALIKE):
            check_known(where, f"gate.fewer.{name}", name, params.scenarios)


def too_few(params: "Params", scenario: str) -> str:
    """Return why the gate can promote no candidate of a scenario, whatever the results; nothing where it can."""
    tests = params.scenario(scenario).jobsets.test
    if params.gate is None or tests >= (needed := params.gate.needed(scenario)):
        return ""
    why = f"{needed} independent jobsets a load are needed, scenarios.{scenario}.jobsets.test is {tests}"
    return f"gate: {scenario}: no candidate can pass: {why}: raise it, or set gate.fewer.{scenario}"
