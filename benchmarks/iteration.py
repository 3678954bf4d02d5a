"""One iteration of REINFORCE at the paper's scale, compared with the method that the paper describes."""

from collections.abc import Iterator

from benchmarks.child import Cost, measured
from benchmarks.measure import ProgressCallback
from benchmarks.record import Row, Target, figure, half_of
from benchmarks.sizes import Sizes

DESCRIBED = "the path that the paper describes: drawn images, dense first layer, autograd"


def run(runs: int, sizes: Sizes, on_progress: ProgressCallback) -> Iterator[Row]:
    """Measure time, memory and decisions, each run in two new processes: ours and the baseline's."""
    ours: list[Cost] = []
    theirs: list[Cost] = []
    for number in range(runs):
        on_progress(f"run {number + 1} of {runs}")
        ours += measured("ours", [sizes.iteration], iterations=4)
        theirs += measured("described", [sizes.iteration], iterations=2)
    (mine, learned), (described, learned_by_them) = settled(ours), settled(theirs)
    yield Row(figure("iteration", mine, "s", described, target=half_of(ratio=15.8)), DESCRIBED)
    held, held_by_them = ([cost.peak_mib / 1024 for cost in costs] for costs in (ours, theirs))
    yield Row(
        figure("iteration, memory of its process", held, "GiB", held_by_them, target=half_of(cost=0.51)), DESCRIBED
    )
    yield Row(
        figure(
            "iteration, decisions", learned, "M/s", learned_by_them, more_is_better=True, target=half_of(ratio=15.8)
        ),
        DESCRIBED,
    )


def settled(costs: list[Cost]) -> tuple[list[float], list[float]]:
    """Return seconds and millions of decisions a second of all but the first iterations.

    The first iteration of a process allocates memory that later ones reuse.
    """
    later = [pair for cost in costs for pair in list(zip(cost.seconds, cost.decisions, strict=True))[1:]]
    return [spent for spent, _ in later], [taken / spent / 1e6 for spent, taken in later]


def run_larger(runs: int, sizes: Sizes, on_progress: ProgressCallback) -> Iterator[Row]:
    """Measure whether memory stops growing with the jobsets of an iteration, once they no longer run all at once."""
    costs = []
    for number in range(runs):
        on_progress(f"run {number + 1} of {runs}")
        costs.append(measured("ours", [sizes.large, sizes.larger], iterations=1))
    large, larger = ([cost[k].above_mib for cost in costs] for k in range(2))
    name = f"memory of an iteration of {sizes.larger.jobsets} jobsets"
    against = f"the same of {sizes.large.jobsets} jobsets; both beyond the memory of the process before"
    yield Row(figure(name, larger, "MiB", large, target=Target(ratio=0.8)), against)
