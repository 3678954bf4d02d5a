"""`python -m benchmarks.fidelity`: run the jobs, store the plays and compare."""

from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from benchmarks.fidelity.comparison import SLURM, figures, ranked, within
from benchmarks.fidelity.jobs import ORDERS, drawn
from benchmarks.fidelity.played import plays
from benchmarks.fidelity.tables import PLAYS
from benchmarks.slurm.configuration import Cluster
from pipeline.core.storage.files import check_out, write_table
from pipeline.progress import progress

PLAYERS = ("easy, exact", "easy, drawn", "easy_dynamic, drawn", "planned, drawn")
DIGITS = 12


def run(out: Path, jobs: int, repeats: int, seed: int, cluster: Cluster) -> Iterator[str]:
    """Run the jobs, write the table of plays and yield the lines to print.

    Raises:
        UserError: Slurm cannot run here, or a play fails.
    """
    check_out(out)
    with progress("play on Slurm, repeats", repeats) as advance:
        found = plays(drawn(jobs, seed), tuple(ORDERS), repeats, cluster, advance)
    found = found[list(PLAYS.columns)]
    write_table(out, found, PLAYS, DIGITS)
    yield from said(found, cluster)


def said(found: pd.DataFrame, cluster: Cluster) -> Iterator[str]:
    """Yield a line per figure, then the orders as each player ranks them."""
    measured = figures(found, cluster)
    for player in PLAYERS[-1:] if cluster.short else PLAYERS:
        for row in within(measured, player):
            spread = f"Slurm {row.mean:.3g} ({row.low:.3g} to {row.high:.3g})"
            where = "inside" if row.inside else "OUTSIDE"
            yield f"{player}: {row.order}: {row.measure.replace('_', ' ')} {row.ours:.3g}, {spread}: {where}"
    for player in (SLURM, *(PLAYERS[-1:] if cluster.short else PLAYERS)):
        yield f"{player}: lowest mean wait first: {', '.join(ranked(measured, player))}"
