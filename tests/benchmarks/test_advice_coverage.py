"""The coverage of the intervals of advice, and what its page says of it."""

import csv

import numpy as np
import pytest
from builders import REPOSITORY
from queue_builders import Job, queue

from benchmarks import advice_coverage
from benchmarks.advice_coverage import judged, period_of

PAGE = (REPOSITORY / "docs/how-to/advise-a-site.md").read_text()
TABLE = REPOSITORY / "docs/results/intervals/advice.csv"


def test_the_page_has_the_numbers_of_the_table() -> None:
    with TABLE.open() as stream:
        rows = list(csv.DictReader(stream))
    assert [int(row["blocks"]) for row in rows] == list(advice_coverage.BLOCKS)
    for row in rows:
        shares = " | ".join(f"{100 * float(row[name]):.0f} %" for name in ("wait", "slowdown", "gain"))
        assert f"| {row['blocks']} | {shares} | {100 * float(row['width']):.0f} points |" in PAGE


def test_an_order_that_is_better_everywhere_is_clearly_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two jobs that wait for a third, the shorter one comes first by limit, every hour for 30 days."""
    hours = [
        Job(3600.0 * k + at, run, 1, limit=run) for k in range(720) for at, run in ((0, 600), (100, 2000), (200, 60))
    ]
    monkeypatch.setattr(advice_coverage, "STRETCHES", 6)
    monkeypatch.setattr(advice_coverage, "BLOCKS", (4,))
    (row,) = judged(period_of(queue([1], *hours)))
    assert (row.blocks, row.decided, row.estimated) == (4, 1.0, 0)
    assert np.isnan(row.came_true)
    assert 0 < row.width < 0.2
