"""One jobset under two policies side by side: what each group may use, what it uses of it, and who waits.

Groups have the colours that they have in the other figures of shares, which colour-blind readers can tell apart.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pipeline.comparing.plots import GREY
from pipeline.core import FloatArray, TimeArray
from pipeline.problems.groups.evaluation.watching import Course
from pipeline.problems.groups.plots import COLOURS, MOST_GROUPS, OTHERS, SHOWN

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH, SHARES, QUEUE = 14.0, 3.4, 1.8  # inches
PALE = 0.35  # of a share that is not used
CAPTION = (
    "Pale: what a group may use in an interval, one group upon the other. Full: what its jobs hold of that, mean over "
    "the interval. Dashed: what all jobs\nhold; it may be above the full areas, for jobs keep their units when their "
    "group's share falls, and may borrow. Below: jobs that wait as an interval begins."
)


class Half(NamedTuple):
    """One policy."""

    title: str
    course: Course


class Scene(NamedTuple):
    """What is drawn, beside what policies did."""

    title: str
    resources: Mapping[str, int]  # units of each
    interval: float
    since: float  # what the simulator's times count from
    begin: float  # of the picture, by the simulator's clock
    end: float


class Bands(NamedTuple):
    """The groups that are drawn: all, or those that use most and the sum of the others."""

    names: list[str]
    colours: list[str]
    members: list[list[int]]  # groups of each band

    def sums(self, values: TimeArray) -> FloatArray:
        """Return values [N, G] summed [bands, N]."""
        return np.stack([values[:, some].sum(axis=1) for some in self.members])


def side_by_side(scene: Scene, halves: Sequence[Half]) -> "Figure":
    """Draw each policy as a column; rows of the picture share their axes."""
    from matplotlib.figure import Figure

    bands = bands_of([half.course for half in halves])
    heights = [*[SHARES] * len(scene.resources), QUEUE]
    figure = Figure(figsize=(WIDTH, sum(heights) + 1.9), layout="constrained")
    grid = figure.subplots(len(heights), len(halves), sharex=True, sharey="row", squeeze=False, height_ratios=heights)
    for column, half in enumerate(halves):
        for r, units in enumerate(scene.resources.values()):
            _shares(grid[r, column], scene, half.course, r, units, bands)
        _waiting(grid[-1, column], scene, half.course, bands)
        grid[0, column].set_title(half.title, loc="left", fontsize=10)
        grid[-1, column].set_xlabel("Time")
    for row, label in enumerate([*(f"{name} (units)" for name in scene.resources), "Jobs waiting"]):
        grid[row, 0].set_ylabel(label)
    for axes in grid.flat:
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(labelsize=8)
        axes.set_ylim(bottom=0)
    grid[0, 0].set_xlim(scene.since + scene.begin, scene.since + scene.end)
    grid[0, 0].ticklabel_format(axis="x", useOffset=False, style="plain")
    handles, names = grid[0, 0].get_legend_handles_labels()
    figure.legend(handles[::-1], names[::-1], loc="outside right upper", fontsize=8, frameon=False)
    figure.suptitle(scene.title, x=0.01, ha="left", fontsize=12, fontweight="bold")
    figure.supxlabel(CAPTION, x=0.01, ha="left", fontsize=8)
    return figure


def bands_of(courses: Sequence[Course]) -> Bands:
    """Return the bands of a picture; of many groups, those that use most have one each."""
    used = sum(course.used.sum(axis=(0, 2)) for course in courses)
    groups = range(len(np.asarray(used)))
    if len(groups) <= MOST_GROUPS:
        kept, others = list(groups), list[int]()
    else:
        kept = sorted(np.argsort(-np.asarray(used), kind="stable")[:SHOWN].tolist())
        others = [g for g in groups if g not in kept]
    names, colours = [f"group {g}" for g in kept], [COLOURS[k] for k in range(len(kept))]
    if others:
        names, colours = [*names, OTHERS], [*colours, GREY]
    return Bands(names, colours, [*([g] for g in kept), *([others] if others else [])])


def _shares(axes: "Axes", scene: Scene, course: Course, r: int, units: int, bands: Bands) -> None:
    shown, edges = _shown(scene, course)
    share, used = bands.sums(course.share[shown, :, r]), bands.sums(course.used[shown, :, r])
    base = np.cumsum(share, axis=0) - share
    for k, (name, colour) in enumerate(zip(bands.names, bands.colours, strict=True)):
        axes.stairs(base[k] + share[k], edges, baseline=base[k], fill=True, color=colour, alpha=PALE, lw=0)
        top = base[k] + np.minimum(used[k], share[k])
        axes.stairs(top, edges, baseline=base[k], fill=True, color=colour, lw=0, label=name)
    axes.stairs(used.sum(axis=0), edges, baseline=None, color="black", linewidth=0.9, linestyle="--", label="all jobs")
    axes.axhline(units, color=GREY, linewidth=0.8)


def _waiting(axes: "Axes", scene: Scene, course: Course, bands: Bands) -> None:
    from matplotlib.ticker import MaxNLocator

    shown, edges = _shown(scene, course)
    waiting = bands.sums(course.waiting[shown])
    base = np.cumsum(waiting, axis=0) - waiting
    for k, colour in enumerate(bands.colours):
        axes.stairs(base[k] + waiting[k], edges, baseline=base[k], fill=True, color=colour, lw=0)
    axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))


def _shown(scene: Scene, course: Course) -> tuple[slice, FloatArray]:
    """Return the intervals that are at least partly shown, and their edges in time."""
    first = int(scene.begin // scene.interval)
    last = min(int(np.ceil(scene.end / scene.interval)), len(course.begin))
    first = min(first, last - 1)
    return slice(first, last), scene.since + scene.interval * np.arange(first, last + 1)
