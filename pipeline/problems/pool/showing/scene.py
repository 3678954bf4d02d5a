"""What one picture holds: the jobset, the steps that are drawn, and the jobs that get a line of their own."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from pipeline.core import IntArray
from pipeline.errors import UserError
from pipeline.problems.pool.nouns import JobSet
from pipeline.problems.pool.showing.watching import Trace

MOST_STEPS, MOST_JOBS, MOST_LINES = 400, 600, 100  # that are still legible in one picture


class Scene(NamedTuple):
    """What is drawn, beside the traces."""

    title: str
    jobs: JobSet
    names: Sequence[str]  # [J]  of jobs
    resources: Mapping[str, int]  # units of each
    slots: int


class Window(NamedTuple):
    """The steps [begin, end) that are drawn."""

    begin: int
    end: int

    @property
    def steps(self) -> IntArray:
        """Return them all."""
        return np.arange(self.begin, self.end)


def window(jobs: JobSet, traces: Sequence[Trace], begin: int | None, end: int | None) -> Window:
    """Return the steps to draw: those asked for, or all from the first arrival to the last finish.

    Raises:
        UserError: nothing happens in them, or more than one picture can hold.
    """
    first, last = int(jobs.arrival.min()), max(trace.steps for trace in traces)
    chosen = Window(first if begin is None else begin, last if end is None else end)
    whole = f"the jobset runs from step {first} to {last}"
    if not first <= chosen.begin < chosen.end or chosen.begin >= last:
        raise UserError(f"steps {chosen.begin} to {chosen.end}: nothing to draw; {whole}")
    running = max(
        int(((trace.start >= 0) & (trace.start < chosen.end) & (trace.finish > chosen.begin)).sum()) for trace in traces
    )
    if chosen.end - chosen.begin > MOST_STEPS or running > MOST_JOBS:
        raise UserError(
            f"{chosen.end - chosen.begin} steps in which {running} jobs run are too many for one picture (at most "
            f"{MOST_STEPS} and {MOST_JOBS}); {whole}: choose a part by --from and --to"
        )
    return chosen


def described(trace: Trace) -> str:
    """Return the title of one policy's half, which is also the picture in words."""
    share = trace.withheld_steps / max(trace.steps, 1)
    cut = f", {trace.unfinished} jobs unfinished" if trace.unfinished else ""
    return (
        f"{trace.policy}: mean slowdown {trace.slowdown:.2f}, makespan {trace.steps}{cut}\n"
        f"{trace.withheld_steps} steps not work-conserving ({100 * share:.0f} %), {trace.withheld_jobs} jobs withheld"
    )


def late_jobs(jobs: JobSet, traces: Sequence[Trace], shown: Window) -> tuple[list[int], int]:
    """Return the jobs that wait in the window under any policy, in order of arrival, and how many there are.

    Of too many, those stay that are withheld, and those that wait longest.
    """
    waits, held = np.zeros(len(jobs.arrival), dtype=np.int64), np.zeros(len(jobs.arrival), dtype=bool)
    for trace in traces:
        inside = np.minimum(left_slot(trace), shown.end) - np.maximum(jobs.arrival, shown.begin)
        waits = np.maximum(waits, inside)
        held |= [any(shown.begin <= step < shown.end for step in steps) for steps in trace.withheld]
    found = np.flatnonzero(waits > 0)
    kept = found[np.lexsort((-waits[found], ~held[found]))][:MOST_LINES]
    return sorted(kept.tolist()), len(found)


def left_slot(trace: Trace) -> IntArray:
    """Return the step [J] in which each job left its slot, or where the episode ended."""
    return np.asarray(np.where(trace.left < 0, trace.steps, trace.left))
