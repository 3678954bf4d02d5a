"""The figures as a printed table."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from benchmarks.record import Row

SAID = {True: "yes", False: "NO", None: ""}


def show(rows: Sequence[Row], console: Console) -> None:
    """Print the figures, and below them a description of each baseline."""
    table = Table(title="Medians of the runs; a ratio above 1 is better than the baseline")
    for name in ("what", "median", "least", "most", "unit", "baseline", "ratio", "target", "holds"):
        table.add_column(name, justify="left" if name in ("what", "unit", "target", "holds") else "right")
    notes = list(dict.fromkeys(row.against for row in rows))
    for one, against in rows:
        mark = f"{notes.index(against) + 1})"
        baseline = mark if one.baseline is None else f"{one.baseline:.3g} {mark}"
        ratio = "" if one.ratio is None else f"{one.ratio:.3g} x"
        numbers = [f"{number:.3g}" for number in (one.value, one.min, one.max)]
        table.add_row(one.name, *numbers, one.unit, baseline, ratio, one.target or "", SAID[one.holds])
    console.print(table)
    for number, note in enumerate(notes, 1):
        console.print(f"{number}) {note}", highlight=False)
