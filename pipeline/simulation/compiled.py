"""Compilation of loops on threads and of functions that only compiled functions call; small shared kernels."""

import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import cache, wraps
from itertools import pairwise
from time import perf_counter
from typing import TypeVar

import numpy as np
from numba import get_num_threads, njit

from pipeline.core.types import FloatArray, IntArray

Function = TypeVar("Function", bound=Callable[..., object])
Span = tuple[int, int]  # the first item, and the one after the last
WORTH_S = 2e-4  # work of a thread that outweighs waking it


def inlined(function: Function) -> Function:
    """Compile a function that only kernels call: inlined in each of them, without reference counting.

    Passing a tuple's arrays by value and counting references to them took four fifths of the time of a decision.
    `_nrt=False` requires that such a function neither allocates nor keeps an array.
    """
    how = njit(  # type: ignore[call-overload]  # three options that numba has and its signature leaves out
        forceinline=True, error_model="numpy", _nrt=False, no_cpython_wrapper=True, no_cfunc_wrapper=True
    )
    compiled: Function = how(function)
    return compiled


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads)


os.register_at_fork(after_in_child=_pool.cache_clear)  # a forked process has none of these threads


def threaded(count: Callable[..., int]) -> Callable[[Callable[..., int | None]], Callable[..., int]]:
    """Compile a loop over the items of its first argument, a `Span`, which threads divide among themselves.

    Callers leave that argument out, and get the sum of what the parts return. A loop whose last calls were too short to
    be worth another thread uses fewer. numba's own `parallel=True` compiles each loop several times.

    Args:
        count: returns the number of items, from the other arguments.
    """

    def compiled(loop: Callable[..., int | None]) -> Callable[..., int]:
        part, each_s = njit(cache=True, nogil=True)(loop), 1.0

        @wraps(loop)
        def run(*given: object) -> int:
            nonlocal each_s
            items, most = count(*given), get_num_threads()
            threads = max(min(most, items, int(items * each_s / WORTH_S)), 1)
            few, more = divmod(items, threads)
            bounds = [few * k + min(k, more) for k in range(threads + 1)]
            others = list[Future[int | None]]()
            try:
                for span in pairwise(bounds[1:]):
                    others.append(_pool(most - 1).submit(part, span, *given))
                begun = perf_counter()
                own = part((0, bounds[1]), *given) or 0
                now_s = (perf_counter() - begun) / max(bounds[1], 1)
            finally:  # after an error or a signal too, because they write to the caller's arrays
                wait(others)
            if items:  # step by step, because another process may have had the core, or a part may have little work
                each_s = min(max(now_s, each_s / 2), 10 * each_s)
            return own + sum(other.result() or 0 for other in others)

        return run

    return compiled


@inlined
def dealt(place: int, count: int, hands: int) -> int:
    """Return the item at a place of a threaded loop when items are dealt out evenly to threads.

    A thread takes consecutive places. Episodes are sorted by load, so without dealing, all threads would wait for the
    thread that got the highest loads.
    """
    few = count // hands
    more = count % hands  # number of hands (threads) with one extra item
    many = more * (few + 1)
    if place < many:
        return place % (few + 1) * hands + place // (few + 1)
    return (place - many) % few * hands + more + (place - many) // few


@inlined
def _mix(bits: np.uint64) -> np.uint64:
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


@inlined
def uniform(key: np.uint64, decision: int) -> float:
    """Return what `core.uniform` returns for one key."""
    bits = _mix(key + np.uint64(decision) * np.uint64(0x9E3779B97F4A7C15))
    return float(bits >> np.uint64(11)) / 9007199254740992.0


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
