"""`python -m benchmarks.fidelity`: run the jobs, store the plays and compare."""

from pathlib import Path

import pandas as pd

from benchmarks.fidelity.comparison import SLURM, figures, ranked, within
from benchmarks.fidelity.jobs import ORDERS, drawn, in_minutes
from benchmarks.fidelity.played import plays
from benchmarks.fidelity.tables import PLAYS
from benchmarks.slurm.accelerated import SITE
from benchmarks.slurm.configuration import EVERY_SECOND, Cluster
from pipeline.core.storage.files import check_out, write_table
from pipeline.progress import progress

PLAYERS = ("easy, exact", "easy, drawn", "easy_dynamic, drawn", "planned, drawn")
DIGITS = 12


def cluster_of(short: int, fair_share: int = 0, scheduler: str | None = None) -> Cluster:
    """Return a cluster; with fair-share, its clock is fast, and it has the intervals of a site."""
    fast = fair_share > 0
    parameters = ",".join([SITE.parameters if fast else EVERY_SECOND, *([scheduler] if scheduler else [])])
    return Cluster(parameters=parameters, short=short, fair_share=fair_share, speed=60.0 if fast else 1.0)


def run(out: Path, jobs: int, repeats: int, seed: int, cluster: Cluster) -> tuple[dict[str, object], list[str]]:
    """Run the jobs, write the table of plays and return the comparison, as data and as lines.

    Raises:
        UserError: Slurm cannot run here, or a play fails.
    """
    check_out(out)
    with progress("play on Slurm, repeats", repeats) as advance:
        short = drawn(jobs, seed)
        found = plays(in_minutes(short) if cluster.speed > 1 else short, tuple(ORDERS), repeats, cluster, advance)
    found = found[list(PLAYS.columns)]
    write_table(out, found, PLAYS, DIGITS)
    return compared(found, cluster)


def compared(found: pd.DataFrame, cluster: Cluster) -> tuple[dict[str, object], list[str]]:
    """Return every figure, and the orders as each player ranks them: as data, and a line for each."""
    measured, players = figures(found, cluster), PLAYERS[-1:] if cluster.short or cluster.fair_share else PLAYERS
    rows, lines = list[dict[str, object]](), list[str]()
    for player in players:
        for row in within(measured, player):
            spread = f"Slurm {row.mean:.3g} ({row.low:.3g} to {row.high:.3g})"
            where = "inside" if row.inside else "OUTSIDE"
            lines.append(f"{player}: {row.order}: {row.measure.replace('_', ' ')} {row.ours:.3g}, {spread}: {where}")
            rows.append({"player": player, **row._asdict(), "inside": bool(row.inside)})
    orders = {player: list(ranked(measured, player)) for player in (SLURM, *players)}
    lines += [f"{player}: lowest mean wait first: {', '.join(order)}" for player, order in orders.items()]
    return {"figures": rows, "lowest_mean_wait_first": orders}, lines
