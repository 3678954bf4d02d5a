"""Tables of ../fidelity.md, from the plays that `python -m benchmarks.fidelity` wrote."""

from functools import cache, partial
from pathlib import Path

import pandas as pd
from layout import table

from benchmarks.fidelity.comparison import MEASURES, SLURM, figures, ranked, within
from benchmarks.fidelity.simulated import CLOCKS, DISPATCHES
from benchmarks.fidelity.tables import PLAYS
from benchmarks.slurm.configuration import Cluster
from pipeline.core.storage.files import read_table

PLAYED = Path(__file__).resolve().parent / "plays.csv.gz"
PLAYERS = [f"{dispatch}, {clock}" for dispatch in DISPATCHES for clock in CLOCKS]
UNITS = {"mean_wait": "mean wait, s", "p99_wait": "p99 of wait, s", "utilisation": "utilisation, %",
         "distance": "start times apart, s"}  # fmt: skip


@cache
def measured() -> pd.DataFrame:
    """Return the figures of every player."""
    return figures(read_table(PLAYED, PLAYS), Cluster())


def told_apart(found: pd.DataFrame, measure: str = "mean_wait") -> list[tuple[str, str]]:
    """Return the pairs of orders, lower first, whose repeats on Slurm do not overlap."""
    spread = found[found["player"] == SLURM].groupby("order")[measure].agg(["min", "max"])
    return [
        (str(low), str(high))
        for low in spread.index
        for high in spread.index
        if spread.loc[low, "max"] < spread.loc[high, "min"]
    ]


def _value(measure: str, value: float) -> str:
    return f"{100 * value:.1f}" if measure == "utilisation" else f"{value:.2f}"


def _row(order: str, measure: str) -> list[str]:
    found = {name: next(row for row in within(measured(), name) if row[:2] == (order, measure)) for name in PLAYERS}
    one = found[PLAYERS[0]]
    slurm = f"{_value(measure, one.mean)} ({_value(measure, one.low)} to {_value(measure, one.high)})"
    ours = [_value(measure, row.ours) + ("" if row.inside else " ✗") for row in found.values()]
    return [order, UNITS[measure], slurm, *ours]


def beside() -> str:
    """Return each figure beside the spread of Slurm's repeats; ✗: outside of it."""
    count = measured().query("player == @SLURM")["repeat"].nunique()
    rows = [_row(order, measure) for order in measured()["order"].unique() for measure in MEASURES]
    return table(["order", "figure", f"Slurm, mean (least to most), n = {count}", *PLAYERS], rows, words=2)


def ranks() -> str:
    """Return in which order each player ranks the policies, by mean and by p99 of wait."""
    rows = []
    for player in [SLURM, *PLAYERS]:
        own = [", ".join(ranked(measured(), player, measure)) for measure in ("mean_wait", "p99_wait")]
        rows.append([player, *own])
    return table(["player", "lowest mean wait first", "lowest p99 of wait first"], rows, words=3)


def apart() -> str:
    """Return the pairs of orders that Slurm's repeats tell apart, and who agrees."""
    rows = []
    for measure in ("mean_wait", "p99_wait"):
        for low, high in told_apart(measured(), measure):
            agree = [p for p in PLAYERS if (r := ranked(measured(), p, measure)).index(low) < r.index(high)]
            rows.append([UNITS[measure], f"{low} below {high}", "; ".join(agree) or "none"])
    return table(["figure", "in all repeats of Slurm", "so does the simulator as"], rows, words=3)


TABLES = {"beside Slurm": partial(beside), "ranks": partial(ranks), "told apart": partial(apart)}
