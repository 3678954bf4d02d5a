"""Where the rectangles of a schedule lie, and how high they are."""

from itertools import combinations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pipeline.interactive.showing.drawing import Box, bars


def placed(*jobs: tuple[float, float, float], room: float = 1.0) -> list[Box]:
    start, finish, held = (np.array(column) for column in zip(*jobs, strict=True))
    return bars(start, finish, held, room)


def test_a_job_gets_the_lowest_gap_that_is_high_enough() -> None:
    # At 0, a lies from 0 to 0.5, b on it; at 1, b is gone, and c gets its place.
    assert placed((0, 3, 0.5), (0, 1, 0.25), (1, 4, 0.5)) == [
        Box(0, 0, 3, 0.0, 0.5),
        Box(1, 0, 1, 0.5, 0.75),
        Box(2, 1, 4, 0.5, 1.0),
    ]


def test_a_job_is_split_where_no_gap_is_high_enough() -> None:
    # At 2, half of the lane is free: a quarter below b and one above it.
    assert placed((0, 2, 0.25), (0, 5, 0.5), (2, 4, 0.5))[2:] == [Box(2, 2, 4, 0.0, 0.25), Box(2, 2, 4, 0.75, 1.0)]


def test_whole_units_of_a_resource_are_split_the_same_way() -> None:
    # At 2, units 0 and 2 are free, with b between them.
    assert placed((0, 2, 1), (0, 5, 1), (2, 4, 2), room=3) == [
        Box(0, 0, 2, 0, 1),
        Box(1, 0, 5, 1, 2),
        Box(2, 2, 4, 0, 1),
        Box(2, 2, 4, 2, 3),
    ]


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(1, 9), st.integers(0, 10)), min_size=1, max_size=30))
def test_rectangles_never_overlap_and_hold_what_jobs_hold(jobs: list[tuple[int, int, int]]) -> None:
    kept, held = [], np.zeros(40)
    for begin, length, tenths in sorted(jobs):  # only those that the machine could hold
        if (held[begin : begin + length] + tenths <= 10).all():
            held[begin : begin + length] += tenths
            kept.append((begin, begin + length, tenths / 10))
    if not kept:
        return
    found = placed(*kept)
    heights = np.bincount([box.job for box in found], [box.top - box.bottom for box in found], minlength=len(kept))
    assert np.allclose(heights, [share for _, _, share in kept])
    for a, b in combinations(found, 2):
        apart = a.end <= b.begin or b.end <= a.begin
        above = a.top <= b.bottom + 1e-6 or b.top <= a.bottom + 1e-6
        assert apart or above
    assert max(box.top for box in found) <= 1 + 1e-6
