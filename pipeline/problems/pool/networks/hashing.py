"""Hash tables [2^n, 2] of 64-bit hashes (0 = nothing) and their numbers, for compiled code."""

from typing import Any

import numpy as np
from numba import njit

from pipeline.core import KeyArray
from pipeline.simulation.compiled import inlined

Scalar = Any  # in compiled code: numba works out whether it is signed


@inlined
def get(table: KeyArray, hashed: Scalar) -> Scalar:
    """Return the number of a hash, or -1."""
    last = np.uint64(len(table) - 1)
    at = hashed & last
    while table[at, 0] != hashed:
        if table[at, 0] == 0:
            return -1
        at = (at + np.uint64(1)) & last
    return np.int64(table[at, 1])


@inlined
def put(table: KeyArray, hashed: Scalar, number: Scalar) -> None:
    """Number a hash that has none yet; there is room for it."""
    last = np.uint64(len(table) - 1)
    at = hashed & last
    while table[at, 0] != 0:
        at = (at + np.uint64(1)) & last
    table[at, 0], table[at, 1] = hashed, np.uint64(number)


@njit(cache=True)
def move(table: KeyArray, larger: KeyArray) -> None:
    """Copy a hash table into a larger one."""
    for k in range(len(table)):
        if table[k, 0] != 0:
            put(larger, table[k, 0], np.int64(table[k, 1]))
