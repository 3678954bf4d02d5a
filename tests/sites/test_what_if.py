"""`what-if`: changes of a queue, each computed by hand, and questions that it refuses."""

import numpy as np
import pytest
from queue_builders import Job, queue

from pipeline.core.config import Evaluation
from pipeline.errors import UserError
from pipeline.sites.queue import Period
from pipeline.sites.replay import Outages
from pipeline.sites.what_if import changed_by, what_if

HOUR = 3_600.0
SETTINGS = Evaluation(resamples=100, confidence=0.95)


def period(machines: int = 1) -> Period:
    """Three jobs, one every half hour from 9:00 on; each takes both processors for an hour; two equal replays."""
    jobs = [Job(at * HOUR, HOUR, 2, limit=2 * HOUR, user=min(k, 1)) for k, at in enumerate((9.0, 9.5, 10.0))]
    rows = queue([2] * machines, *jobs)
    submit = rows.submit
    every = np.stack([submit - submit[0]] * 2)
    unknown = np.full(3, np.nan)
    user = np.array([7, 8, 8])
    return Period(rows, 0, every, np.argsort(every, axis=1, kind="stable"), unknown, user, unknown)


def test_twice_the_machines_halve_the_queue() -> None:
    """Waits are 0, 30 and 60 minutes on one machine; with two, the second job finds one free, and so does the third."""
    found, blocks = what_if(period(), "fcfs", "nodes=+100%", 0.0, SETTINGS, 1, 1)
    assert blocks == 1
    assert found["wait"].today == pytest.approx(HOUR / 2)
    assert found["wait"].value == 0
    assert found["longest_wait"].change == pytest.approx(-1)


def test_machines_are_added_and_removed_by_kind_in_proportion() -> None:
    assert len(changed_by("nodes=+50%", 0.0)(period(4)).queue.capacity) == 6
    fewer = changed_by("nodes=-50%", 0.0)(period(4)).queue
    assert (len(fewer.capacity), fewer.members.shape) == (2, (1, 2))
    with pytest.raises(UserError, match="nodes: 3 jobs of the log would fit on no machine"):
        changed_by("nodes=-10%", 0.0)(period())


def test_outages_stay_with_the_machines_that_are_left_and_are_those_of_their_copies() -> None:
    four = period(4)
    out = Outages(np.array([3, 2]), np.array([1.0, 2.0]), np.array([5.0, 9.0]), np.array([False, True]))
    four = four._replace(queue=four.queue._replace(outages=out))
    fewer = changed_by("nodes=-50%", 0.0)(four).queue.outages  # machines 0 and 2 remain
    assert [column.tolist() for column in fewer] == [[1], [2.0], [9.0], [True]]
    more = changed_by("nodes=+100%", 0.0)(four).queue.outages
    assert [column.tolist() for column in more] == [[4, 5, 6, 7], [2.0, 2.0, 1.0, 1.0], [9.0, 9.0, 5.0, 5.0],
                                                    [True, True, False, False]]  # fmt: skip
    found, _ = what_if(four, "fcfs", "nodes=-75%", 0.0, SETTINGS, 1, 1)
    assert found["longest_wait"].value == HOUR  # as without outages, because machine 0 has none


def test_outages_are_as_long_among_jobs_that_arrive_faster() -> None:
    one = period()
    out = Outages(np.array([0]), np.array([1_250.0]), np.array([2_000.0]), np.array([False]))
    moved = changed_by("load=+25%", 0.0)(one._replace(queue=one.queue._replace(outages=out))).queue.outages
    assert (moved.begin.tolist(), moved.end.tolist()) == ([1_000.0], [1_750.0])


def test_more_load_moves_submissions_together_and_a_cap_cuts_limits_and_run_times() -> None:
    assert changed_by("load=+25%", 0.0)(period()).submit[0].tolist() == [0.0, 1_440.0, 2_880.0]
    capped = changed_by("limit=0.5h", 0.0)(period()).queue
    assert (capped.limit.tolist(), capped.run.tolist()) == ([1_800.0] * 3, [1_800.0] * 3)


def test_a_user_moves_to_the_evening_and_no_one_else_does() -> None:
    moved = changed_by("night=8", 0.0)(period()).submit[0] + 9 * HOUR
    assert (moved / HOUR).tolist() == [9.0, 20.0, 20.0]
    late = changed_by("night=8", 12 * HOUR)(period()).submit[0]  # by the log's clock it is 21:00: night already
    assert late.tolist() == period().submit[0].tolist()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("nodes=10", r"nodes=10: expected nodes=\+10%, load=\+20%, limit=24h or night=USER$"),
        ("nodes=-100%", "nodes=-100%: expected more than -100%"),
        ("limit=0h", "limit=0h: expected nodes="),
        ("night=9", "night=9: no user 9 submitted in this period"),
        ("cpus=+10%", r"cpus=\+10%: expected nodes="),
    ],
)
def test_what_cannot_be_replayed_is_refused_in_one_line(change: str, said: str) -> None:
    with pytest.raises(UserError, match=f"^{said}"):
        changed_by(change, 0.0)(period())
