"""The answer in a few sentences, and the same for every agent and reference as a table."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

import pandas as pd

from pipeline.comparing.comparing import BEST, REFERENCES
from pipeline.comparing.statistics import ALL
from pipeline.comparing.words import closing, listed
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


def side(low: float, high: float) -> str:
    """Return where a whole interval of a difference is.

    >>> side(-0.3, -0.1), side(0.1, 0.2), side(-0.1, 0.0)
    ('below', 'above', 'open')
    """
    return "below" if high < 0 else "above" if low > 0 else "open"


def percent(value: float) -> str:
    """Return a relative difference with its sign.

    >>> percent(-0.2871), percent(0.0)
    ('-28.7 %', '+0.0 %')
    """
    return f"{100 * value:+.1f} %"


def span(low: float, high: float) -> str:
    """Return an interval of a relative difference; large ones without a digit that nobody needs.

    >>> span(-0.298, 0.004), span(0.9, 1.285)
    ('-29.8 to +0.4', '+90 to +128')
    """
    digits = 0 if max(abs(low), abs(high)) >= 1 else 1
    return f"{100 * low:+.{digits}f} to {100 * high:+.{digits}f}"


def _clause(row: pd.Series, word: str = "") -> str:
    """Say how a policy compares with a reference; `word` stands before the interval."""
    low, high, against = row["difference_low"], row["difference_high"], SPOKEN[row["against"]]
    found = side(low, high)
    if found == "open":
        return f"not clearly apart from {against} ({percent(row['difference'])}, {word}{span(low, high)})"
    near, far = sorted((100 * abs(low), 100 * abs(high)))
    return f"{100 * abs(row['difference']):.1f} % {found} {against} ({word}{near:.1f} to {far:.1f})"


def sentences(
    comparison: pd.DataFrame, foreseen: pd.DataFrame, agents: Mapping[str, str], confidence: float
) -> list[str]:
    """Return what to say of the learned policies, scenario by scenario, and where they are not better.

    Args:
        comparison: COMPARISON.
        foreseen: HINDSIGHT_SUMMARY.
        agents: learned policies, each with its objective.
        confidence: of the intervals.
    """
    learned = comparison[comparison["policy"].isin(agents) & comparison["against"].isin(SPOKEN)]
    found = [_best(rows, str(name), confidence) for name, rows in learned.groupby("scenario", sort=False)]
    found += closing(foreseen, agents, confidence)
    losses = [loss for name, rows in learned.groupby("scenario", sort=False) for loss in _losses(rows, str(name))]
    return [*found, f"Where they are not better: {'; '.join(losses)}."] if losses else found


def _best(rows: pd.DataFrame, scenario: str, confidence: float) -> str:
    """Say how the scenario's best learned policy compares with each reference."""
    over = rows[rows["load"] == ALL]
    policy = str(over.sort_values(["mean", "policy"]).iloc[0]["policy"])
    mine = over[over["policy"] == policy]
    first = mine.iloc[0]
    loads = rows["load"].nunique() - 1
    where = f"over {loads} loads" if loads > 1 else f"at load {next(iter(set(rows['load']) - {ALL})).lstrip('0')}"
    word = f"{100 * confidence:g} % interval "
    parts = [_clause(row, "" if place else word) for place, (_, row) in enumerate(mine.iterrows())]
    return (
        f"Scenario {scenario}: {policy} has the lowest mean slowdown of the learned policies, {first['mean']:.2f} "
        f"{where}: {listed(parts)}; n = {first['n']} test jobsets{_cut(first)}."
    )


def _cut(row: pd.Series) -> str:
    return f" ({row['unfinished']} jobs unfinished, so at least this slow)" if row["unfinished"] else ""


def _losses(rows: pd.DataFrame, scenario: str) -> Iterator[str]:
    over = rows[rows["load"] == ALL]
    for _, row in over.iterrows():
        if side(row["difference_low"], row["difference_high"]) != "below":
            yield f"{row['policy']} is {_clause(row)} in {scenario}"
    single = rows[(rows["load"] != ALL) & (rows["against"] == REFERENCES[0])]
    open_at = [load for load, group in single.groupby("load") if not (group["difference_high"] < 0).any()]
    if open_at:
        loads = listed([f"{str(load).lstrip('0')} %" for load in open_at])
        yield f"at {loads} load in {scenario} no learned policy is clearly below {SPOKEN[REFERENCES[0]]}"


def references(comparison: pd.DataFrame) -> list[str]:
    """Return the references that some scenario has: the columns of the table of all agents."""
    return [name for name in (*REFERENCES, BEST) if (comparison["against"] == name).any()]


def verdicts(comparison: pd.DataFrame, agents: Mapping[str, str]) -> list[Row]:
    """Return every agent against every reference, over all loads of each scenario that it was scored on."""
    columns = references(comparison)
    return [
        _row(agent, objective.replace("_", " "), rows, columns)
        for agent, objective in agents.items()
        for _, rows in comparison[comparison["policy"] == agent].groupby("scenario", sort=False)
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
    difference = f"{percent(over['difference'])} ({span(low, high)})"
    return Verdict(difference, side(low, high), f"below at {below} of {len(single)} loads")


def at_home(comparison: pd.DataFrame, homes: Mapping[str, str]) -> pd.DataFrame:
    """Return the rows of agents on the scenario that each was trained on."""
    return comparison[comparison["policy"].map(homes) == comparison["scenario"]]


def best_agent(comparison: pd.DataFrame, agents: Collection[str]) -> str | None:
    """Return the learned policy that is furthest below SJF over all loads of its scenario."""
    over = comparison[(comparison["load"] == ALL) & (comparison["against"] == REFERENCES[0])]
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
