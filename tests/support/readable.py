"""Faults that make a figure unreadable in grey, or without its text."""

import re
from collections.abc import Iterator, Sequence

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_hex
from matplotlib.container import BarContainer
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import PathPatch, Rectangle

from pipeline.comparing.plots import REFERENCE

MOST_LINES = 5  # of one panel
UNITS = (
    *("%", "days", "equal shares", "intervals", "jobs", "seconds", "steps", "time units", "units"),
    *("fraction", "names", "number", "ratio", "reward"),  # of axes without a dimension
)


def faults(figure: Figure, units: Sequence[str] = ()) -> Iterator[str]:
    """Yield the faults of a figure: too many lines, lines or boxes that are too similar, axes without a name or unit.

    Lines of the group REFERENCE show no data and do not count. `units` are those of the data, besides UNITS.
    """
    if not figure.get_suptitle() and not figure.axes[0].get_title(loc="left"):
        yield "no title"
    for axes in figure.axes:
        lines = [line for line in axes.lines if line.get_gid() != REFERENCE and line.get_linestyle() != "None"]
        if len(lines) > MOST_LINES:
            yield f"{len(lines)} lines: {', '.join(str(line.get_label()) for line in lines)}"
        for name, differing in {"colour": _colour, "marker": Line2D.get_marker, "dash": _dash}.items():
            if len({differing(line) for line in lines}) < len(lines):
                yield f"{', '.join(str(line.get_label()) for line in lines)}: two have the same {name}"
        yield from _alike(axes)
        yield from _unnamed(figure, axes)
        for label in filter(None, (axes.get_xlabel(), axes.get_ylabel())):
            if not re.search(rf"\((?:{'|'.join(map(re.escape, (*UNITS, *units)))})(?=[);, ])", label):
                yield f"'{label}' has no unit in brackets"


def _alike(axes: Axes) -> Iterator[str]:
    """Yield whether boxes, bars or areas with names of their own differ only in colour."""
    boxes = [area for area in axes.patches if isinstance(area, PathPatch) and area.get_fill()]
    if len({area.get_hatch() or "" for area in boxes}) < len({to_hex(area.get_facecolor()) for area in boxes}):
        yield "boxes or areas that differ only in colour"
    bars = [one.patches[0] for one in axes.containers if isinstance(one, BarContainer) and one.patches and _named(one)]
    bars += [one for one in axes.patches if isinstance(one, Rectangle) and _named(one)]  # of a list of names
    areas = [one for one in axes.collections if isinstance(one, PolyCollection) and _named(one)]
    if len({one.get_hatch() or "" for one in (*bars, *areas)}) < len([*bars, *areas]):
        yield "bars or areas with the same hatch"


def _named(what: Artist | BarContainer) -> bool:
    return not str(what.get_label()).startswith("_")


def _unnamed(figure: Figure, axes: Axes) -> Iterator[str]:
    """Yield the axes without a name, unless a panel below or to the left has the name, or ticks are words."""
    spot, panels = axes.get_subplotspec(), [(one, one.get_subplotspec()) for one in figure.axes]
    if spot is None:  # a scale of colours
        return
    below = [one for one, at in panels if at and at.colspan == spot.colspan and at.rowspan.start >= spot.rowspan.start]
    left = [one for one, at in panels if at and at.rowspan == spot.rowspan and at.colspan.start <= spot.colspan.start]
    if not any(one.get_xlabel() for one in below):
        yield "a horizontal axis without a name"
    ticks = " ".join(text.get_text() for one in left for text in one.get_yticklabels())
    if not any(one.get_ylabel() for one in left) and not re.search("[a-z]", ticks):
        yield "a vertical axis without a name"


def _colour(line: Line2D) -> str:
    return to_hex(line.get_color())


def _dash(line: Line2D) -> object:
    return line._unscaled_dash_pattern  # type: ignore[attr-defined]  # of all dashes, `get_linestyle` says "--"


def luminance(colour: str) -> float:
    """Luminance of a colour #rrggbb as a fraction of white's."""
    channels = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
