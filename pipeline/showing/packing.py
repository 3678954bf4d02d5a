"""Where jobs are drawn that share a resource, so that each is a rectangle."""

from typing import NamedTuple

import numpy as np

from pipeline.core import FloatArray, IntArray, TimeArray

NEARLY = 1e-9  # amounts this close are the same


class Bar(NamedTuple):
    """A rectangle: some of what a job holds, for as long as it runs."""

    job: int
    bottom: float
    height: float
    begin: float
    end: float


def bars(start: TimeArray, finish: TimeArray, held: FloatArray | IntArray, room: float = 1.0) -> list[Bar]:
    """Return the rectangles of a schedule on one resource, in order of start.

    A job gets the lowest gap that is high enough, and is split over the lowest gaps where none is. The resource has no
    such places: they only serve the picture.

    Args:
        start: [N] when each job begins.
        finish: [N] when it is over.
        held: [N] of the resource; in sum at most `room`.
        room: all of the resource.
    """
    running: list[Bar] = []
    found: list[Bar] = []
    for job in np.lexsort((np.arange(len(start)), start)).tolist():
        begin, end, height = float(start[job]), float(finish[job]), float(held[job])
        running = [bar for bar in running if bar.end > begin]
        for bottom, part in _places(sorted((bar.bottom, bar.bottom + bar.height) for bar in running), height, room):
            running.append(Bar(job, bottom, part, begin, end))
            found.append(running[-1])
    return found


def _places(taken: list[tuple[float, float]], height: float, room: float) -> list[tuple[float, float]]:
    """Return (bottom, height) of where a job goes between what is taken."""
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
