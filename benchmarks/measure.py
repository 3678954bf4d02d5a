"""How things are measured: ours and the baseline in turns, so that what else the machine does meets both."""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

ProgressCallback = Callable[[str], None]  # called with what is being done, once a run
MIB = 2**20
STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def seconds(work: Callable[[], object]) -> float:
    """Return how long some work takes."""
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def in_turns(
    runs: int, on_progress: ProgressCallback, ours: Callable[[], float], baseline: Callable[[], float]
) -> tuple[list[float], list[float]]:
    """Return what ours and the baseline measured in each run; a first one of both, to warm up, is dropped."""
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
    """Return the most memory [bytes] that this process has held at once, or since `forget_high_water`.

    Not getrusage where it can be helped: on Linux a new process inherits the mark of the one that started it.
    """
    if STATUS.exists():
        mark = next(line for line in STATUS.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(mark.split()[1]) * 1024
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # bytes, on macOS


def forget_high_water() -> None:
    """Begin the mark again at what is held now, where the system can."""
    with suppress(OSError):
        CLEAR.write_text("5")
