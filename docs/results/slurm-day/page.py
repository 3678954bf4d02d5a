"""Table of ../slurm-day.md, from the runs that `python -m benchmarks.slurm.day` wrote."""

from pathlib import Path

from layout import number, table

from benchmarks.slurm import day_figures as days
from pipeline.core.storage.files import read_table

HERE = Path(__file__).resolve().parent
PLAYERS = {days.SLURM: "Slurm", days.POOL: "replay of a pool", days.NODES: "replay of nodes"}


def change(one: days.Effect) -> str:
    """Return a relative change with its interval, which is unknown for fewer than three pairs."""
    return f"{100 * one.change:+.1f} % ({100 * one.low:+.1f} to {100 * one.high:+.1f})"


def waits() -> str:
    """Return each figure before and after the settings on Slurm, and its change there and in the replays."""
    day = read_table(HERE / "day.csv.gz", days.DAY)
    found = {player: days.effects(day, player) for player in PLAYERS}
    rows = []
    for slurm, *replays in zip(*found.values(), strict=True):
        unit = "" if "slowdown" in slurm.measure else ", s"
        changes = [change(one) for one in (slurm, *replays)]
        rows.append([f"{slurm.measure}{unit}", number(slurm.before), number(slurm.after), *changes])
    heads = [f"{name}, change, n = {found[player][0].pairs}" for player, name in PLAYERS.items()]
    return table(["figure", "Slurm, before", "Slurm, after", *heads], rows)


TABLES = {"waits": waits}
