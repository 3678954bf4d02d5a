"""The gradient of `sets`, compiled, against torch's autograd on the same decisions."""

from collections.abc import Iterator

from benchmarks import set_engine
from benchmarks.measure import ProgressCallback, in_turns, seconds
from benchmarks.record import Row, Target, figure, half_of
from benchmarks.sizes import Sizes

AUTOGRAD = "autograd of networks/sets.py, the same decisions in batches"
GAP = "no baseline: the norm of the difference to autograd's gradient, as a part of its norm"
AT_ONCE = {
    10: 512,
    60: 256,
}  # decisions that autograd takes at a time, by slots: the fastest of 64 to 2,048 on our machine


def run(runs: int, sizes: Sizes, on_progress: ProgressCallback) -> Iterator[Row]:
    """Measure decisions a second with few slots and with many, and whether both find the same."""
    for problem, ratio in zip(sizes.learned, (2.7, 8.2), strict=True):
        on_progress("play")
        network = set_engine.network(problem)
        given = set_engine.played(network, problem)
        count = len(given.loss.gain) / 1e3
        ours = set_engine.compiled_gradient(network, given)
        plain = set_engine.by_autograd(network, given, AT_ONCE[problem.slots])
        mine, theirs = in_turns(
            runs,
            on_progress,
            lambda: count / seconds(ours),  # noqa: B023
            lambda: count / seconds(plain),  # noqa: B023
        )
        name = f"gradient of sets, {problem.slots} slots"
        target = half_of(ratio)
        yield Row(figure(name, mine, "k decisions/s", theirs, more_is_better=True, target=target), AUTOGRAD)
        off = [100 * set_engine.gap(network, ours, plain)]
        yield Row(figure(f"{name}, off autograd's", off, "%", target=Target(most=0.01)), GAP)
