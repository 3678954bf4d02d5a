"""Every agent against every reference as a table, and which jobset shows what the best of them does."""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import pandas as pd

from pipeline.comparing.comparing import BEST, REFERENCES
from pipeline.comparing.statistics import ALL
from pipeline.comparing.words import relative, side
from pipeline.errors import UserError

SPOKEN = {
    "sjf": "SJF",
    "tetris": "tuned Tetris",
    "proportional": "shares by demand",
    "drf": "DRF",
    "fixed": "the best fixed shares",
    "lookahead": "lookahead",
    BEST: "the best heuristic",
}


class Verdict(NamedTuple):
    """One agent against one reference."""

    difference: str  # over all loads
    side: str  # below, above or open: where the whole interval is
    loads: str  # at how many loads it is below


class Row(NamedTuple):
    """One agent against all references."""

    agent: str
    scenario: str
    objective: str
    mean: str
    n: int
    verdicts: list[Verdict]


def references(comparison: pd.DataFrame) -> list[str]:
    """Return the references that some scenario has: the columns of the table of all agents."""
    return [name for name in (*REFERENCES, BEST) if (comparison["against"] == name).any()]


def verdicts(objectives: pd.DataFrame, agents: Collection[str]) -> list[Row]:
    """Return every agent against every reference by what it was trained for, over all loads of each of its scenarios.

    Args:
        objectives: OBJECTIVES.
        agents: in the order of the rows.
    """
    columns = references(objectives)
    return [
        _row(agent, str(rows["objective"].iloc[0]), rows, columns)
        for agent in agents
        for _, rows in objectives[objectives["policy"] == agent].groupby("scenario", sort=False)
    ]


def _row(agent: str, objective: str, rows: pd.DataFrame, columns: Sequence[str]) -> Row:
    first = rows[rows["load"] == ALL].iloc[0]
    cells = [_verdict(rows[rows["against"] == against]) for against in columns]
    mean = f"{first['mean']:.2f}{'†' if first['unfinished'] else ''}"
    return Row(agent, first["scenario"], objective, mean, int(first["n"]), cells)


def _verdict(rows: pd.DataFrame) -> Verdict:
    if rows.empty:
        return Verdict("", "open", "")
    over, single = rows[rows["load"] == ALL].iloc[0], rows[rows["load"] != ALL]
    low, high = over["difference_low"], over["difference_high"]
    below = int((single["difference_high"] < 0).sum())
    return Verdict(relative(over), side(low, high), f"below at {below} of {len(single)} loads")


def at_home(comparison: pd.DataFrame, homes: Mapping[str, str]) -> pd.DataFrame:
    """Return the rows of agents on the scenario that each was trained on."""
    return comparison[comparison["policy"].map(homes) == comparison["scenario"]]


def best_agent(objectives: pd.DataFrame, agents: Collection[str]) -> str | None:
    """Return the learned policy that is furthest below SJF over all loads, each by what it was trained for."""
    over = objectives[(objectives["load"] == ALL) & (objectives["against"] == REFERENCES[0])]
    mine = over[over["policy"].isin(agents)].sort_values(["difference", "policy"])
    return None if mine.empty else str(mine.iloc[0]["policy"])


def middle_load(comparison: pd.DataFrame, scenario: str) -> int:
    """Return the load in the middle of a scenario's, the higher of two."""
    loads = sorted({int(load) for load in comparison[comparison["scenario"] == scenario]["load"] if load != ALL})
    return loads[len(loads) // 2]


def typical_jobset(results: pd.DataFrame, agent: str, load: int) -> int:
    """Return the jobset of a load in which an agent differs from SJF most nearly as it does in the mean.

    Raises:
        UserError: they share no jobset.
    """
    at = results[(results["load"] == load) & results["policy"].isin([agent, REFERENCES[0]])]
    slowdown = at.pivot(index="jobset", columns="policy", values="mean_slowdown").dropna()
    if slowdown.shape[1] < 2 or slowdown.empty:
        raise UserError(f"{agent} and {REFERENCES[0]} share no test jobset of load {load}")
    gap = slowdown[agent] - slowdown[REFERENCES[0]]
    distance = (gap - gap.mean()).abs()
    return int(distance.sort_values(kind="stable").index[0])
