"""Tables of ../streams.md, from the data that `sustained.py` and `coverage.py` wrote."""

from pathlib import Path

import pandas as pd
from layout import table

HERE = Path(__file__).resolve().parent


def sustained() -> str:
    """Return mean slowdown and longest wait, or the number of jobs that never started, by load and rule."""
    found = pd.read_csv(HERE / "sustained.csv").set_index(["load", "policy"])
    rules, written = ("fcfs", "tetris", "easy", "sjf", "hold"), []
    for load in (50, 60, 65, 70):
        of = [found.loc[(load, rule)] for rule in rules]
        said = [f"{one['never']:.0f} never" if one["never"] else f"{one['longest']:,.0f}" for one in of]
        cells = [f"{one['slowdown']:.2f} / {end}" for one, end in zip(of, said, strict=True)]
        written.append([f"{load} %", *cells])
    return table(["load", *rules], written)


def coverage() -> str:
    """Return the share of misses of each kind of interval, mean over loads, for few streams and for the test's."""
    found = pd.read_csv(HERE / "coverage.csv").groupby(["what", "n"], sort=False).mean(numeric_only=True)
    kinds = [(kind, n) for kind in ("percentile", "studentized") for n in (24, 100)]
    shown = ("slowdown of sjf", "p99 slowdown of sjf", "easy less sjf, relative")
    written = [[what, *(f"{found.loc[(what, n), kind]:.1f} %" for kind, n in kinds)] for what in shown]
    return table(["mean over the three loads", *(f"{kind}, n = {n}" for kind, n in kinds)], written)


TABLES = {"loads that are sustained": sustained, "intervals that miss": coverage}
