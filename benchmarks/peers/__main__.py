"""Measure all simulators: `python -m benchmarks.peers --checkouts DIR` (docs/results/speed.md).

DIR has checkouts of the peers that are not on PyPI (`CHECKOUTS` in simulators.py); a peer that cannot be installed is
listed with the reason. Every run is a separate process. Runs of the same size take turns. After a size on which a
simulator exceeds the limit of processor time, larger ones are skipped. Our simulators are compiled beforehand.
"""

import argparse
import csv
import sys
import tempfile
from pathlib import Path

import pandas as pd

from benchmarks.peers.drivers.run_our_environment import write
from benchmarks.peers.rows import COLUMNS, disagreements
from benchmarks.peers.running import Run, run
from benchmarks.peers.simulators import EASY, FCFS, MISSING, PICKS, SERIAL, SIMULATORS, SJF, Ready, prepare
from benchmarks.peers.workload import draw, write_swf

OUT = Path(__file__).resolve().parents[2] / "docs" / "results" / "speed" / "peers.csv"
JOBS, MACHINES = (1_000, 10_000, 100_000, 1_000_000), (10, 1_000, 10_000)
BASE = 100  # machines of the first axis
OF_MACHINES, OF_SERIAL, JOBSETS = 1_000, 10, 20
RUNS, SHORT_S = 3, 5.0  # a run that takes longer is not repeated
COMPILING_S = 1800


def sizes() -> list[tuple[str, int, int]]:
    """Return rules, jobs and machines; smaller ones first."""
    fcfs = [(FCFS, jobs, BASE) for jobs in JOBS] + [(FCFS, OF_MACHINES, machines) for machines in MACHINES]
    others = [(EASY, jobs, BASE) for jobs in JOBS[:3]] + [(SERIAL, jobs, OF_SERIAL) for jobs in JOBS[:2]]
    return [*sorted([*fcfs, *others], key=lambda size: size[1] * size[2]), (SJF, JOBSETS, 1), (PICKS, JOBS[1], BASE)]


def larger(rule: str, jobs: int, machines: int, late: set[tuple[str, int, int]]) -> bool:
    """Return whether a size is at least as large as one that took too long.

    >>> larger("fcfs", 10_000, 100, {("fcfs", 1_000, 100)}), larger("easy", 10_000, 100, {("fcfs", 1_000, 100)})
    (True, False)
    """
    return any(rule == other and jobs >= most and machines >= size for other, most, size in late)


def compile_ours(ready: dict[str, Ready], folder: Path) -> None:
    """Run a few jobs in each of our simulators, whose compiled code is stored."""
    for name in (name for name in ready if SIMULATORS[name].mine is not None):
        for rule in SIMULATORS[name].rules:
            path = folder / f"{rule}.npz"
            if rule == SJF:
                write(path, 1)
            else:
                write_swf(path, draw(2_000 if rule == PICKS else 20, 4), 4)
            run(ready[name], [str(path), FCFS if rule == SERIAL else rule], COMPILING_S)


def measure(ready: dict[str, Ready], limit_s: int, runs: int, folder: Path, rows: "csv.DictWriter[str]") -> None:
    """Write a row for every run."""
    late: dict[str, set[tuple[str, int, int]]] = {name: set() for name in ready}
    for rule, jobs, machines in sizes():
        path = folder / f"{rule}_{jobs}_{machines}"
        if rule == SJF:
            path = path.with_suffix(".npz")
            write(path, jobs)
        else:
            write_swf(path, draw(jobs, machines, rule == SERIAL), machines)
        names = [
            name for name in ready if rule in SIMULATORS[name].rules and not larger(rule, jobs, machines, late[name])
        ]
        for turn in range(runs):
            for name in list(names):
                found = run(ready[name], [str(path), FCFS if rule == SERIAL else rule], limit_s)
                print(f"{rule}, {jobs:,} jobs, {machines:,} machines, {name}: {found}", file=sys.stderr)
                rows.writerow(_row(rule, jobs, machines, name, turn, found))
                if found.cpu_s is None:
                    late[name].add((rule, jobs, machines))
                if found.cpu_s is None or found.cpu_s > SHORT_S:
                    names.remove(name)
        path.unlink()


def _row(rule: str, jobs: int, machines: int, name: str, turn: int, found: Run) -> dict[str, object]:
    numbers = (None if value is None else float(f"{value:.4g}") for value in found[2:])
    base = (rule, jobs, machines, name, turn, int(found.cpu_s is not None), found.done, found.decisions)
    return dict(zip(COLUMNS, (*base, *numbers), strict=True))


def main() -> int:
    """Install, measure, and print where means differ."""
    parser = argparse.ArgumentParser(description="Measure our simulators and others.")
    parser.add_argument("--checkouts", type=Path, required=True, help="Folder of the peers' repositories.")
    parser.add_argument("--work", type=Path, help="Folder that keeps installed peers (default: a temporary one).")
    parser.add_argument("--limit", type=int, default=60, help="Processor seconds of a run (default: 60).")
    parser.add_argument("--runs", type=int, default=RUNS, help="Runs of a short size (default: 3).")
    parser.add_argument("--only", nargs="+", choices=SIMULATORS, default=list(SIMULATORS), help="Simulators to run.")
    parser.add_argument("--out", type=Path, default=OUT, help="Raw numbers.")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        work = (asked.work or Path(folder)).resolve()
        work.mkdir(parents=True, exist_ok=True)
        found = {name: prepare(name, asked.checkouts.resolve(), work) for name in asked.only}
        ready = {name: one for name, one in found.items() if isinstance(one, Ready)}
        missing = {SIMULATORS[name].words: one for name, one in found.items() if isinstance(one, str)} | MISSING
        print("".join(f"not available: {words}: {reason}\n" for words, reason in missing.items()), end="")
        with asked.out.open("w", encoding="utf-8", newline="", buffering=1) as file:
            rows = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            rows.writeheader()
            compile_ours(ready, Path(folder))
            measure(ready, asked.limit, asked.runs, Path(folder), rows)
    print(*disagreements(pd.read_csv(asked.out)), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
