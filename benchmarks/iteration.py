"""One iteration of REINFORCE at the paper's scale, against the path that the paper describes."""

from collections.abc import Iterator

from benchmarks.child import Cost, measured
from benchmarks.measure import Tell
from benchmarks.record import Row, Target, figure
from benchmarks.sizes import Sizes

DESCRIBED = "as the paper describes it: images drawn, dense first layer, autograd"


def run(runs: int, sizes: Sizes, tell: Tell) -> Iterator[Row]:
    """Measure time, memory and decisions, each run in two new processes: ours and the baseline's."""
    ours: list[Cost] = []
    theirs: list[Cost] = []
    for number in range(runs):
        tell(f"run {number + 1} of {runs}")
        ours += measured("ours", [sizes.iteration], iterations=3)
        theirs += measured("described", [sizes.iteration], iterations=1)
    # The first iteration of a process asks the system for memory that later ones use again; it is dropped.
    mine = [spent for cost in ours for spent in cost.seconds[1:]]
    described = [cost.seconds[0] for cost in theirs]
    yield Row(figure("iteration", mine, "s", described, target=Target(most=1.0, ratio=15)), DESCRIBED)
    held, held_by_them = ([cost.peak_mib / 1024 for cost in costs] for costs in (ours, theirs))
    yield Row(figure("iteration, memory of its process", held, "GiB", held_by_them, target=Target(most=1.0)), DESCRIBED)
    learned = [ours[0].decisions / spent / 1e6 for spent in mine]
    learned_by_them = [theirs[0].decisions / spent / 1e6 for spent in described]
    yield Row(figure("iteration, decisions", learned, "M/s", learned_by_them, more_is_better=True), DESCRIBED)


def run_larger(runs: int, sizes: Sizes, tell: Tell) -> Iterator[Row]:
    """Measure whether memory stops growing with the jobsets of an iteration, once they are not played all at once."""
    costs = []
    for number in range(runs):
        tell(f"run {number + 1} of {runs}")
        costs.append(measured("ours", [sizes.large, sizes.larger], iterations=1))
    large, larger = ([cost[k].above_mib for cost in costs] for k in range(2))
    name = f"memory of an iteration of {sizes.larger.jobsets} jobsets"
    against = f"the same of {sizes.large.jobsets} jobsets; both beyond what the process held before"
    yield Row(figure(name, larger, "MiB", large, target=Target(ratio=0.8)), against)
