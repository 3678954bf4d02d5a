"""Play of `sets` inside the compiled kernel, against lock step with torch's forward."""

from collections.abc import Iterator

from benchmarks import set_engine
from benchmarks.measure import ProgressCallback, in_turns, seconds
from benchmarks.record import Row, figure, half_of
from benchmarks.sizes import Sizes

LOCK_STEP = "the same episodes in lock step: observe, torch's forward of networks/sets.py, sample, step"
RATIOS = (3.0, 5.6)  # measured, of short runs and of streams


def run(runs: int, sizes: Sizes, on_progress: ProgressCallback) -> Iterator[Row]:
    """Measure decisions a second of short runs with few slots, and of streams with many."""
    for problem, what, ratio in zip(sizes.rolled, ("short runs", "streams"), RATIOS, strict=True):
        on_progress("draw the jobs")
        network, jobsets = set_engine.network(problem), problem.draw()
        count = set_engine.decisions_of(network, problem, jobsets) / 1e3

        def ours() -> float:
            return count / seconds(set_engine.rolled(network, *set_engine.begun(problem, jobsets)))  # noqa: B023

        def plain() -> float:
            return count / seconds(set_engine.stepped(network, *set_engine.begun(problem, jobsets)))  # noqa: B023

        mine, theirs = in_turns(runs, on_progress, ours, plain)
        name = f"play of sets, {what} of {problem.slots} slots"
        yield Row(figure(name, mine, "k decisions/s", theirs, more_is_better=True, target=half_of(ratio)), LOCK_STEP)
