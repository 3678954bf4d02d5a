"""Tables of ../streams.md, from the data that `sustained.py` and `coverage.py` wrote."""

from pathlib import Path

import pandas as pd
from layout import table

HERE = Path(__file__).resolve().parent


def sustained() -> str:
    """Return mean slowdown and longest wait, or the number of jobs that never started, by load and rule."""
    found = pd.read_csv(HERE / "sustained.csv").set_index(["load", "policy"])
    rules, written = list(found.index.unique("policy")), []
    for load in found.index.unique("load"):
        of = [found.loc[(load, rule)] for rule in rules]
        said = [f"{one['never']:.0f} never" if one["never"] else f"{one['longest']:,.0f}" for one in of]
        cells = [f"{one['slowdown']:.2f} / {end}" for one, end in zip(of, said, strict=True)]
        written.append([f"{load} %", *cells])
    return table(["load", *rules], written)


def coverage() -> str:
    """Return the share of misses of each kind of interval, mean over loads."""
    found = pd.read_csv(HERE / "coverage.csv").groupby(["what", "n"], sort=False).mean(numeric_only=True)
    kinds = ("percentile", "studentized", "student")
    written = [[what, str(n), *(f"{row[kind]:.1f} %" for kind in kinds)] for (what, n), row in found.iterrows()]
    head = ["mean over the three loads", "n", "percentile", "studentized", "Student's t"]
    return table(head, written)


TABLES = {"loads that are sustained": sustained, "intervals that miss": coverage}
