"""Run the measurements one after the other and report progress."""

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from rich.console import Console

from benchmarks import (
    convolution,
    deployed,
    environments,
    executing,
    growth,
    iteration,
    knapsack,
    lookahead,
    lookahead_machines,
    machines,
    search,
    sharing,
    simulation,
    streams,
)
from benchmarks.child import WARM, measured
from benchmarks.engine import hold_to
from benchmarks.measure import ProgressCallback
from benchmarks.names import NAMES
from benchmarks.record import Row, slower, write_figures
from benchmarks.sizes import FULL, QUICK, Sizes
from benchmarks.table import show
from pipeline.errors import UserError
from pipeline.progress import say

SAY_EVERY_S = 10.0
WIDTH = 200  # columns of the table without a terminal

Bench = Callable[[int, Sizes, ProgressCallback], Iterator[Row]]


def run(names: Sequence[str], runs: int, threads: int, out: Path, strict: bool, quick: bool, times: float = 1.0) -> int:
    """Measure, print and write; return the exit code. `times` multiplies our times, to see which targets then fail.

    Raises:
        UserError: a measurement is impossible; earlier measurements are still printed and written.
    """
    hold_to(threads)
    say("compile")
    for path in ("ours", "described"):
        measured(path, [WARM], iterations=1)
    rows: list[Row] = []
    failed: UserError | None = None
    try:
        for name in (name for name in NAMES if name in names):
            rows += BENCHES[name](runs, QUICK if quick else FULL, teller(name))
    except UserError as error:
        failed = error
    if failed and not rows:
        raise failed
    if times != 1:
        rows = [row._replace(figure=slower(row.figure, times)) for row in rows]
        say(f"as if ours were {times:g} times slower: all figures of time are hypothetical")
    console = Console()
    show(rows, console if console.is_terminal else Console(width=WIDTH))
    write_figures(out, [row.figure for row in rows])
    missed = [row.figure.name for row in rows if row.figure.holds is False]
    asked = sum(row.figure.holds is not None for row in rows)
    if failed:
        say(f"{name} could not be measured; later measurements were skipped")
    said = f"NOT reached ({len(missed)} of {asked}): {'; '.join(missed)}" if missed else "all targets hold"
    say(f"{out}: {len(rows)} figures; {said}")
    if failed:
        raise failed
    return 1 if strict and missed else 0


def teller(name: str) -> ProgressCallback:
    """Return a callback that reports the progress of a measurement now and then."""
    begun = time.monotonic()
    said = begun - SAY_EVERY_S

    def on_progress(what: str) -> None:
        nonlocal said
        now = time.monotonic()
        if now - said >= SAY_EVERY_S:
            said = now
            say(f"{name}: {what}, after {now - begun:.0f} s")

    return on_progress


BENCHES: dict[str, Bench] = {
    "iteration": iteration.run,
    "memory": iteration.run_larger,
    "simulator": simulation.run,
    "cnn": convolution.run,
    "decision": deployed.run,
    "heuristics": streams.run,
    "machines": machines.run,
    "knapsack": knapsack.run,
    "sharing": sharing.run,
    "environments": environments.run,
    "search": search.run,
    "lookahead": lookahead.run,
    "lookahead_machines": lookahead_machines.run,
    "executor": executing.run,
    "growth": growth.run,
}
