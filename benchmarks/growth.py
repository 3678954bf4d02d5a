"""Growth of time and memory of an iteration: the slope of log cost against log size, one quantity at a time."""

from collections.abc import Iterator

from benchmarks.child import Cost, measured
from benchmarks.measure import ProgressCallback, exponent
from benchmarks.record import Row, Target, figure
from benchmarks.sizes import Axis, Sizes

MOST = Target(most=1.1)
LEAST_MIB = 1 / 16  # least memory in a fit; below it, memory pages dominate the sizes


def run(runs: int, sizes: Sizes, on_progress: ProgressCallback) -> Iterator[Row]:
    """Fit exponents; each run of an axis uses a new process."""
    for axis in sizes.axes:
        costs = []
        for number in range(runs):
            on_progress(f"{axis.name}, run {number + 1} of {runs}")
            costs.append(measured("ours", axis.problems))
        points = f"no baseline, an exponent compares our own points: {report(axis, costs[-1])}"
        name = f"{axis.name} {axis.sizes[0]} to {axis.sizes[-1]}"
        time = [exponent(axis.sizes, [cost.seconds[-1] for cost in run]) for run in costs]
        yield Row(figure(f"growth of time, {name}", time, "exponent", target=MOST), points)
        memory = [exponent(axis.sizes, [max(cost.above_mib, LEAST_MIB) for cost in run]) for run in costs]
        yield Row(figure(f"growth of memory, {name}", memory, "exponent", target=MOST), points)


def report(axis: Axis, costs: list[Cost]) -> str:
    """Return the points of an axis as text."""
    return f"{axis.name} " + "; ".join(
        f"{size}: {cost.decisions[-1]:,} decisions, {cost.seconds[-1]:.2g} s, {cost.above_mib:.3g} MiB"
        for size, cost in zip(axis.sizes, costs, strict=True)
    )
