"""Updates of `mixture`, DeepRM3's policy gradient, in a process of their own: seconds of each part, and memory."""

import time
from collections.abc import Callable, Iterator
from statistics import fmean
from typing import NamedTuple, ParamSpec, TypeVar

from benchmarks import set_engine
from benchmarks.child import alone
from benchmarks.engine import hold_to
from benchmarks.measure import MIB, ProgressCallback, forget_high_water, high_water
from benchmarks.problem import Problem, mixed_task
from benchmarks.record import Row, figure, half_of
from benchmarks.sizes import QUICK, Sizes
from pipeline.config import Mixture, load_params
from pipeline.problems.pool.training.mixture import mixture

PARTS = ("short runs", "windows of streams", "gradient")
SETTLED = 3  # updates that are measured, after a first one that asks the system for memory that later ones use again
NONE = "no baseline"
BEYOND = "no baseline; beyond what the process held before"

Asked = ParamSpec("Asked")
Answer = TypeVar("Answer")


class Cost(NamedTuple):
    """What updates cost."""

    seconds: tuple[float, ...]  # of each of PARTS, in the mean
    decisions: float  # learned from, in the mean
    peak_mib: float  # of the whole process
    above_mib: float  # of which beyond what it held before


def run(runs: int, sizes: Sizes, on_progress: ProgressCallback) -> Iterator[Row]:
    """Measure updates, each run in a new process."""
    on_progress("compile")
    alone(cost, QUICK.mixture)
    costs = []
    for number in range(runs):
        on_progress(f"run {number + 1} of {runs}")
        costs.append(alone(cost, sizes.mixture))
    learned = f"no baseline; the mean of {SETTLED} updates, which learn {costs[-1].decisions:,.0f} decisions"
    yield Row(
        figure("mixture, an update", [sum(one.seconds) for one in costs], "s", target=half_of(cost=0.25)), learned
    )
    for k, (part, measured) in enumerate(zip(PARTS, (0.03, 0.13, 0.1), strict=True)):
        target = half_of(cost=measured)
        yield Row(figure(f"mixture, {part}", [one.seconds[k] for one in costs], "s", target=target), learned)
    held, more = [one.peak_mib / 1024 for one in costs], [one.above_mib for one in costs]
    yield Row(figure("mixture, memory of its process", held, "GiB", target=half_of(cost=0.58)), NONE)
    yield Row(figure("mixture, memory of its updates", more, "MiB", target=half_of(cost=176)), BEYOND)


def cost(config: Mixture) -> Cost:
    """Measure updates in this process."""
    hold_to(load_params().threads)
    list(updates(QUICK.mixture, 2))
    before = high_water()
    forget_high_water()
    level = high_water()
    settled = list(updates(config, 1 + SETTLED))[1:]
    spent = tuple(fmean(seconds) for seconds in zip(*(parts for parts, _ in settled), strict=True))
    mark = high_water()
    decisions = fmean(count for _, count in settled)
    return Cost(spent, decisions, max(before, mark) / MIB, (mark - level) / MIB)


def updates(config: Mixture, count: int) -> Iterator[tuple[tuple[float, ...], int]]:
    """Run updates, each from the initial weights; yield the seconds of PARTS, and how many decisions were learned.

    Short runs end where the first stream is asked for, and windows where the first gradient is.
    """
    network, task, marks = set_engine.network(Problem()), mixed_task(config), dict[str, float]()
    initial = {name: weight.clone() for name, weight in network.state_dict().items()}
    network.add_gradient = _noting(marks, "gradient", network.add_gradient)  # type: ignore[method-assign]
    run = mixture(network, task._replace(stream=_noting(marks, "stream", task.stream)), config)
    for _ in range(count):
        marks.clear()
        begun = time.perf_counter()
        update = next(run)
        ended = time.perf_counter()
        parts = (marks["stream"] - begun, marks["gradient"] - marks["stream"], ended - marks["gradient"])
        yield parts, int(update.metrics["decisions"])
        network.load_state_dict(initial)


def _noting(marks: dict[str, float], name: str, work: Callable[Asked, Answer]) -> Callable[Asked, Answer]:
    """Return the same work, which notes when it is first asked for."""

    def noted(*asked: Asked.args, **named: Asked.kwargs) -> Answer:
        marks.setdefault(name, time.perf_counter())
        return work(*asked, **named)

    return noted
