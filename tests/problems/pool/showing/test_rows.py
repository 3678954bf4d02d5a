"""Where the rectangles of a schedule lie."""

from itertools import combinations

import numpy as np
import pytest
from builders import cluster, random_jobset
from hypothesis import given
from hypothesis import strategies as st

from pipeline.core import keys
from pipeline.problems.pool.heuristics.scores import HEURISTICS
from pipeline.problems.pool.showing.rows import Block, blocks
from pipeline.problems.pool.showing.watching import watch


def placed(*jobs: tuple[int, int, int], units: int) -> list[Block]:
    start, finish, demand = (np.array(column) for column in zip(*jobs, strict=True))
    return blocks(start, finish, demand, units)


def test_a_job_gets_the_lowest_rows_that_lie_together() -> None:
    # At 0, a takes rows 0 and 1, b row 2; at 1, b is gone, and c takes rows 2 and 3.
    assert placed((0, 3, 2), (0, 1, 1), (1, 4, 2), units=4) == [
        Block(0, 0, 2, 0, 3),
        Block(1, 2, 1, 0, 1),
        Block(2, 2, 2, 1, 4),
    ]


def test_a_job_is_split_where_no_gap_is_wide_enough() -> None:
    # At 2, rows 0 and 2 are free, with b between them.
    assert placed((0, 2, 1), (0, 5, 1), (2, 4, 2), units=3) == [
        Block(0, 0, 1, 0, 2),
        Block(1, 1, 1, 0, 5),
        Block(2, 0, 1, 2, 4),
        Block(2, 2, 1, 2, 4),
    ]


def test_jobs_that_never_start_or_want_nothing_are_not_drawn() -> None:
    assert placed((-1, 9, 2), (0, 1, 0), (0, 1, 1), units=2) == [Block(2, 0, 1, 0, 1)]


def test_a_schedule_beyond_the_capacity_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="holds 1 units more"):
        placed((0, 2, 2), (1, 2, 2), units=3)


@given(st.integers(0, 2**32 - 1))
def test_rectangles_hold_every_unit_and_never_overlap(seed: int) -> None:
    of = cluster(5, 4, horizon=6, slots=4)
    jobs = random_jobset(np.random.default_rng(seed), of, 15, 12)
    trace = watch("sjf", HEURISTICS["sjf"], jobs, of, 100, keys(0, np.array([0]), np.array([0])))
    for r, units in enumerate(of.capacity):
        found = blocks(trace.start, trace.finish, jobs.demand[:, r], units)
        held = np.bincount([b.job for b in found], [b.units for b in found], minlength=15)
        assert held.tolist() == jobs.demand[:, r].tolist()
        assert max((b.row + b.units for b in found), default=0) <= units
        for a, b in combinations(found, 2):
            apart = a.end <= b.begin or b.end <= a.begin or a.row + a.units <= b.row or b.row + b.units <= a.row
            assert apart
