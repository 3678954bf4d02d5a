"""Which part of the time is drawn, and what is too much for a picture."""

import pytest

from pipeline.errors import UserError
from pipeline.interactive.showing.drawing import Grid, Window
from pipeline.interactive.showing.show import Watched, window

WATCHED = Watched([], [], 5, 11, lambda shown: 7, lambda shown: Grid([], "Step", "", 0))


def test_all_of_the_time_is_drawn_unless_a_part_is_asked_for() -> None:
    assert window(WATCHED, None, None) == (5, 11)
    assert window(WATCHED, 6, 8) == (6, 8)
    assert window(WATCHED, 1, 8) == (5, 8)


@pytest.mark.parametrize(("begin", "end"), [(11, None), (7, 7), (8, 6), (0, 5)])
def test_a_time_in_which_nothing_happens_is_refused(begin: int, end: int | None) -> None:
    with pytest.raises(UserError, match="nothing to draw; the jobset runs from 5 to 11"):
        window(WATCHED, begin, end)


def test_what_is_too_much_for_a_picture_is_refused() -> None:
    assert window(WATCHED, None, None, 7, 6) == Window(5, 11)
    with pytest.raises(
        UserError, match=r"^7 jobs are too many for one picture \(at most 6\); the jobset runs from 5 to"
    ):
        window(WATCHED, None, None, 6)
    with pytest.raises(UserError, match=r"^7 jobs in 6 steps are too many for one picture \(at most 9 in 5 steps\)"):
        window(WATCHED, None, None, 9, 5)
