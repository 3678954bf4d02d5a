"""Give every running job rows of a resource, one row a unit, so that it can be drawn as a rectangle."""

from typing import NamedTuple

import numpy as np

from pipeline.core import BoolArray, IntArray


class Block(NamedTuple):
    """A rectangle: some units of a job, for as long as it runs."""

    job: int
    row: int  # lowest
    units: int
    begin: int  # first step
    end: int  # step after the last one


def blocks(start: IntArray, finish: IntArray, demand: IntArray, units: int) -> list[Block]:
    """Return the rectangles of a schedule on one resource, in order of start.

    A job gets the lowest free rows that lie together (first fit), and is split over the lowest free ones where no gap
    is wide enough. The cluster has no such rows: they only serve the picture.

    Args:
        start: [J] first step of each job; -1 = never started, and not drawn.
        finish: [J] step after its last one.
        demand: [J] units.
        units: of the resource.
    """
    free_from = np.full(units, np.iinfo(np.int64).min)
    found = []
    for job in np.lexsort((np.arange(len(start)), start)):
        begin, end, wanted = int(start[job]), int(finish[job]), int(demand[job])
        if begin < 0 or wanted == 0:
            continue
        runs = _runs(free_from <= begin)
        fitting = [(first, wanted) for first, length in runs if length >= wanted][:1]
        for row, height in fitting or _split(runs, wanted):
            found.append(Block(int(job), row, height, begin, end))
            free_from[row : row + height] = end
    return found


def _runs(free: BoolArray) -> list[tuple[int, int]]:
    """Return (first, length) of each run of free rows, lowest first."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], free.astype(np.int8), [0]])))
    return [(int(first), int(last - first)) for first, last in zip(edges[::2], edges[1::2], strict=True)]


def _split(runs: list[tuple[int, int]], wanted: int) -> list[tuple[int, int]]:
    pieces, missing = [], wanted
    for first, length in runs:
        taken = min(length, missing)
        if taken:
            pieces.append((first, taken))
        missing -= taken
    if missing:
        raise ValueError(f"the schedule holds {missing} units more than the resource has")
    return pieces
