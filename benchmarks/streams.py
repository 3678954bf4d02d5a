"""All heuristics over a million jobs in long streams."""

from collections.abc import Iterator

from benchmarks import engine
from benchmarks.measure import ProgressCallback, in_turns, seconds
from benchmarks.record import Row, figure, half_of
from benchmarks.sizes import Sizes

LOCK_STEP = "one at a time in lock step, on observations; time per job"
MILLION = 1_000_000


def run(runs: int, sizes: Sizes, on_progress: ProgressCallback) -> Iterator[Row]:
    """Measure the duration of all heuristics, run as in `schedule`."""
    on_progress("draw the jobs")
    problem = sizes.streams
    streams, first = problem.draw(), sizes.start_of_streams.draw()
    jobs, jobs_of_first = (sum(len(stream.arrival) for stream in some) for some in (streams, first))

    def ours() -> float:
        return seconds(engine.all_heuristics(problem, streams)) * MILLION / jobs

    def baseline() -> float:
        return seconds(engine.all_heuristics_watching(problem, first)) * MILLION / jobs_of_first

    mine, theirs = in_turns(runs, on_progress, ours, baseline)
    yield Row(figure("all heuristics, 1 M jobs", mine, "s", theirs, target=half_of(ratio=19.3)), LOCK_STEP)
