"""Rules of who may become the champion of a scenario, and of when it is time to look for another one."""

from typing import Annotated

from pydantic import Field

from pipeline.config.records import Frozen, Many, Name, Share

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

    jobsets: Annotated[Many, Field(ge=10)]  # independent jobsets, or windows, that each load needs at least
    # The same of scenarios in which fewer are enough, by name.
    fewer: dict[Name, Annotated[Many, Field(ge=10)]]
    level: Level  # chance that a candidate which is no better is promoted, over all candidates of a scenario (Holm)
    margin: Share  # part of the champion's mean over all loads by which a candidate must be better
    load_margin: Share  # part of the champion's mean by which it may be worse at any one load, with its interval
    tail_margin: Share  # the same of the 99th percentile, over all loads
    watch: Watch  # of the champion, once it is one
