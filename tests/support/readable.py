"""Faults that make a figure unreadable in grey, or without its text."""

from collections.abc import Iterator

from matplotlib.figure import Figure

MOST_LINES = 5  # of one panel


def faults(figure: Figure) -> Iterator[str]:
    """Yield the faults of a figure: panels with too many lines, lines that differ only in colour, unnamed axes."""
    for axes in figure.axes:
        lines = [line for line in axes.lines if not str(line.get_label()).startswith("_")]
        if len(lines) > MOST_LINES:
            yield f"{len(lines)} lines"
        if len({(line.get_linestyle(), line.get_marker()) for line in lines}) < len(lines):
            yield f"{', '.join(str(line.get_label()) for line in lines)}: differ only in colour"
        if not axes.get_xlabel() or not axes.get_ylabel() or not axes.get_title(loc="left"):
            yield "no title, or an axis without a name"


def luminance(colour: str) -> float:
    """Luminance of a colour #rrggbb as a fraction of white's."""
    channels = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
