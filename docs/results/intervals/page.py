"""Table of ../coverage.md, from the data that `python -m benchmarks.coverage` wrote."""

from math import sqrt
from pathlib import Path

import pandas as pd
from layout import table

HERE = Path(__file__).resolve().parent
WORDS = {
    "one load": "jobsets of one load",
    "low load": "the same, at a low load",
    "all loads": "jobsets, stratified by load",
    "24": "24 jobsets per load, the four highest loads",
    "99th percentile": "99th percentile of a jobset's jobs",
    "machines": "five machines, stratified by load",
    "groups": "user groups, mean wait",
    "seeds": "jobsets and three training seeds (two-level)",
    "windows": "windows of a log, the same for all loads",
    "8 windows": "few windows: their range is reported",
    "sequence": "confidence sequence of the monitoring, over a year of windows",
}
Z = 1.96


def misses() -> str:
    """Return the share of misses of each kind of interval."""
    rows = []
    for row in pd.read_csv(HERE / "coverage.csv").itertuples():
        missed, of = row.above + row.below, row.repeats
        rows.append([WORDS[row.case], f"{row.loads} x {row.n}", _share(missed, of)])
    head = ["resampled units", "loads x n", f"missed in {of} repeats"]
    return table(head, rows)


def _share(missed: int, of: int) -> str:
    """Return a share with its 95 % interval (Wilson 1927)."""
    share, more = missed / of, Z * Z / of
    middle = (share + more / 2) / (1 + more)
    half = Z * sqrt(share * (1 - share) / of + more / (4 * of)) / (1 + more)
    low, high = max(middle - half, 0.0), middle + half
    return f"{100 * share:.1f} % ({100 * low:.1f} to {100 * high:.1f})"


TABLES = {"coverage": misses}
