"""One jobset under two policies side by side: who runs where, who waits, and who was withheld.

Colours are matplotlib's cividis and Okabe and Ito's vermilion, which colour-blind readers can tell apart; what is
withheld is hatched as well.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from pipeline.core import IntArray
from pipeline.problems.pool.showing.rows import Block, blocks
from pipeline.problems.pool.showing.scene import Scene, Window, described, late_jobs, left_slot
from pipeline.problems.pool.showing.watching import Trace, waiting

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable
    from matplotlib.figure import Figure

WIDTH, GANTT, QUEUE, LINE = 14.0, 2.3, 1.4, 0.085  # inches; of a waiting job's line the last
POINTS = 0.42 * WIDTH * 72  # about, across the axes of one policy
NUMBER = 6.0  # points of a job's number
WITHHELD = "#D55E00"
SLOTS, BEHIND = "#9FB6CF", "#3B5B7E"
CAPTION = (
    "Each rectangle is a job on the units that it holds, with its number; the darker, the longer it runs. Rows only "
    "serve the picture: the cluster is one pool.\nBelow: jobs that wait in the slots and behind them; then each job "
    "that waits, from its arrival to its start. Hatched: it stood in a slot and fitted, but the policy withheld it."
)


def side_by_side(scene: Scene, traces: Sequence[Trace], shown: Window) -> "Figure":
    """Draw each policy as a column; rows of the picture share their axes."""
    from matplotlib.figure import Figure

    late, waits = late_jobs(scene.jobs, traces, shown)
    heights = [*[GANTT] * len(scene.resources), QUEUE, max(0.8, LINE * len(late))]
    figure = Figure(figsize=(WIDTH, sum(heights) + 2.6), layout="constrained")
    grid = figure.subplots(len(heights), len(traces), sharex=True, sharey="row", squeeze=False, height_ratios=heights)
    shade = _shade(int(scene.jobs.duration.max()))
    most = 1.4 * max(int(_queued(scene, trace, shown).max()) for trace in traces)  # room for the legend
    for column, trace in enumerate(traces):
        for r, units in enumerate(scene.resources.values()):
            placed = blocks(trace.start, trace.finish, scene.jobs.demand[:, r], units)
            _gantt(grid[r, column], scene, placed, units, shown, shade)
        _queue(grid[-2, column], scene, trace, shown, max(1.4, most))
        _lines(grid[-1, column], scene, trace, late, shown, shade)
        grid[0, column].set_title(described(trace), loc="left", fontsize=10)
        grid[-1, column].set_xlabel("Step")
    lines = "Waiting jobs" if len(late) == waits else f"{len(late)} of {waits} waiting jobs"
    for row, label in enumerate([*(f"{name} (units)" for name in scene.resources), "Jobs waiting", lines]):
        grid[row, 0].set_ylabel(label)
    _frame(figure, grid, scene, shown, shade)
    return figure


def _shade(longest: int) -> "ScalarMappable":
    """Return the colour of a duration; the palest end of the map, which paper swallows, is left out."""
    from matplotlib import colormaps
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import ListedColormap, Normalize

    return ScalarMappable(
        Normalize(1, max(2, longest)), ListedColormap(colormaps["cividis_r"](np.linspace(0.12, 1, 256)))
    )


def _frame(figure: "Figure", grid: "np.ndarray", scene: Scene, shown: Window, shade: "ScalarMappable") -> None:
    for axes in grid.flat:
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(labelsize=8)
    grid[0, 0].set_xlim(shown.begin, shown.end)
    grid[0, 0].ticklabel_format(axis="x", useOffset=False, style="plain")
    grid[-2, 0].legend(loc="upper right", fontsize=8, frameon=False, ncols=3)
    figure.suptitle(scene.title, x=0.01, ha="left", fontsize=12, fontweight="bold")
    bar = figure.colorbar(shade, ax=list(grid.flat), location="bottom", shrink=0.35, aspect=45, pad=0.02)
    bar.set_label("Duration of a job (steps)", fontsize=8)
    bar.ax.tick_params(labelsize=8)
    figure.supxlabel(CAPTION, x=0.01, ha="left", fontsize=8)


def _gantt(
    axes: "Axes", scene: Scene, placed: Sequence[Block], units: int, shown: Window, shade: "ScalarMappable"
) -> None:
    from matplotlib.patches import Rectangle

    axes.set_ylim(0, units)
    for block in placed:
        begin, end = max(block.begin, shown.begin), min(block.end, shown.end)
        if begin >= end:
            continue
        colour = shade.to_rgba(scene.jobs.duration[block.job])
        axes.add_patch(
            Rectangle((begin, block.row), end - begin, block.units, facecolor=colour, edgecolor="white", linewidth=0.6)
        )
        name = scene.names[block.job]
        if _has_room(name, end - begin, block.units / units, shown):
            axes.text(
                (begin + end) / 2, block.row + block.units / 2, name, ha="center", va="center", fontsize=NUMBER,
                color="white" if sum(colour[:3]) < 1.5 else "black",
            )  # fmt: skip


def _has_room(name: str, steps: int, height: float, shown: Window) -> bool:
    wide = steps * POINTS / (shown.end - shown.begin)
    return wide > NUMBER * (0.65 * len(name) + 0.3) and height * GANTT * 72 > 1.2 * NUMBER


def _queued(scene: Scene, trace: Trace, shown: Window) -> IntArray:
    queue = waiting(scene.jobs, trace.left, shown.steps)
    return np.where(shown.steps < trace.steps, queue, 0)  # nobody waits for what is over


def _queue(axes: "Axes", scene: Scene, trace: Trace, shown: Window, most: float) -> None:
    from matplotlib.ticker import MaxNLocator

    queue = _queued(scene, trace, shown)
    edges = np.arange(shown.begin, shown.end + 1)
    inside = np.minimum(queue, scene.slots)
    axes.stairs(inside, edges, fill=True, color=SLOTS, label="in slots")
    axes.stairs(queue, edges, baseline=inside, fill=True, color=BEHIND, label="behind them")
    marked = sorted({step for steps in trace.withheld for step in steps} & set(shown.steps.tolist()))
    rows = [(step, 1) for step in marked]
    axes.broken_barh(rows, (0, 0.06), transform=axes.get_xaxis_transform(), color=WITHHELD, label="a job is withheld")
    axes.set_ylim(0, most)
    axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))


def _lines(
    axes: "Axes", scene: Scene, trace: Trace, late: Sequence[int], shown: Window, shade: "ScalarMappable"
) -> None:
    left = left_slot(trace)
    for line, job in enumerate(late):
        begin, end = max(int(scene.jobs.arrival[job]), shown.begin), min(int(left[job]), shown.end)
        if begin < end:
            axes.barh(line, end - begin, 0.55, begin, color=shade.to_rgba(scene.jobs.duration[job]), linewidth=0)
        spans = [(at, length) for at, length in _spans(trace.withheld[job]) if shown.begin <= at < shown.end]
        axes.broken_barh(
            spans, (line - 0.45, 0.9), facecolor="white", edgecolor=WITHHELD, hatch="//////", linewidth=0.7
        )
    axes.set_ylim(max(len(late), 1) - 0.4, -0.6)
    each = 1 if len(late) < 8 else 2
    axes.set_yticks(range(0, len(late), each), [scene.names[job] for job in late[::each]])
    axes.grid(axis="x", color="#E5E5E5", linewidth=0.6)
    axes.set_axisbelow(True)


def _spans(steps: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Return (first, length) of each run of consecutive steps.

    >>> list(_spans([3, 4, 5, 9]))
    [(3, 3), (9, 1)]
    """
    runs = np.split(np.array(steps, dtype=np.int64), np.flatnonzero(np.diff(steps) > 1) + 1)
    return ((int(run[0]), len(run)) for run in runs if len(run))
