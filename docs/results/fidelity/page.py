"""Tables of ../fidelity.md, from the runs that `python -m benchmarks.fidelity` wrote."""

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


def shown(player: str) -> str:
    """Return a player with its dispatch rule as code: a name of params.yaml."""
    dispatch, comma, clock = player.partition(",")
    return f"`{dispatch}`{comma}{clock}" if comma else player


@cache
def measured() -> pd.DataFrame:
    """Return the figures of every player."""
    return figures(read_table(PLAYED, PLAYS), Cluster())


def clear_differences(found: pd.DataFrame, measure: str = "mean_wait") -> list[tuple[str, str]]:
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


def each_figure() -> str:
    """Return each figure and the range of Slurm's repeats; ✗ marks figures outside it."""
    count = measured().query("player == @SLURM")["repeat"].nunique()
    rows = [_row(order, measure) for order in measured()["order"].unique() for measure in MEASURES]
    return table(["order", "figure", f"Slurm, mean (least to most), n = {count}", *map(shown, PLAYERS)], rows, words=2)


def ranks() -> str:
    """Return each player's ranking of the orders, by mean and by p99 of wait."""
    rows = []
    for player in [SLURM, *PLAYERS]:
        own = [", ".join(ranked(measured(), player, measure)) for measure in ("mean_wait", "p99_wait")]
        rows.append([shown(player), *own])
    return table(["Slurm or simulation", "lowest mean wait first", "lowest p99 of wait first"], rows, words=3)


def clear() -> str:
    """Return the pairs of orders that differ clearly on Slurm, and the simulated players that agree."""
    rows = []
    for measure in ("mean_wait", "p99_wait"):
        for low, high in clear_differences(measured(), measure):
            agree = [shown(p) for p in PLAYERS if (r := ranked(measured(), p, measure)).index(low) < r.index(high)]
            rows.append([UNITS[measure], f"{low} below {high}", "; ".join(agree) or "none"])
    return table(["figure", "in all repeats of Slurm", "simulations that agree"], rows, words=3)


TABLES = {"figures": partial(each_figure), "ranks": partial(ranks), "clear differences": partial(clear)}
