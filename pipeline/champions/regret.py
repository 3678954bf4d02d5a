"""Regret: how much worse a champion is than the best heuristic, window by window, and the alarm.

The regret of a window is the mean over loads of (champion's cost - heuristic's) / the worse of the two: between -1 and
1, above 0 if the heuristic would have been better. Only regret raises an alarm; changes of the input only explain it.
"""

from collections.abc import Collection, Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd

from pipeline.comparing.resampling import lower_limits, seen_at, windows
from pipeline.core.config.evaluation import Watch
from pipeline.core.types import FloatArray

QUIET, ALARM, CANNOT_TELL = 0, 3, 4  # exit codes of `watch`; 2 is an error
STREAMS, LONGEST = 40, 1000  # number and length of the streams simulated to count the necessary windows
BEST = "the best on validation"
NOTHING = 1e-9  # avoids division by 0 if neither policy makes a job wait

Regrets = Mapping[str, FloatArray]  # of each window, by rival


class Rival(NamedTuple):
    """A heuristic that is replayed for comparison with the champion."""

    by_load: Mapping[int, str]
    share: float  # of the chance of a false alarm


class Watched(NamedTuple):
    """Result of watching a champion."""

    code: int
    windows: int
    needed: int  # windows after which regret of the planned size would be detected
    rival: str  # the best heuristic
    mean: float  # regret against it; nan without a window
    low: float  # its lower limit, valid at any time
    seen: int | None  # windows after which the alarm came


def rivals(champion: str, validation: Mapping[str, Mapping[int, float]], loads: Collection[int]) -> dict[str, Rival]:
    """Return the rivals: the best heuristic by load on validation, and each heuristic, all without the champion.

    The former has half of the chance of a false alarm, and the latter share the rest.

    >>> found = rivals("sjf", {"sjf": {50: 2.0}, "hold": {50: 3.0}, "fcfs": {50: 4.0}}, [50])
    >>> {name: (one.by_load[50], one.share) for name, one in found.items()}
    {'the best on validation': ('hold', 0.5), 'hold': ('hold', 0.25), 'fcfs': ('fcfs', 0.25)}
    """
    others = {name: means for name, means in validation.items() if name != champion}
    best = {load: min(others, key=lambda name: others[name].get(load, np.inf)) for load in loads}
    share = 0.5 / len(others)
    return {BEST: Rival(best, 0.5)} | {name: Rival(dict.fromkeys(loads, name), share) for name in others}


def regrets(results: pd.DataFrame, champion: str, rival: Rival, cost: str) -> FloatArray:
    """Return the regret of each window, in order of time.

    `results` are those of both policies, numbered in order of time; in their column `cost` less is better.
    """
    wanted = ["jobset", "load", "policy", cost]
    keyed = windows(results[wanted]).set_index(["unit", "load", "jobset", "policy"])[cost].unstack("policy")
    found: list[pd.Series] = []
    for load, part in keyed.groupby("load"):
        mine, theirs = part[champion], part[rival.by_load[int(str(load))]]
        found.append((mine - theirs) / np.maximum(np.maximum(mine, theirs), NOTHING))
    means = pd.concat(found).groupby(["unit", "load"]).mean().groupby("unit").mean()
    return np.asarray(means.to_numpy())


def watched(new: Regrets, judged: Regrets, rivals: Mapping[str, Rival], rules: Watch, seed: int) -> Watched:
    """Return whether to raise an alarm.

    `new` is the regret against each rival in the windows since the champion was judged, `judged` that in the windows of
    its judgement, whose spread gives the necessary number of new ones. `seed` is that of the simulated streams.
    """
    streams, shares = np.array([new[name] for name in rivals]), np.array([one.share for one in rivals.values()])
    count, needed = streams.shape[1], windows_needed(judged[BEST], rules, seed)
    if not count:
        return Watched(CANNOT_TELL, 0, needed, BEST, float("nan"), -rules.bound, None)
    seen = seen_at(streams, shares, rules.tolerance, rules.level, rules.bound)
    code = ALARM if seen else QUIET if count >= needed else CANNOT_TELL
    means = np.clip(streams, -rules.bound, rules.bound).mean(axis=1)
    low = lower_limits(streams, shares, rules.level, rules.bound)[-1]
    worst = int(np.argmax(means))
    return Watched(code, count, needed, list(rivals)[worst], float(means[worst]), float(low), seen)


def windows_needed(judged: FloatArray, rules: Watch, seed: int) -> int:
    """Return the windows after which an alarm comes in half of the streams with the plan's regret, spread as judged."""
    rng = np.random.default_rng(seed)
    around = judged - judged.mean() if len(judged) > 1 else np.zeros(1)
    streams, half = rules.plan + rng.choice(around, (STREAMS, 1, LONGEST)), np.array([0.5])
    found = [seen_at(stream, half, rules.tolerance, rules.level, rules.bound) or LONGEST for stream in streams]
    return int(np.median(found))
