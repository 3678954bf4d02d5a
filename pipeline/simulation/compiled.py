"""How functions are compiled that only other compiled functions call."""

from collections.abc import Callable
from typing import TypeVar

from numba import njit

Function = TypeVar("Function", bound=Callable[..., object])


def inlined(function: Function) -> Function:
    """Compile what only kernels call: into each of them, and without reference counts.

    Handing a tuple's arrays over by value and counting references to them took four fifths of a decision; such a
    function makes and keeps no array, which is what `_nrt=False` asks of it.
    """
    how = njit(  # type: ignore[call-overload]  # three options that numba has and its signature leaves out
        forceinline=True, error_model="numpy", _nrt=False, no_cpython_wrapper=True, no_cfunc_wrapper=True
    )
    compiled: Function = how(function)
    return compiled
