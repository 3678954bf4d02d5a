"""Regret: how much worse a champion is than the best heuristic, window by window, and whether it is time for an alarm.

The regret of a window is the mean over loads of (champion's cost - heuristic's) / the worse of the two: between -1 and
1, above 0 where the heuristic would have been better. Nothing else raises an alarm; what changed in the input only
explains one.
"""

from collections.abc import Collection, Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd

from pipeline.comparing.resampling import windows
from pipeline.comparing.sequences import lower_limits, seen_at
from pipeline.config import Watch
from pipeline.core import FloatArray

QUIET, ALARM, CANNOT_TELL = 0, 3, 4  # exit codes of `watch`; 2 is a mistake
STREAMS, LONGEST = 40, 1000  # by which the windows that are needed are counted
BEST = "the best on validation"
NOTHING = 1e-9  # neither of the two lets anybody wait


Regrets = Mapping[str, FloatArray]  # of each window, by rival


class Rival(NamedTuple):
    """A heuristic beside which the champion is replayed."""

    by_load: Mapping[int, str]
    share: float  # of the chance of a false alarm


class Watched(NamedTuple):
    """What a champion's regret says."""

    code: int
    windows: int
    needed: int  # windows from which on regret as large as the plan would be seen
    rival: str  # who would have done best
    mean: float  # regret beside it; nan where there is no window
    low: float  # what it is at least, whenever one looks
    seen: int | None  # windows after which the alarm came


def rivals(champion: str, validation: Mapping[str, Mapping[int, float]], loads: Collection[int]) -> dict[str, Rival]:
    """Return all other heuristics; the best on validation jobsets has half of the chance, the others share the rest.

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

    Args:
        results: jobset results of both at each load, numbered in order of time.
        champion: its name there.
        rival: the heuristic.
        cost: the column of the results; less is better.
    """
    wanted = ["jobset", "load", "policy", cost]
    keyed = windows(results[wanted]).set_index(["unit", "load", "jobset", "policy"])[cost].unstack("policy")
    found: list[pd.Series] = []
    for load, part in keyed.groupby("load"):
        mine, theirs = part[champion], part[rival.by_load[int(str(load))]]
        found.append((mine - theirs) / np.maximum(np.maximum(mine, theirs), NOTHING))
    means = pd.concat(found).groupby(["unit", "load"]).mean().groupby("unit").mean()
    return np.asarray(means.to_numpy())


def watched(new: Regrets, judged: Regrets, beside: Mapping[str, Rival], rules: Watch, seed: int) -> Watched:
    """Return whether it is time for an alarm.

    Args:
        new: regret beside each rival in the windows since the champion was judged.
        judged: in those that it was judged on; their spread says how many new ones are too few.
        beside: the rivals.
        rules: what was declared.
        seed: of the streams by which that is counted.
    """
    streams, shares = np.array([new[name] for name in beside]), np.array([one.share for one in beside.values()])
    count, needed = streams.shape[1], windows_needed(judged[BEST], rules, seed)
    if not count:
        return Watched(CANNOT_TELL, 0, needed, BEST, float("nan"), -rules.bound, None)
    seen = seen_at(streams, shares, rules.tolerance, rules.level, rules.bound)
    code = ALARM if seen else QUIET if count >= needed else CANNOT_TELL
    means = np.clip(streams, -rules.bound, rules.bound).mean(axis=1)
    low = lower_limits(streams, shares, rules.level, rules.bound)[-1]
    worst = int(np.argmax(means))
    return Watched(code, count, needed, list(beside)[worst], float(means[worst]), float(low), seen)


def windows_needed(judged: FloatArray, rules: Watch, seed: int) -> int:
    """Return after how many windows half of all streams are seen whose regret is that of the plan, spread as judged."""
    rng = np.random.default_rng(seed)
    around = judged - judged.mean() if len(judged) > 1 else np.zeros(1)
    streams, half = rules.plan + rng.choice(around, (STREAMS, 1, LONGEST)), np.array([0.5])
    found = [seen_at(stream, half, rules.tolerance, rules.level, rules.bound) or LONGEST for stream in streams]
    return int(np.median(found))
