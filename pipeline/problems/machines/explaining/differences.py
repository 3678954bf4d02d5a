"""Where an agent and SJF part ways on what the agent meets, as tables."""

from itertools import pairwise

import numpy as np
import pandas as pd

from pipeline.core import BoolArray, IntArray
from pipeline.problems.machines.explaining.recording import Decisions
from pipeline.problems.machines.explaining.tables import DIFFERENCES, JOBS, MACHINES

WAITING = (1, 2, 3, 5, 9, 17, 33, np.inf)  # where classes of waiting jobs begin
FREE = (0.0, 0.2, 0.4, 0.6, 0.8, np.inf)  # the same of the share that is free


def differences(decisions: Decisions, load: IntArray) -> pd.DataFrame:
    """Return DIFFERENCES; load [B] is that of each episode."""
    here, same = load[decisions.episode].astype(float), decisions.same_job
    loads = [(value, value, here == value) for value in np.unique(here)]
    waiting = [
        (low, high - 1, (decisions.waiting >= low) & (decisions.waiting < high)) for low, high in pairwise(WAITING)
    ]
    free = [(low, min(high, 1.0), (decisions.free >= low) & (decisions.free < high)) for low, high in pairwise(FREE)]
    most = float(decisions.waiting.max())
    rows = []
    for by, classes in (("load", loads), ("waiting", waiting), ("free", free)):
        for low, high, inside in classes:
            if inside.any():
                shares = (
                    same & decisions.same_machine,
                    same & ~decisions.same_machine,
                    decisions.starts & ~same,
                    ~decisions.starts,
                )
                bounds = float(low), float(min(high, most) if by == "waiting" else high)
                rows.append((by, *bounds, int(inside.sum()), *(float(share[inside].mean()) for share in shares)))
    return pd.DataFrame(rows, columns=list(DIFFERENCES.columns))


def jobs(decisions: Decisions, load: IntArray) -> pd.DataFrame:
    """Return JOBS; load [B] is that of each episode."""
    another, agent, sjf = decisions.starts & ~decisions.same_job, decisions.agent, decisions.sjf
    columns = {
        "smaller": (agent.demand < sjf.demand).astype(float),
        "waited_longer": (agent.waited > sjf.waited).astype(float),
        "duration": agent.duration,
        "duration_sjf": sjf.duration,
        "demand": agent.demand,
        "demand_sjf": sjf.demand,
    }
    frame = pd.DataFrame(columns).assign(load=load[decisions.episode])[another]
    middle = frame.groupby("load").median()
    shares = frame.groupby("load")[["smaller", "waited_longer"]].mean()
    found = middle.assign(smaller=shares["smaller"], waited_longer=shares["waited_longer"])
    return _by_load(found, another, decisions, load, list(JOBS.columns))


def machines(decisions: Decisions, load: IntArray) -> pd.DataFrame:
    """Return MACHINES; load [B] is that of each episode."""
    names, placement = list(MACHINES.columns), decisions.placement
    frame = pd.DataFrame({name: getattr(placement, name) for name in names[2:]})
    frame = frame.assign(load=load[decisions.episode])[placement.uneven]
    return _by_load(frame.groupby("load").mean(), placement.uneven, decisions, load, names)


def _by_load(
    found: pd.DataFrame, counted: BoolArray, decisions: Decisions, load: IntArray, columns: list[str]
) -> pd.DataFrame:
    """Return a row for each load, of those without such decisions as well, and how many there are."""
    loads = np.unique(load[decisions.episode]).astype(np.int64)
    count = [int(counted[load[decisions.episode] == value].sum()) for value in loads]
    return found.reindex(loads).rename_axis("load").reset_index().assign(decisions=count)[columns]
