"""Results of policies that place jobs, and the picture of their queues."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pipeline.core.types import BoolArray, FloatArray, IntArray, TimeArray
from pipeline.interactive.showing.drawing import Grid, Row, Window, whole_ticks
from pipeline.interactive.showing.show import Watched

if TYPE_CHECKING:
    from matplotlib.axes import Axes

QUEUE = 1.5  # inches
ROOM = 1.4  # times the longest queue, for the legend
SLOTS, BACKLOG = "#9FB6CF", "#3B5B7E"


class Trace(NamedTuple):
    """One policy's schedule of a jobset."""

    policy: str  # its name for people
    start: FloatArray  # [J]  nan = never started
    finish: FloatArray  # [J]  of an unfinished job, where the episode was cut
    left: FloatArray  # [J]  when it left its slot: its start, unless placed ahead; nan = never
    slowdown: FloatArray  # [J]  of an unfinished job, the lower bound
    end: float  # of the episode
    unfinished: int  # jobs
    said: Callable[["Trace"], str]  # the result as text, after the mean slowdown
    withheld: Sequence[Sequence[int]] = ()  # [J]  steps in which it was withheld, if recorded
    machines: Callable[[int], IntArray] = lambda job: np.zeros(0, dtype=np.int64)  # of a job; none if it never started

    @property
    def cut(self) -> str:
        """Return a phrase on unfinished jobs, if there are any."""
        return f", {self.unfinished} jobs unfinished" if self.unfinished else ""

    @property
    def withheld_steps(self) -> int:
        """Return the number of steps that were not work-conserving."""
        return len({step for steps in self.withheld for step in steps})

    @property
    def withheld_jobs(self) -> int:
        """Return the number of jobs that were ever withheld."""
        return sum(1 for steps in self.withheld if steps)


def watched(traces: Sequence[Trace], arrival: TimeArray, grid: Callable[[Window], Grid]) -> Watched:
    """Return the results of policies on jobs with given arrivals [J]."""
    return Watched(
        [f"{trace.policy}: mean slowdown {trace.slowdown.mean():.2f}, {trace.said(trace)}" for trace in traces],
        [float(trace.slowdown.mean()) for trace in traces],
        float(arrival.min()),
        max(trace.end for trace in traces),
        lambda shown: max(int(inside(trace, shown).sum()) for trace in traces),
        grid,
    )


def inside(trace: Trace, shown: Window) -> BoolArray:
    """Return which jobs [J] run in the window."""
    return np.asarray((trace.start < shown.end) & (trace.finish > shown.begin))


def until(arrival: TimeArray, trace: Trace) -> FloatArray:
    """Return the end of each job's wait [J], at the latest the end of the episode."""
    return np.where(np.isnan(trace.left), np.maximum(arrival, trace.end), trace.left)


def queued(arrival: TimeArray, trace: Trace, shown: Window) -> tuple[FloatArray, IntArray]:
    """Return the times in a window between which the length of the queue is constant, and these lengths.

    >>> start, none = np.array([0.0, 1.0, 2.5, np.nan]), np.zeros(4)
    >>> trace = Trace("sjf", start, none, start, none, 4.0, 1, str)
    >>> [column.tolist() for column in queued(np.array([0.0, 1.0, 1.0, 2.0]), trace, Window(0.0, 3.0))]
    [[0.0, 1.0, 2.0, 2.5, 3.0], [0, 1, 2, 1]]
    """
    left = np.sort(until(arrival, trace))
    changes = np.unique(np.concatenate([arrival, left]))
    inner = changes[(changes > shown.begin) & (changes < shown.end)]
    edges = np.concatenate([[shown.begin], inner, [shown.end]])
    come, gone = (np.searchsorted(times, edges[:-1], side="right") for times in (arrival, left))
    return edges, np.asarray(come - gone)


def queue_row(
    arrival: TimeArray,
    traces: Sequence[Trace],
    slots: int,
    shown: Window,
    mark: Callable[["Axes", Trace], None] | None = None,
) -> Row:
    """Return the row of waiting jobs; `mark` adds a problem's own elements."""
    most = ROOM * max(1, *(queued(arrival, trace, shown)[1].max() for trace in traces))

    def drawn(axes: "Axes", column: int) -> None:
        edges, number = queued(arrival, traces[column], shown)
        in_slots = np.minimum(number, slots)
        axes.stairs(in_slots, edges, fill=True, color=SLOTS, label="in slots")
        area = axes.stairs(number, edges, baseline=in_slots, fill=True, color=BACKLOG, label="in the backlog")
        area.set(hatch="///", edgecolor="white", linewidth=0)
        whole_ticks(axes)
        if mark is not None:
            mark(axes, traces[column])
        axes.set_ylim(0, most)
        if column == 0:
            axes.legend(loc="upper right", fontsize=8, frameon=False, ncols=3)

    return Row("Waiting (jobs)", QUEUE, drawn)
