"""A binary heap of jobs by a time, in a part of an array; jobs of one time come by their rank."""

from pipeline.core import FloatArray, IntArray
from pipeline.simulation.compiled import inlined


@inlined
def _before(key: FloatArray, rank: IntArray, one: int, other: int) -> bool:
    return bool(key[one] < key[other] or (key[one] == key[other] and rank[one] < rank[other]))


@inlined
def push(heap: IntArray, base: int, size: int, key: FloatArray, rank: IntArray, job: int) -> None:
    """Add a job to a heap of `size` jobs that begins at `base`."""
    at = size
    while at > 0:
        above = (at - 1) // 2
        if not _before(key, rank, job, heap[base + above]):
            break
        heap[base + at] = heap[base + above]
        at = above
    heap[base + at] = job


@inlined
def pop(heap: IntArray, base: int, size: int, key: FloatArray, rank: IntArray) -> int:
    """Take the first job out of a heap of `size` jobs."""
    top, last = heap[base], heap[base + size - 1]
    left, at = size - 1, 0
    while True:
        below = 2 * at + 1
        if below >= left:
            break
        if below + 1 < left and _before(key, rank, heap[base + below + 1], heap[base + below]):
            below += 1
        if not _before(key, rank, heap[base + below], last):
            break
        heap[base + at] = heap[base + below]
        at = below
    heap[base + at] = last
    return int(top)
