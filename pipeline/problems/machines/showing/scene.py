"""What is drawn of a jobset: which time, which machines, and what is said of each policy."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pipeline.core import BoolArray, IntArray
from pipeline.errors import UserError
from pipeline.problems.machines.nouns import Jobs, Machines
from pipeline.problems.machines.showing.lanes import MOST_LANES
from pipeline.problems.machines.showing.watching import Trace

MOST_JOBS = 1500  # that are still legible in one picture


class Scene(NamedTuple):
    """What is drawn, beside the traces."""

    title: str
    jobs: Jobs
    names: Sequence[str]  # [J]  of jobs
    machines: Machines
    resources: Sequence[str]


class Window(NamedTuple):
    """The time from `begin` to `end`, which is drawn."""

    begin: float
    end: float


def window(jobs: Jobs, traces: Sequence[Trace], begin: int | None, end: int | None) -> Window:
    """Return the time to draw: what is asked for, or all from the first arrival to the end.

    Raises:
        UserError: nothing happens in it, or more than one picture can hold.
    """
    first, last = float(jobs.arrival.min()), max(trace.end for trace in traces)
    chosen = Window(first if begin is None else begin, last if end is None else end)
    whole = f"the jobset goes from {first:.10g} to {last:.10g}"
    if not chosen.begin < chosen.end or chosen.begin >= last or chosen.end <= first:
        raise UserError(f"time {chosen.begin:.10g} to {chosen.end:.10g}: nothing to draw; {whole}")
    running = max(int(inside(trace, chosen).sum()) for trace in traces)
    if running > MOST_JOBS:
        raise UserError(
            f"{running:,} jobs are too many for one picture (at most {MOST_JOBS:,}); {whole}: choose a part by "
            "--from and --to"
        )
    return chosen


def inside(trace: Trace, shown: Window) -> BoolArray:
    """Return which jobs [J] run in the window."""
    return np.asarray((trace.start < shown.end) & (trace.finish > shown.begin))


def drawn_machines(scene: Scene, traces: Sequence[Trace], shown: Window) -> IntArray:
    """Return the machines that get a lane, by number: all, or of too many those busiest in the window."""
    number = len(scene.machines.kind)
    busy = np.zeros(number)
    for trace in traces:
        length = np.minimum(trace.finish, shown.end) - np.maximum(trace.start, shown.begin)
        for job in np.flatnonzero(inside(trace, shown)).tolist():
            busy[trace.machines(job)] += length[job]
    return np.asarray(np.sort(np.argsort(-busy, kind="stable")[:MOST_LANES]))


def described(trace: Trace) -> str:
    """Return the title of one policy's half, which is also the picture in words."""
    cut = f", {trace.unfinished} jobs unfinished" if trace.unfinished else ""
    return (
        f"{trace.policy}: mean slowdown {trace.slowdown.mean():.2f}, worst {trace.slowdown.max():.1f}, "
        f"mean wait {trace.wait:.4g}{cut}"
    )
