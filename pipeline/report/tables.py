"""The tables of the page: policies by loads against each reference, streams, and jobs that were left unfinished."""

from collections.abc import Collection, Iterator
from typing import NamedTuple

import pandas as pd

from pipeline.comparing.comparing import BEST, REFERENCES
from pipeline.comparing.statistics import ALL
from pipeline.comparing.words import means_of, percent, side, span, stream_rows


class Cell(NamedTuple):
    """A policy at a load."""

    mean: str
    difference: str  # from the reference; nothing where it is the reference
    interval: str
    side: str  # below, above or open


class Table(NamedTuple):
    """Policies by loads, lowest mean over all loads first."""

    title: str
    loads: list[str]
    n: list[int]  # jobsets at each load
    rows: list[tuple[str, list[Cell]]]


class Scenario(NamedTuple):
    """All tables of one scenario."""

    name: str
    tables: list[Table]


class Stream(NamedTuple):
    """Policies of one stream at one load, lowest slowdown first."""

    scenario: str
    load: str
    n: int  # jobsets: independent replications
    rows: list[tuple[str, list[str]]]  # cells in the order of OF_STREAMS


class Unfinished(NamedTuple):
    """What one policy left undone in one scenario."""

    scenario: str
    policy: str
    unfinished: int
    jobs: int
    loads: str


def scenarios(comparison: pd.DataFrame, bounded: Collection[str] = (), what: str = "mean slowdown") -> list[Scenario]:
    """Return the tables of every scenario: one a reference, and last the agents against their own start.

    Args:
        comparison: COMPARISON or DELAY.
        bounded: scenarios whose slowdown is bounded.
        what: is compared.
    """
    words = {name: "mean bounded slowdown" if name in bounded else what for name in comparison["scenario"].unique()}
    return [
        Scenario(f"{name}, {words[name]}", list(_tables(rows)))
        for name, rows in comparison.groupby("scenario", sort=False)
    ]


def _tables(rows: pd.DataFrame) -> Iterator[Table]:
    shared = [against for against in (*REFERENCES, BEST) if (rows["against"] == against).any()]
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


def streams(summary: pd.DataFrame) -> list[Stream]:
    """Return the table of every stream and load of STREAM_SUMMARY."""
    loads = summary.groupby(["scenario", "load"], sort=False)
    return [Stream(str(name), str(load), int(rows["n"].iloc[0]), stream_rows(rows)) for (name, load), rows in loads]


def unfinished(summary: pd.DataFrame) -> list[Unfinished]:
    """Return what policies left undone, scenario by scenario."""
    found = []
    for (scenario, policy), rows in summary.groupby(["scenario", "policy"], sort=False):
        cut = rows[rows["unfinished"] > 0]
        if len(cut):
            loads = ", ".join(str(load) for load in cut["load"])
            counts = int(cut["unfinished"].sum()), int(rows["jobs"].sum())
            found.append(Unfinished(str(scenario), str(policy), *counts, loads))
    return found
