"""A schedule as a picture: who was withheld when, what is drawn, and what does not fit a picture."""

from itertools import combinations

import numpy as np
import pytest
from builders import cluster, jobset, random_jobset
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from readable import faults

from pipeline.comparing.plots import png
from pipeline.core.config import Params
from pipeline.core.types import Observation, Policy, keys
from pipeline.interactive.pool.showing import MOST_LINES, grid, late_jobs, placed, watch
from pipeline.interactive.showing.drawing import Window, side_by_side
from pipeline.interactive.showing.show import Chosen, Trace, queued
from pipeline.interactive.showing.show import watched as as_shown
from pipeline.problems.pool.env.nouns import Cluster, JobSet, batch
from pipeline.problems.pool.env.simulator.batch import Batched
from pipeline.problems.pool.heuristics.scores import HEURISTICS
from pipeline.simulation.rollout import heuristic, play
from tests.oracles.pool_heuristics import hold

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
    assert trace.end == 6
    assert trace.said == "makespan 6\n1 steps not work-conserving (17 %), 1 jobs withheld"
    assert trace.slowdown.mean() == pytest.approx((1 + 6 / 4 + 1) / 3)
    assert [one.tolist() for one in queued(jobs.arrival, trace, Window(0, 6))] == [[0, 1, 2, 6], [1, 1, 0]]


def test_a_job_placed_ahead_leaves_its_slot_at_once() -> None:
    # One unit. At 0, a starts; b is given step 2, and waits no longer in its slot.
    trace = watched(jobset((0, 2, 1), (0, 1, 1)), cluster(1, slots=2, ahead=True), first_legal, "first")
    assert trace.start.tolist() == [0, 2]
    assert trace.left.tolist() == [0, 0]


def test_what_the_cut_leaves_undone_is_told() -> None:
    jobs = jobset((0, 4, 1), (0, 4, 1))
    trace = watch("sjf", HEURISTICS["sjf"], jobs, cluster(1), 3, KEY)
    np.testing.assert_array_equal(trace.start, [0, np.nan])
    assert trace.end == 3
    assert trace.said.startswith("makespan 3, 2 jobs unfinished\n0 steps")
    assert [one.tolist() for one in queued(jobs.arrival, trace, Window(0, 5))] == [[0, 3, 5], [1, 0]]
    assert [one.tolist() for one in queued(jobs.arrival, trace, Window(1, 5))] == [[1, 3, 5], [1, 0]]


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
    assert f"\n{end.withheld_steps[0]} steps not work-conserving" in trace.said
    for job, steps in enumerate(trace.withheld):
        assert all(jobs.arrival[job] <= step < trace.left[job] for step in steps)


# What fits a picture


def test_of_too_many_waiting_jobs_those_stay_that_are_withheld_or_wait_longest() -> None:
    count = MOST_LINES + 10
    left = np.arange(1, count + 1)  # job k waits for k + 1 steps
    withheld: list[list[int]] = [[] for _ in range(count)]
    withheld[3] = [2]
    trace = Trace("one", left, left + 1, left, np.ones(count), count + 1, "", withheld)
    late, waits = late_jobs(jobset(*[(0, 1, 1)] * count), [trace], Window(0, count))
    assert waits == count
    assert late == [3, *range(11, count)]


# Where jobs are drawn


@given(st.integers(0, 2**32 - 1))
def test_rectangles_hold_every_unit_and_never_overlap(seed: int) -> None:
    of = cluster(5, 4, horizon=6, slots=4)
    jobs = random_jobset(np.random.default_rng(seed), of, 15, 12)
    trace = watched(jobs, of)
    for r, units in enumerate(of.capacity):
        found = placed(trace, jobs, r, units)
        held = np.bincount([box.job for box in found], [box.top - box.bottom for box in found], minlength=15)
        assert held.tolist() == jobs.demand[:, r].tolist()
        assert max((box.top for box in found), default=0) <= units
        for a, b in combinations(found, 2):
            assert a.end <= b.begin or b.end <= a.begin or a.top <= b.bottom or b.top <= a.bottom


def test_jobs_that_never_start_or_want_nothing_are_not_drawn() -> None:
    start = np.array([np.nan, 0, 0])
    trace = Trace("one", start, np.array([9, 1, 1]), start, np.ones(3), 9, "")
    assert placed(trace, jobset((0, 1, 2), (0, 1, 0), (0, 1, 1)), 0, 2) == [(2, 0, 1, 0, 1)]


# The picture


def drawn(params: Params, begin: int = 0, end: int = 6) -> Figure:
    jobs, of = jobset((0, 2, 1, 1), (0, 4, 1, 1), (1, 1, 1, 0)), cluster(2, 2, slots=2)
    row = params.pool_scenario("online").model_copy(update={"resources": {"cpu": 2, "memory": 2}, "slots": 2})
    three, shown = Chosen("three jobs", jobs, ["a", "b", "c"], 0), Window(begin, end)
    traces = [watched(jobs, of, short_ones, "short ones"), watched(jobs, of)]
    found = as_shown(traces, jobs.arrival, lambda part: grid(three, row, traces, part))
    return side_by_side("three jobs", found.halves, found.grid(shown), shown)


def test_both_policies_are_drawn_on_the_same_axes(params: Params) -> None:
    figure = drawn(params)
    png(figure)
    assert list(faults(figure)) == []
    left, right = figure.axes[:-1:2], figure.axes[1:-1:2]
    assert len(left) == len(right) == 4  # cpu, memory, jobs waiting, waiting jobs
    for one, other in zip(left, right, strict=True):
        assert one.get_xlim() == other.get_xlim() == (0, 6)
        assert one.get_ylim() == other.get_ylim()
    assert left[0].get_title(loc="left").startswith("short ones: mean slowdown 1.17, makespan 6\n")
    assert right[0].get_title(loc="left").startswith("sjf: mean slowdown ")


def test_a_withheld_job_is_hatched_in_its_steps(params: Params) -> None:
    figure = drawn(params)
    lines = figure.axes[6]
    hatched = [marks for marks in lines.collections if isinstance(marks, PolyCollection) and marks.get_hatch()]
    spans = [path.get_extents() for marks in hatched for path in marks.get_paths()]
    assert [(box.x0, box.x1) for box in spans] == [(0, 1)]  # b, in step 0
    assert [text.get_text() for text in lines.get_yticklabels()] == ["b", "c"]  # c waits under SJF
    assert [bar.get_width() for bar in lines.patches if isinstance(bar, Rectangle)] == [2]  # from 0 to 2


def test_rectangles_end_where_the_picture_does(params: Params) -> None:
    (marks,) = drawn(params, 1, 4).axes[0].collections
    boxes = [path.get_extents() for path in marks.get_paths()]
    assert sorted((box.x0, box.x1) for box in boxes) == [(1, 2), (1, 2), (2, 4)]


def test_a_picture_is_the_same_bytes_each_time(params: Params) -> None:
    one, again = (png(drawn(params)) for _ in range(2))
    assert one == again
