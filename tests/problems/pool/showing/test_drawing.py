"""A schedule as a picture: who was withheld when, what is drawn, and what does not fit a picture."""

import numpy as np
import pytest
from builders import cluster, jobset, random_jobset
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.collections import PolyCollection
from matplotlib.patches import Rectangle

from pipeline.comparing.plots import png
from pipeline.core import Observation, Policy, keys
from pipeline.errors import UserError
from pipeline.problems.pool.heuristics.scores import HEURISTICS, hold
from pipeline.problems.pool.nouns import Cluster, JobSet, batch
from pipeline.problems.pool.showing.drawing import side_by_side
from pipeline.problems.pool.showing.scene import MOST_LINES, Scene, Window, late_jobs, window
from pipeline.problems.pool.showing.watching import Trace, waiting, watch
from pipeline.problems.pool.simulator.compiled.batch import Batched
from pipeline.simulation.choosing import heuristic
from pipeline.simulation.rollout import play

KEY = keys(0, np.array([0]), np.array([0]))


def short_ones(view: Observation, draws: np.ndarray) -> np.ndarray:
    """Start jobs of up to 3 steps that fit, in order of slots; else let the step pass."""
    may = view.fits_now[:, :, 0] & (view.duration <= 3)
    return np.where(may.any(axis=1), may.argmax(axis=1), may.shape[1])


def first_legal(view: Observation, draws: np.ndarray) -> np.ndarray:
    legal = view.legal[:, :, 0]
    return np.where(legal.any(axis=1), legal.argmax(axis=1), legal.shape[1])


def watched(jobs: JobSet, of: Cluster, policy: Policy = HEURISTICS["sjf"], name: str = "sjf") -> Trace:
    return watch(name, policy, jobs, of, 100, KEY)


# Who waits, and who is withheld


def test_a_long_job_is_withheld_in_the_step_in_which_it_fitted() -> None:
    # Of two units. At 0, a starts and b, which fits, is left; at 1, c starts and b no longer fits; at 2 all is free,
    # and b, the only one there, starts.
    jobs = jobset((0, 2, 1), (0, 4, 1), (1, 1, 1))
    trace = watched(jobs, cluster(2, slots=2), short_ones, "short ones")
    assert trace.start.tolist() == [0, 2, 1]
    assert trace.finish.tolist() == [2, 6, 2]
    assert trace.withheld == [[], [0], []]
    assert (trace.withheld_steps, trace.withheld_jobs, trace.steps, trace.unfinished) == (1, 1, 6, 0)
    assert trace.slowdown == pytest.approx((1 + 6 / 4 + 1) / 3)
    assert waiting(jobs, trace.left, [0, 1, 2]).tolist() == [1, 1, 0]


def test_a_job_placed_ahead_leaves_its_slot_at_once() -> None:
    # One unit. At 0, a starts; b is given step 2, and waits no longer in its slot.
    trace = watched(jobset((0, 2, 1), (0, 1, 1)), cluster(1, slots=2, ahead=True), first_legal, "first")
    assert trace.start.tolist() == [0, 2]
    assert trace.left.tolist() == [0, 0]


def test_what_the_cut_leaves_undone_is_told() -> None:
    trace = watch("sjf", HEURISTICS["sjf"], jobset((0, 4, 1), (0, 4, 1)), cluster(1), 3, KEY)
    assert trace.start.tolist() == [0, -1]
    assert (trace.steps, trace.unfinished) == (3, 2)
    assert waiting(jobset((0, 4, 1), (0, 4, 1)), trace.left, [0, 2]).tolist() == [1, 1]


@given(st.integers(0, 2**32 - 1), st.booleans())
def test_withheld_steps_are_those_that_the_simulator_counts(seed: int, ahead: bool) -> None:
    of = cluster(4, 4, horizon=6, slots=3, ahead=ahead)
    jobs = random_jobset(np.random.default_rng(seed), of, 20, 15)
    trace = watched(jobs, of, heuristic(hold(3)), "hold")
    simulator = Batched(batch([jobs]), of, 100, skip_forced=True)
    play(simulator, heuristic(hold(3)), KEY)
    end = simulator.schedule()
    assert trace.start.tolist() == end.start.tolist()
    assert [len(steps) for steps in trace.withheld] == end.withheld.tolist()
    assert trace.withheld_steps == end.withheld_steps[0]
    for job, steps in enumerate(trace.withheld):
        assert all(jobs.arrival[job] <= step < trace.left[job] for step in steps)


