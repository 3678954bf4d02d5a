"""Tables of ../fidelity.md, from the runs that `python -m benchmarks.fidelity` wrote."""

from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path

import pandas as pd
from layout import table

from benchmarks.fidelity.comparison import MEASURES, SLURM, figures, within
from benchmarks.fidelity.jobs import ORDERS
from benchmarks.fidelity.measuring import cluster_of
from benchmarks.fidelity.tables import PLAYS
from benchmarks.slurm.configuration import Cluster
from pipeline.core.storage.files import read_table

HERE = Path(__file__).resolve().parent
# Recorded runs, and on which cluster.
ONE, TWO, FAIR = ("plays", cluster_of(0)), ("partitions", cluster_of(2)), ("fair_share", cluster_of(2, 60))
PLAYERS = ["easy, drawn", "planned, drawn"]
UNITS = {"mean_wait": "mean wait, s", "p99_wait": "p99 of wait, s", "utilisation": "utilisation, %"}


def shown(player: str) -> str:
    """Return a player with its dispatch rule as code: a name of params.yaml."""
    dispatch, comma, clock = player.partition(",")
    return f"`{dispatch}`{comma}{clock}" if comma else player


@cache
def measured(name: str, cluster: Cluster) -> pd.DataFrame:
    """Return the figures of every player."""
    return figures(read_table(HERE / f"{name}.csv.gz", PLAYS), cluster)


def _value(measure: str, value: float) -> str:
    return f"{100 * value:.1f}" if measure == "utilisation" else f"{value:.2f}"


def _row(found: pd.DataFrame, players: Sequence[str], order: str, measure: str) -> list[str]:
    rows = [next(row for row in within(found, name) if row[:2] == (order, measure)) for name in players]
    one = rows[0]
    slurm = f"{_value(measure, one.mean)} ({_value(measure, one.low)} to {_value(measure, one.high)})"
    ours = [_value(measure, row.ours) + ("" if row.inside else " ✗") for row in rows]
    return [order, UNITS[measure], slurm, *ours]


def each_figure(recorded: tuple[str, Cluster], players: Sequence[str], measures: Sequence[str] = MEASURES) -> str:
    """Return each figure and the range of Slurm's repeats; ✗ marks figures outside it."""
    found = measured(*recorded)
    count = found.loc[found["player"] == SLURM, "repeat"].nunique()
    rows = [_row(found, players, order, measure) for order in ORDERS for measure in measures]
    return table(["order", "figure", f"Slurm, mean (least to most), n = {count}", *map(shown, players)], rows, words=2)


TABLES = {
    "figures": partial(each_figure, ONE, PLAYERS, MEASURES[:3]),
    "two partitions": partial(each_figure, TWO, PLAYERS[-1:], ["mean_wait"]),
    "fair-share": partial(each_figure, FAIR, PLAYERS[-1:], ["mean_wait"]),
}
