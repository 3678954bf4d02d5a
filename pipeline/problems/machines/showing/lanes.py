"""Where a job is drawn in the lane of a machine: as high as its share of the resource that is wanted most there."""

from typing import NamedTuple

import numpy as np

from pipeline.core import FloatArray, IntArray
from pipeline.problems.machines.nouns import Jobs, Machines

MOST_LANES = 40  # that are still legible in one picture
THINNEST = 0.04  # of a lane: what a job is drawn with that wants nothing of the resource


class Bar(NamedTuple):
    """A rectangle: some of a job on one machine, for as long as it runs."""

    job: int
    bottom: float  # share of the lane
    height: float
    begin: float
    end: float


def dominant(jobs: Jobs, machines: Machines) -> IntArray:
    """Return for each machine [K] the resource that all jobs want most of, among those that it has."""
    total = np.maximum(machines.capacity.sum(axis=0), 1)
    wanted = (jobs.nodes * jobs.duration) @ jobs.demand / total
    return np.asarray(np.where(machines.capacity > 0, wanted, -1.0).argmax(axis=1))


def bars(start: FloatArray, finish: FloatArray, share: FloatArray) -> list[Bar]:
    """Return the rectangles of one machine's jobs, in order of start.

    A job gets the lowest gap that is high enough, and is split over the lowest gaps where none is. The machine has no
    such places: they only serve the picture.

    Args:
        start: [N] when each job begins.
        finish: [N] when it is over.
        share: [N] of the machine that it holds.
    """
    running: list[Bar] = []
    found: list[Bar] = []
    for job in np.lexsort((np.arange(len(start)), start)).tolist():
        begin, end, height = float(start[job]), float(finish[job]), float(share[job])
        running = [bar for bar in running if bar.end > begin]
        for bottom, part in _places(sorted((bar.bottom, bar.bottom + bar.height) for bar in running), height):
            running.append(Bar(job, bottom, part, begin, end))
            found.append(running[-1])
    return found


def _places(taken: list[tuple[float, float]], height: float) -> list[tuple[float, float]]:
    """Return (bottom, height) of where a job goes between what is taken."""
    gaps, low = [], 0.0
    for bottom, top in [*taken, (1.0, 1.0)]:
        if bottom > low:
            gaps.append((low, bottom - low))
        low = max(low, top)
    whole = next((bottom for bottom, room in gaps if room >= height - 1e-9), None)
    if whole is not None:
        return [(whole, height)]
    places = []
    for bottom, room in gaps:
        part = min(room, height)
        places.append((bottom, part))
        height -= part
        if height <= 1e-9:
            break
    return places