# What fits a picture


def test_all_steps_are_drawn_unless_told() -> None:
    jobs = jobset((5, 2, 1), (6, 4, 1))
    traces = [watched(jobs, cluster(1)), watched(jobs, cluster(2))]
    assert window(jobs, traces, None, None) == (5, 11)
    assert window(jobs, traces, 6, 8) == (6, 8)


@pytest.mark.parametrize(("begin", "end"), [(4, None), (11, None), (7, 7), (8, 6)])
def test_steps_in_which_nothing_happens_are_refused(begin: int, end: int | None) -> None:
    jobs = jobset((5, 2, 1), (6, 4, 1))
    with pytest.raises(UserError, match="nothing to draw; the jobset runs from step 5 to 11"):
        window(jobs, [watched(jobs, cluster(1))], begin, end)


def test_of_too_many_waiting_jobs_those_stay_that_are_withheld_or_wait_longest() -> None:
    count = MOST_LINES + 10
    left = np.arange(1, count + 1)  # job k waits for k + 1 steps
    withheld: list[list[int]] = [[] for _ in range(count)]
    withheld[3] = [2]
    trace = Trace("one", left, left + 1, left, withheld, count + 1, 1.0, 0)
    late, waits = late_jobs(jobset(*[(0, 1, 1)] * count), [trace], Window(0, count))
    assert waits == count
    assert late == [3, *range(11, count)]


# The picture


def drawn(ratio: tuple[int, int] = (0, 6)) -> tuple[Scene, list[Trace], Window]:
    jobs, of = jobset((0, 2, 1, 1), (0, 4, 1, 1), (1, 1, 1, 0)), cluster(2, 2, slots=2)
    three = Scene("three jobs", jobs, ["a", "b", "c"], {"cpu": 2, "memory": 2}, 2)
    return three, [watched(jobs, of, short_ones, "short ones"), watched(jobs, of)], Window(*ratio)


def test_both_policies_are_drawn_on_the_same_axes() -> None:
    three, traces, shown = drawn()
    figure = side_by_side(three, traces, shown)
    png(figure)
    left, right = figure.axes[:-1:2], figure.axes[1:-1:2]
    assert len(left) == len(right) == 4  # cpu, memory, jobs waiting, waiting jobs
    for one, other in zip(left, right, strict=True):
        assert one.get_xlim() == other.get_xlim() == (0, 6)
        assert one.get_ylim() == other.get_ylim()
    assert left[0].get_title(loc="left").startswith("short ones: mean slowdown 1.17, makespan 6\n")
    assert right[0].get_title(loc="left").startswith("sjf: mean slowdown ")


def test_a_withheld_job_is_hatched_in_its_steps() -> None:
    three, traces, shown = drawn()
    figure = side_by_side(three, traces, shown)
    lines = figure.axes[6]
    hatched = [marks for marks in lines.collections if isinstance(marks, PolyCollection) and marks.get_hatch()]
    spans = [path.get_extents() for marks in hatched for path in marks.get_paths()]
    assert [(box.x0, box.x1) for box in spans] == [(0, 1)]  # b, in step 0
    assert [text.get_text() for text in lines.get_yticklabels()] == ["b", "c"]  # c waits under SJF
    assert [bar.get_width() for bar in lines.patches if isinstance(bar, Rectangle)] == [2]  # from 0 to 2


def test_rectangles_end_where_the_picture_does() -> None:
    three, traces, _ = drawn()
    axes = side_by_side(three, traces, Window(1, 4)).axes[0]
    boxes = [bar.get_bbox() for bar in axes.patches if isinstance(bar, Rectangle)]
    assert sorted((box.x0, box.x1) for box in boxes) == [(1, 2), (1, 2), (2, 4)]


def test_a_picture_is_the_same_bytes_each_time() -> None:
    one, again = (png(side_by_side(*drawn())) for _ in range(2))
    assert one == again
