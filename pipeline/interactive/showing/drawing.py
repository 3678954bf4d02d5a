"""The picture: a column for each policy, rows with common axes, and elements of rows.

Colours are matplotlib's cividis, which colour-blind readers can distinguish.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pipeline.core.types import FloatArray, IntArray, TimeArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize
    from matplotlib.figure import Figure

WIDTH = 14.0  # inches
POINTS = 0.42 * WIDTH * 72  # approximate width of one policy's axes
NUMBER = 6.0  # points of a job's number
NEARLY = 1e-9  # tolerance for equal amounts


class Window(NamedTuple):
    """The drawn time, from `begin` to `end`."""

    begin: float
    end: float


class Row(NamedTuple):
    """A row of the picture."""

    label: str
    height: float  # inches
    draw: Callable[["Axes", int], None]  # one policy, by its index


class Grid(NamedTuple):
    """The rows of all policies."""

    rows: Sequence[Row]
    unit: str  # of time
    caption: str
    room: float  # inches around the rows
    shade: "tuple[ScalarMappable, str] | None" = None  # meaning of colours


class Box(NamedTuple):
    """A rectangle: a job, or a part of it, while it runs."""

    job: int
    begin: float
    end: float
    bottom: float
    top: float


def side_by_side(title: str, halves: Sequence[str], grid: Grid, shown: Window) -> "Figure":
    """Draw each policy as a column; rows of the picture have common axes."""
    from matplotlib.figure import Figure

    heights = [row.height for row in grid.rows]
    figure = Figure(figsize=(WIDTH, sum(heights) + grid.room), layout="constrained")
    every = figure.subplots(len(heights), len(halves), sharex=True, sharey="row", squeeze=False, height_ratios=heights)
    for place, row in enumerate(grid.rows):
        for column, axes in enumerate(every[place]):
            row.draw(axes, column)
            axes.spines[["top", "right"]].set_visible(False)
            axes.tick_params(labelsize=8)
        every[place, 0].set_ylabel(row.label)
    for column, half in enumerate(halves):
        every[0, column].set_title(half, loc="left", fontsize=10)
        every[-1, column].set_xlabel(grid.unit)
    every[0, 0].set_xlim(shown.begin, shown.end)
    every[0, 0].ticklabel_format(axis="x", useOffset=False, style="plain")
    figure.suptitle(title, x=0.01, ha="left", fontsize=12, fontweight="bold")
    if grid.shade is not None:
        bar = figure.colorbar(grid.shade[0], ax=list(every.flat), location="bottom", shrink=0.35, aspect=45, pad=0.02)
        bar.set_label(grid.shade[1], fontsize=8)
        bar.ax.tick_params(labelsize=8)
        bar.ax.xaxis.set_major_formatter("{x:g}")
    figure.supxlabel(grid.caption, x=0.01, ha="left", fontsize=8)
    return figure


def shade(norm: "Normalize") -> "ScalarMappable":
    """Return a map of numbers to colours, without the palest end, which is invisible on paper."""
    from matplotlib import colormaps
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import ListedColormap

    return ScalarMappable(norm, ListedColormap(colormaps["cividis_r"](np.linspace(0.12, 1, 256))))


def boxes(
    axes: "Axes", found: Sequence[Box], names: Sequence[str], colours: FloatArray, shown: Window, points: float
) -> None:
    """Draw the jobs in the window, each with its name if there is room.

    Args:
        axes: to draw on.
        found: rectangles of jobs.
        names: [J] of jobs.
        colours: [J, 4] of jobs.
        shown: the window.
        points: height of a unit of the vertical axis, in points.
    """
    from matplotlib.collections import PolyCollection

    corners, faces = [], []
    for job, begin, end, bottom, top in found:
        left, right = max(begin, shown.begin), min(end, shown.end)
        if left >= right:
            continue
        corners.append([(left, bottom), (right, bottom), (right, top), (left, top)])
        faces.append(colours[job])
        wide = (right - left) * POINTS / (shown.end - shown.begin)
        if wide > NUMBER * (0.65 * len(names[job]) + 0.3) and abs(top - bottom) * points > 1.2 * NUMBER:
            middle, dark = ((left + right) / 2, (bottom + top) / 2), colours[job, :3].sum() < 1.5
            colour = "white" if dark else "black"
            axes.text(*middle, names[job], ha="center", va="center", fontsize=NUMBER, color=colour)
    axes.add_collection(PolyCollection(corners, facecolors=faces, edgecolors="white", linewidths=0.4))


def whole_ticks(axes: "Axes") -> None:
    """Mark only whole numbers."""
    from matplotlib.ticker import MaxNLocator

    axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))


def bars(start: TimeArray, finish: TimeArray, held: FloatArray | IntArray, room: float = 1.0) -> list[Box]:
    """Return the rectangles of a schedule on one resource, in order of start.

    A job gets the lowest gap that is high enough, or else is split over the lowest gaps. These positions exist only in
    the picture.

    Args:
        start: [N] of each job.
        finish: [N] of each job.
        held: [N] of the resource; in sum at most `room`.
        room: total amount of the resource.
    """
    running: list[Box] = []
    found: list[Box] = []
    for job in np.lexsort((np.arange(len(start)), start)).tolist():
        begin, end, height = float(start[job]), float(finish[job]), float(held[job])
        running = [box for box in running if box.end > begin]
        for bottom, part in _places(sorted((box.bottom, box.top) for box in running), height, room):
            running.append(Box(job, begin, end, bottom, bottom + part))
            found.append(running[-1])
    return found


def _places(taken: list[tuple[float, float]], height: float, room: float) -> list[tuple[float, float]]:
    """Return (bottom, height) of a job's parts between the taken intervals."""
    gaps, low = [], 0.0
    for bottom, top in [*taken, (room, room)]:
        if bottom > low:
            gaps.append((low, bottom - low))
        low = max(low, top)
    whole = next((bottom for bottom, free in gaps if free >= height - NEARLY), None)
    if whole is not None:
        return [(whole, height)]
    places = []
    for bottom, free in gaps:
        part = min(free, height)
        places.append((bottom, part))
        height -= part
        if height <= NEARLY:
            break
    return places
