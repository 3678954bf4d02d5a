"""Measuring: our code and the baseline run alternately, so that other load on the machine affects both."""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

ProgressCallback = Callable[[str], None]  # called with the current activity, once per run
MIB = 2**20
STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def seconds(work: Callable[[], object]) -> float:
    """Return the duration of a function call."""
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def in_turns(
    runs: int, on_progress: ProgressCallback, ours: Callable[[], float], baseline: Callable[[], float]
) -> tuple[list[float], list[float]]:
    """Return the measurements of our code and the baseline in each run; the first run of each is a dropped warm-up."""
    measured = []
    for run in range(runs + 1):
        on_progress("warm up" if run == 0 else f"run {run} of {runs}")
        measured.append((ours(), baseline()))
    mine, theirs = zip(*measured[1:], strict=True)
    return list(mine), list(theirs)


def exponent(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """Return the slope of the least-squares line through log cost against log size.

    >>> round(exponent([1, 2, 4, 8], [3, 6, 12, 24]), 6)
    1.0
    """
    slope, _ = np.polyfit(np.log(np.asarray(sizes, dtype=float)), np.log(np.asarray(costs, dtype=float)), 1)
    return float(slope)


def high_water() -> int:
    """Return the peak memory [bytes] of this process, since its start or since `forget_high_water`.

    It avoids getrusage if possible: on Linux a new process inherits the peak of its parent.
    """
    if STATUS.exists():
        mark = next(line for line in STATUS.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(mark.split()[1]) * 1024
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # bytes, on macOS


def forget_high_water() -> None:
    """Reset the peak to the current memory, if the system supports it."""
    with suppress(OSError):
        CLEAR.write_text("5")
