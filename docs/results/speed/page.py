"""Tables of ../speed.md, from the runs that `python -m benchmarks.peers` wrote."""

from pathlib import Path

import pandas as pd
from layout import table

from benchmarks.peers.rows import EXACT, WINDOWED, Cell, cells, difference
from benchmarks.peers.simulators import EASY, FCFS, OURS, SERIAL, SIMULATORS

ROWS = Path(__file__).resolve().parent / "peers.csv"
Cells = dict[tuple[str, int, int, str], Cell]
BASE, FEW, OF_SERIAL = 100, 1_000, 10


def rate(value: float) -> str:
    """Return a rate with two digits.

    >>> rate(1234.0), rate(0.1234), rate(56_789.0)
    ('1,200', '0.12', '57,000')
    """
    return f"{float(f'{value:.2g}'):,.10g}"


def _shown(found: Cells, key: tuple[str, int, int, str]) -> str:
    """Return jobs per second; empty where a smaller size had been stopped."""
    cell = found.get(key)
    return "" if cell is None else rate(cell.jobs_per_s) if cell.finished else "stopped"


def _peak_and_mean(name: str, done: dict[tuple[int, int], Cell], found: Cells, rule: str) -> list[str]:
    """Return the peak memory of the largest finished size, and the difference of the mean wait at the first."""
    if not done:
        return ["", ""]
    if name == WINDOWED:
        return [rate(max(cell.peak_mib for cell in done.values())), "of windows"]
    both = [size for size in done if (rule, *size, EXACT) in found]
    words = [difference(done[size].mean, found[rule, *size, EXACT].mean) for size in both]
    return [
        rate(max(cell.peak_mib for cell in done.values())),
        next((word for word in words if word != "same"), "same"),
    ]


def _queues(rule: str, sizes: list[tuple[int, int]], words: list[str]) -> str:
    found, lines = cells(pd.read_csv(ROWS)), []
    for name, entry in SIMULATORS.items():
        mine = {size: found[rule, *size, name] for size in sizes if (rule, *size, name) in found}
        done = {size: cell for size, cell in mine.items() if cell.finished}
        if mine:
            rates = [_shown(found, (rule, *size, name)) for size in sizes]
            lines.append([entry.words, *rates, *_peak_and_mean(name, done, found, rule)])
    return table(["jobs per second", *words, "MiB", "mean wait"], lines)


def fcfs() -> str:
    """Return order of arrival, by jobs and by machines."""
    sizes = [(1_000, BASE), (10_000, BASE), (100_000, BASE), (1_000_000, BASE), (FEW, 10), (FEW, 1_000), (FEW, 10_000)]
    words = ["10³ jobs", "10⁴", "10⁵", "10⁶", "10 machines", "10³", "10⁴"]
    return _queues(FCFS, sizes, words)


def easy() -> str:
    """Return order of arrival with EASY backfilling."""
    return _queues(EASY, [(10**power, BASE) for power in (3, 4, 5)], ["10³ jobs", "10⁴", "10⁵"])


def serial() -> str:
    """Return jobs of one machine."""
    return _queues(SERIAL, [(10**power, OF_SERIAL) for power in (3, 4)], ["10³ jobs", "10⁴"])


def environments() -> str:
    """Return environments on DeepRM's jobs, then those of RLScheduler's protocol."""
    found, lines = cells(pd.read_csv(ROWS)), []
    for (rule, *_, name), cell in found.items():
        if rule in OURS:
            same = difference(cell.mean, next(of for key, of in found.items() if key[::3] == (rule, OURS[rule])).mean)
            rates = [rate(cell.decisions_per_s), rate(cell.jobs_per_s), rate(cell.peak_mib)]
            lines.append([SIMULATORS[name].words, *rates, f"{cell.mean:.2f} ({same})"])
    return table(["environment", "decisions per second", "jobs per second", "MiB", "mean slowdown"], lines)


TABLES = {"fcfs": fcfs, "easy": easy, "serial": serial, "environments": environments}
