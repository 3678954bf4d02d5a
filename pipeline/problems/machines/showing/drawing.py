"""One jobset under two policies side by side: which machine runs what, and how many jobs wait.

Colours are matplotlib's cividis, which colour-blind readers can tell apart.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from pipeline.core import FloatArray, IntArray
from pipeline.problems.machines.showing.lanes import THINNEST, Bar, bars, dominant
from pipeline.problems.machines.showing.scene import Scene, Window, described, drawn_machines, inside
from pipeline.problems.machines.showing.watching import Trace, waiting

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable
    from matplotlib.figure import Figure

WIDTH, QUEUE = 14.0, 1.6  # inches
HIGHEST, ALL_LANES = 0.9, 9.0  # inches of a lane at most, of all of them at most
POINTS = 0.42 * WIDTH * 72  # about, across the axes of one policy
NUMBER = 6.0  # points of a job's number
GAP = 0.12  # of a lane, between it and the next
SLOTS, BEHIND = "#9FB6CF", "#3B5B7E"


def side_by_side(scene: Scene, traces: Sequence[Trace], shown: Window) -> "Figure":
    """Draw each policy as a column; rows of the picture share their axes."""
    from matplotlib.figure import Figure

    lanes = drawn_machines(scene, traces, shown)
    high = min(HIGHEST, ALL_LANES / len(lanes)) * len(lanes)
    figure = Figure(figsize=(WIDTH, high + QUEUE + 2.2), layout="constrained")
    grid = figure.subplots(
        2, len(traces), sharex=True, sharey="row", squeeze=False, height_ratios=[max(high, 1.0), QUEUE]
    )
    shade = _shade(max(float(trace.slowdown[inside(trace, shown)].max(initial=1.0)) for trace in traces))
    for column, trace in enumerate(traces):
        _machines(grid[0, column], scene, trace, lanes, shown, shade)
        _queue(grid[1, column], scene, trace, shown)
        grid[0, column].set_title(described(trace), loc="left", fontsize=10)
        grid[1, column].set_xlabel("Time")
    _frame(figure, grid, scene, lanes, shown, shade)
    return figure


def _shade(worst: float) -> "ScalarMappable":
    """Return the colour of a slowdown; the palest end of the map, which paper swallows, is left out."""
    from matplotlib import colormaps
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import ListedColormap, LogNorm

    pale = ListedColormap(colormaps["cividis_r"](np.linspace(0.12, 1, 256)))
    return ScalarMappable(LogNorm(1, max(2.0, worst)), pale)


def _frame(
    figure: "Figure", grid: "np.ndarray", scene: Scene, lanes: IntArray, shown: Window, shade: "ScalarMappable"
) -> None:
    for axes in grid.flat:
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(labelsize=8)
    first, there = grid[0, 0], len(scene.machines.kind)
    first.set_xlim(shown.begin, shown.end)
    first.ticklabel_format(axis="x", useOffset=False, style="plain")
    first.set_ylim(len(lanes), 0)
    first.set_yticks(np.arange(len(lanes)) + 0.5, [str(k) for k in lanes])
    left_out = (
        f": the {len(lanes)} busiest of {there}; {there - len(lanes)} are not drawn" if there > len(lanes) else ""
    )
    first.set_ylabel(f"Machine{left_out}")
    grid[1, 0].set_ylim(bottom=0)
    grid[1, 0].set_ylabel("Jobs waiting")
    grid[1, 0].legend(loc="upper right", fontsize=8, frameon=False, ncols=2)
    figure.suptitle(scene.title, x=0.01, ha="left", fontsize=12, fontweight="bold")
    bar = figure.colorbar(shade, ax=list(grid.flat), location="bottom", shrink=0.35, aspect=45, pad=0.02)
    bar.set_label("Slowdown of a job", fontsize=8)
    bar.ax.tick_params(labelsize=8)
    bar.ax.xaxis.set_major_formatter("{x:g}")
    figure.supxlabel(_caption(scene, lanes), x=0.01, ha="left", fontsize=8)


def _caption(scene: Scene, lanes: IntArray) -> str:
    names = [scene.resources[r] for r in sorted(set(dominant(scene.jobs, scene.machines)[lanes].tolist()))]
    return (
        f"Each lane is a machine. Each rectangle is a job on it: as high as its share of the machine's "
        f"{' or '.join(names)}, of which jobs want most; the darker, the larger its slowdown.\n"
        "A job on several machines stands in the lane of each. Places within a lane only serve the picture. "
        "Below: jobs that wait in the slots and behind them."
    )


def _machines(
    axes: "Axes", scene: Scene, trace: Trace, lanes: IntArray, shown: Window, shade: "ScalarMappable"
) -> None:
    from matplotlib.collections import PolyCollection

    on: dict[int, list[int]] = {int(k): [] for k in lanes}
    for job in np.flatnonzero(inside(trace, shown)).tolist():
        for k in trace.machines(job):
            on.get(int(k), []).append(job)
    share, corners, colours = dominant(scene.jobs, scene.machines), [], []
    for lane, (k, jobs) in enumerate(on.items()):
        amount = scene.jobs.demand[jobs, share[k]] / max(int(scene.machines.capacity[k, share[k]]), 1)
        for bar in bars(trace.start[jobs], trace.finish[jobs], amount):
            job, box = jobs[bar.job], _box(bar, lane, shown)
            corners.append(box[[[0, 2], [1, 2], [1, 3], [0, 3]]])
            colours.append(shade.to_rgba(trace.slowdown[job]))
            _number(axes, scene.names[job], box, shown, len(lanes), sum(colours[-1][:3]) < 1.5)
        axes.axhline(lane + 1, color="#BBBBBB", linewidth=0.5, zorder=0)
    axes.add_collection(PolyCollection(corners, facecolors=colours, edgecolors="white", linewidths=0.3))


def _box(bar: Bar, lane: int, shown: Window) -> FloatArray:
    """Return left, right, lower and upper edge; lanes go downwards, what is in them upwards."""
    floor, room = lane + 1 - GAP / 2, 1 - GAP
    top = min(bar.bottom + max(bar.height, THINNEST), 1.0)
    left, right = max(bar.begin, shown.begin), min(bar.end, shown.end)
    return np.array([left, right, floor - room * bar.bottom, floor - room * top])


def _number(axes: "Axes", name: str, box: FloatArray, shown: Window, lanes: int, dark: bool) -> None:
    """Write a job's number where there is room."""
    wide = (box[1] - box[0]) * POINTS / (shown.end - shown.begin)
    high = (box[2] - box[3]) * min(HIGHEST, ALL_LANES / lanes) * 72
    if wide > NUMBER * (0.65 * len(name) + 0.3) and high > 1.2 * NUMBER:
        colour = "white" if dark else "black"
        middle = (box[0] + box[1]) / 2, (box[2] + box[3]) / 2
        axes.text(*middle, name, ha="center", va="center", fontsize=NUMBER, color=colour)


def _queue(axes: "Axes", scene: Scene, trace: Trace, shown: Window) -> None:
    from matplotlib.ticker import MaxNLocator

    times, queue = waiting(scene.jobs, trace)
    kept = (times > shown.begin) & (times < shown.end)
    before = queue[np.searchsorted(times, shown.begin, side="right") - 1] if times[0] <= shown.begin else 0
    edges = np.concatenate([[shown.begin], times[kept], [shown.end]])
    number = np.concatenate([[before], queue[kept]])
    slots = np.minimum(number, scene.machines.slots)
    axes.stairs(slots, edges, fill=True, color=SLOTS, label="in slots")
    axes.stairs(number, edges, baseline=slots, fill=True, color=BEHIND, label="behind them")
    axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))
