"""Tables of ../fidelity.md, from the runs that `python -m benchmarks.fidelity` wrote."""

from functools import cache
from pathlib import Path

import pandas as pd
from layout import table

from benchmarks.fidelity.comparison import MEASURES, SLURM, figures, within
from benchmarks.fidelity.simulated import DISPATCHES
from benchmarks.fidelity.tables import PLAYS
from benchmarks.slurm.configuration import Cluster
from pipeline.core.storage.files import read_table

PLAYED = Path(__file__).resolve().parent / "plays.csv.gz"
PLAYERS = [f"{dispatch}, drawn" for dispatch in DISPATCHES]
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
    count = measured().loc[measured()["player"] == SLURM, "repeat"].nunique()
    rows = [_row(order, measure) for order in measured()["order"].unique() for measure in MEASURES]
    return table(["order", "figure", f"Slurm, mean (least to most), n = {count}", *map(shown, PLAYERS)], rows, words=2)


TABLES = {"figures": each_figure}
