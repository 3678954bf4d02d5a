"""A controller says once a minute how it goes, and soon when a queue has no policy."""

from pathlib import Path

import pytest
from slurm_said import sinfo, squeue

from pipeline.steering.factors import PoolDecision
from pipeline.steering.rows import Reading, jobs_in, nodes_in
from pipeline.steering.settings import Status
from pipeline.steering.states import Pool

ROWS = jobs_in("\n".join(squeue(JobID=k) for k in (9, 7, 8)))  # by Slurm's priorities
READING = Reading(0.0, ROWS, nodes_in(sinfo("n1")), {})
POOL = Pool(("gpu", "work"), [], ROWS, [])
ORDERED = PoolDecision(POOL, [7, 8, 9], "sjf", "d", "")
LACKING = PoolDecision(POOL, None, "sjf", "d", "no answer within 200 ms")


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_line_a_minute_has_both_orders_and_what_was_done(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    status = Status("moved", clock)
    for now, moved in ((0.0, 3), (20.0, 2), (40.0, 1), (60.0, 4)):
        clock.now = now
        status.tick([ORDERED], READING, moved, "Job has already finished for job 3\n" * (now == 20.0), 12.4)
    assert capsys.readouterr().err.splitlines() == [
        "steer: 3 jobs wait; gpu,work: first 7, 9 in Slurm's order; 3 moved; 12 ms a tick",
        "steer: 3 jobs wait; gpu,work: first 7, 9 in Slurm's order; 7 moved; 12 ms a tick; "
        "scontrol: Job has already finished for job 3",
    ]


def test_a_queue_without_a_policy_is_said_at_the_third_tick_and_each_minute(capsys: pytest.CaptureFixture[str]) -> None:
    status = Status("moved", Clock())
    assert [status.count_lacking(one) for one in (LACKING, ORDERED, LACKING, LACKING)] == [1, 0, 1, 2]
    assert capsys.readouterr().err == ""
    assert [status.count_lacking(LACKING), status.count_lacking(LACKING)] == [3, 4]
    status.tick([LACKING], READING, 0, "", 1.0)
    assert status.count_lacking(ORDERED) == 0
    assert capsys.readouterr().err.splitlines() == [
        "steer: gpu,work: no policy for 3 ticks: no answer within 200 ms; Slurm's own order applies",
        "steer: 3 jobs wait; gpu,work: no policy for 4 ticks: no answer within 200 ms; 0 moved; 1 ms a tick",
        "steer: gpu,work: the policy answers again",
    ]


def test_a_queue_without_a_policy_is_a_metric(tmp_path: Path) -> None:
    status = Status("moved", Clock())
    for one in (LACKING, LACKING, ORDERED._replace(pool=Pool(("work",), [], ROWS, []))):
        status.count_lacking(one)
    name = "deeprm_steer_ticks_without_policy"
    expected = f'# TYPE {name} gauge\n{name}{{queue="gpu,work"}} 2\n{name}{{queue="work"}} 0\n'
    status.write_metrics(tmp_path)
    assert (tmp_path / "metrics.prom").read_text() == expected
    status.write_metrics(tmp_path / "gone" / "full")  # nowhere to write: no error


def test_many_queues_are_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    Status("let go", Clock()).tick([ORDERED] * 5, READING, 0, "", 1.0)
    assert "; 2 more queues; 0 let go; " in capsys.readouterr().err
