"""Tables of the page: agents and policies against each reference, streams, unfinished jobs; and the jobset to draw."""

from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

import pandas as pd

from pipeline.comparing.comparing import BEST, REFERENCES
from pipeline.comparing.statistics import ALL
from pipeline.comparing.words import means_of, percent, relative, side, span, stream_rows
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
    side: str  # of the whole interval: below, above or open
    loads: str  # number of loads at which it is below


class Row(NamedTuple):
    """One agent against all references."""

    agent: str
    scenario: str
    objective: str
    mean: str
    n: int
    verdicts: list[Verdict]


class Cell(NamedTuple):
    """A policy at a load."""

    mean: str
    difference: str  # from the reference; "" for the reference itself
    interval: str
    side: str  # below, above or open


class Table(NamedTuple):
    """Policies by loads, lowest mean over all loads first."""

    title: str
    loads: list[str]
    n: list[int]  # jobsets at each load
    rows: list[tuple[str, list[Cell]]]


def references(comparison: pd.DataFrame) -> list[str]:
    """Return the references of all scenarios: the columns of the table of all agents."""
    return [name for name in (*REFERENCES, BEST) if (comparison["against"] == name).any()]


def verdicts(objectives: pd.DataFrame, agents: Collection[str]) -> list[Row]:
    """Return every agent against every reference by its objective (OBJECTIVES), over all loads of each scenario."""
    columns, found = references(objectives), []
    for agent in agents:
        for _, rows in objectives[objectives["policy"] == agent].groupby("scenario", sort=False):
            first = rows[rows["load"] == ALL].iloc[0]
            mean = f"{first['mean']:.2f}{'†' if first['unfinished'] else ''}"
            cells = [_verdict(rows[rows["against"] == against]) for against in columns]
            objective = str(rows["objective"].iloc[0])
            found.append(Row(agent, first["scenario"], objective, mean, int(first["n"]), cells))
    return found


def _verdict(rows: pd.DataFrame) -> Verdict:
    if rows.empty:
        return Verdict("", "open", "")
    over, single = rows[rows["load"] == ALL].iloc[0], rows[rows["load"] != ALL]
    below = int((single["difference_high"] < 0).sum())
    end = side(over["difference_low"], over["difference_high"])
    return Verdict(relative(over), end, f"below at {below} of {len(single)} loads")


def scenarios(
    comparison: pd.DataFrame, bounded: Collection[str] = (), what: str = "mean slowdown"
) -> list[tuple[str, list[Table]]]:
    """Return the title and tables of every scenario (COMPARISON or DELAY): by reference, last by the agents' own start.

    `bounded` are scenarios whose slowdown is bounded, `what` is the compared measure.
    """
    found = []
    for name, rows in comparison.groupby("scenario", sort=False):
        measure = "mean bounded slowdown" if name in bounded else what
        found.append((f"{name}, {measure}", list(_tables(rows))))
    return found


def _tables(rows: pd.DataFrame) -> Iterator[Table]:
    shared = references(rows)
    for against in shared:
        yield _table(f"Against {against}", rows[rows["against"] == against], rows, against)
    own = rows[~rows["against"].isin(shared)]
    if len(own):
        yield _table("Agents against their own weights before reinforcement", own, own, "")


def _table(title: str, compared: pd.DataFrame, rows: pd.DataFrame, against: str) -> Table:
    single = compared[compared["load"] != ALL]
    loads = ([ALL] if single["load"].nunique() > 1 else []) + sorted(single["load"].unique())
    counts = compared.drop_duplicates("load").set_index("load")["n"]
    means = means_of(rows, against)
    cells = {(row["policy"], row["load"]): _cell(row) for _, row in compared.iterrows()}
    order = means.sort_values(loads[0], kind="stable").iterrows()
    shown = [
        (str(policy), [cells.get((policy, load)) or Cell(f"{row[load]:.2f}", "", "", "open") for load in loads])
        for policy, row in order
    ]
    return Table(title, [str(load).lstrip("0") for load in loads], [int(counts[load]) for load in loads], shown)


def _cell(row: pd.Series) -> Cell:
    low, high = row["difference_low"], row["difference_high"]
    mean = f"{row['mean']:.2f}{'†' if row['unfinished'] else ''}"
    return Cell(mean, percent(row["difference"]), span(low, high), side(low, high))


def streams(summary: pd.DataFrame) -> list[tuple[str, str, int, list[tuple[str, list[str]]]]]:
    """Return every stream and load of STREAM_SUMMARY, with n and the cells of policies, lowest slowdown first."""
    loads = summary.groupby(["scenario", "load"], sort=False)
    return [(str(name), str(load), int(rows["n"].iloc[0]), stream_rows(rows)) for (name, load), rows in loads]


def unfinished(summary: pd.DataFrame) -> list[tuple[str, str, int, int, str]]:
    """Return the policies with unfinished jobs: scenario, policy, unfinished jobs, all jobs, loads."""
    found = []
    for (scenario, policy), rows in summary.groupby(["scenario", "policy"], sort=False):
        cut = rows[rows["unfinished"] > 0]
        if len(cut):
            loads = ", ".join(map(str, cut["load"]))
            found.append((str(scenario), str(policy), int(cut["unfinished"].sum()), int(rows["jobs"].sum()), loads))
    return found


def at_home(comparison: pd.DataFrame, homes: Mapping[str, str]) -> pd.DataFrame:
    """Return the rows of agents on the scenario that each was trained on."""
    return comparison[comparison["policy"].map(homes) == comparison["scenario"]]


def best_agent(objectives: pd.DataFrame, agents: Collection[str]) -> str | None:
    """Return the learned policy furthest below SJF over all loads, each by its objective."""
    over = objectives[(objectives["load"] == ALL) & (objectives["against"] == REFERENCES[0])]
    mine = over[over["policy"].isin(agents)].sort_values(["difference", "policy"])
    return None if mine.empty else str(mine.iloc[0]["policy"])


def middle_load(comparison: pd.DataFrame, scenario: str) -> int:
    """Return the middle one of a scenario's loads, the higher of two."""
    loads = sorted({int(load) for load in comparison[comparison["scenario"] == scenario]["load"] if load != ALL})
    return loads[len(loads) // 2]


def typical_jobset(results: pd.DataFrame, agent: str, load: int) -> int:
    """Return the jobset of a load whose difference from SJF is closest to the mean; UserError if none is shared."""
    at = results[(results["load"] == load) & results["policy"].isin([agent, REFERENCES[0]])]
    slowdown = at.pivot(index="jobset", columns="policy", values="mean_slowdown").dropna()
    if slowdown.shape[1] < 2 or slowdown.empty:
        raise UserError(f"{agent} and {REFERENCES[0]} share no test jobset of load {load}")
    gap = slowdown[agent] - slowdown[REFERENCES[0]]
    distance = (gap - gap.mean()).abs()
    return int(distance.sort_values(kind="stable").index[0])
