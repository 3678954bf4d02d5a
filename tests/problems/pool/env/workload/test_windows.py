"""A log in steps and units, and windows of it; expected numbers are worked by hand from a few lines."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from swf_lines import GIB_KB, HPC2N, LUBLIN, line, read, there

from pipeline.core.config import Counts, PoolLog
from pipeline.core.logs import swf as logs
from pipeline.core.logs.trace import Trace
from pipeline.core.logs.windows import periods, random_start
from pipeline.core.logs.windows import starts as first_jobs
from pipeline.errors import UserError
from pipeline.interactive.scheduling.user_jobs import UserJobs
from pipeline.problems.pool.env.nouns import JobSet
from pipeline.problems.pool.env.workload.windows import Discretised, describe, discretise

STEP_KB = GIB_KB / 1000  # a thousandth of a GiB


def consecutive(steps: Discretised, span: tuple[int, int], size: int, most: int) -> list[JobSet]:
    """The windows of a period."""
    return [steps.window(start, size) for start in first_jobs(span, size, most)]


def cut(steps: Discretised, size: int, most: Counts) -> list[list[JobSet]]:
    """The windows of all splits."""
    spans = periods(len(steps.arrival), swf())
    return [consecutive(steps, span, size, getattr(most, split)) for split, span in spans.items()]


def swf(**settings: object) -> PoolLog:
    return PoolLog.model_validate({"name": "swf", "path": "log.swf", **settings})


def numbered(jobs: int) -> Discretised:
    """Job k arrives at step k, runs k + 1 steps and wants k units."""
    job = np.arange(jobs)
    none: dict[str, int] = {}
    return Discretised(job, job, job + 1, job[:, None], 1, jobs, 0, none, {}, {}, none, {})


# Steps and units


def test_arrivals_are_whole_steps_since_the_first_job(tmp_path: Path) -> None:
    log = read(tmp_path, *(line(submit=s) for s in (1000, 1059, 1060, 1179, 1180)))
    assert discretise(log, swf(step_s=60), {"cpu": 10}, 20).arrival.tolist() == [0, 0, 1, 2, 3]


def test_durations_are_rounded_up_and_cut_to_the_shorter_limit(tmp_path: Path) -> None:
    log = read(tmp_path, *(line(run=s) for s in (1, 60, 61, 300, 301, 9999)))
    steps = discretise(log, swf(step_s=60, max_steps=5), {"cpu": 10}, 20)
    assert (steps.duration.tolist(), steps.capped) == ([1, 1, 2, 5, 5, 5], 2)
    steps = discretise(log, swf(step_s=60, max_steps=5), {"cpu": 10}, 4)
    assert (steps.duration.tolist(), steps.capped) == ([1, 1, 2, 4, 4, 4], 3)


def test_estimates_become_steps_as_durations_do_and_unknown_ones_are_durations(tmp_path: Path) -> None:
    log = read(tmp_path, *(line(run=100, estimate=s) for s in (1, 60, 61, 9999, -1)))
    told = discretise(log, swf(step_s=60, max_steps=5), {"cpu": 10}, 20, estimates=True)
    assert told.estimate is not None
    assert told.estimate.tolist() == [1, 1, 2, 5, 2]
    assert discretise(log, swf(step_s=60, max_steps=5), {"cpu": 10}, 20).estimate is None
    assert told.window(0, 5).requested.tolist() == [1, 1, 2, 5, 2]


def test_those_who_overrun_are_told_of(tmp_path: Path) -> None:
    # Of 100 s told 1 and 60 s; 61 s are two steps, as 100 s are.
    log = read(tmp_path, *(line(run=100, estimate=s) for s in (1, 60, 61, 9999, -1)))
    steps = discretise(log, swf(step_s=60, max_steps=5), {"cpu": 10}, 20, estimates=True)
    said = "run times known to policies: 3 jobs (60.0%) run longer, 2 (40.0%) in steps"
    assert said in describe(log, steps)
    assert "estimate unknown: its run time taken (1 rows)" in describe(log, steps)


def test_a_log_as_a_table_tells_its_estimates_in_every_part(tmp_path: Path) -> None:
    log = read(tmp_path, *(line(id=k, submit=60 * k, run=100, estimate=60 * k) for k in (1, 2, 3)))
    how = swf(step_s=60, max_steps=5)
    for told, expected in ((True, [1, 2, 3]), (False, None)):
        steps = discretise(log, how, {"cpu": 10}, 20, estimates=told)
        columns = (steps.arrival, steps.duration, steps.demand, steps.estimate)
        (part,) = UserJobs(pa.table({}), np.zeros(3, dtype=np.int32), JobSet(*columns)).parts(20)
        assert (None if part.jobs.estimate is None else part.jobs.estimate.tolist()) == expected


def test_processors_become_the_nearest_unit_half_up_and_at_least_one(tmp_path: Path) -> None:
    log = read(tmp_path, "; MaxProcs: 40", *(line(allocated=n) for n in (1, 5, 6, 9, 10, 38, 40, 41, 400)))
    steps = discretise(log, swf(), {"cores": 10}, 20)  # a unit is 4 processors: 1.25, 1.5, 2.25, 2.5, 9.5
    assert steps.demand[:, 0].tolist() == [1, 1, 2, 2, 3, 10, 10, 10, 10]
    assert steps.oversized == {"cores": 2}


def test_memory_is_that_of_all_processors_and_none_where_unknown(tmp_path: Path) -> None:
    log = read(
        tmp_path,
        "; MaxProcs: 10",
        line(allocated=5, used_kb=100 * STEP_KB),  # 500 of 1000 thousandths
        line(allocated=1, used_kb=100 * STEP_KB),  # 100
        line(allocated=1, used_kb=1 * STEP_KB),  # 1: still a unit
        line(allocated=9),  # unknown
        line(submit=50, allocated=10, used_kb=200 * STEP_KB),  # 2000: more than all
    )
    steps = discretise(log, swf(memory_kb=GIB_KB), {"cpu": 10, "memory": 10}, 20)
    assert steps.demand.tolist() == [[5, 5], [1, 1], [1, 1], [9, 0], [10, 10]]
    assert steps.oversized == {"cpu": 0, "memory": 1}
    swapped = discretise(log, swf(memory_kb=GIB_KB), {"memory": 10, "cpu": 10}, 20)
    assert swapped.demand.tolist() == steps.demand[:, ::-1].tolist()
    # 10 s of 5 + 1 + 1 + 9 + 10 processors, of 10 for 50 s.
    assert swapped.load["cpu"][0] == steps.load["cpu"][0] == pytest.approx(0.52)


def test_all_memory_is_the_most_held_at_once_where_nobody_says(tmp_path: Path) -> None:
    log = read(
        tmp_path,
        "; MaxProcs: 10",
        line(submit=0, run=10, allocated=4, used_kb=100 * STEP_KB),  # alone: 400
        line(submit=20, run=10, allocated=1, used_kb=300 * STEP_KB),  # with the next: 300 + 500, below 10 x 300
        line(submit=20, run=10, allocated=5, used_kb=100 * STEP_KB),
    )
    assert discretise(log, swf(), {"cpu": 10, "memory": 10}, 20).total == {"cpu": 10, "memory": 0.8}


def test_a_log_that_knows_no_memory_asks_for_none(tmp_path: Path) -> None:
    log = read(tmp_path, line(submit=0), line(submit=10))
    steps = discretise(log, swf(), {"cpu": 10, "memory": 10}, 20)
    assert steps.demand[:, 1].tolist() == [0, 0]
    assert steps.load["memory"] == (0, 0)


@pytest.mark.parametrize(
    ("resources", "named"), [({"cpu": 10, "gpu": 4}, "'gpu'"), ({"memory": 4}, "no resource for processors")]
)
def test_a_resource_no_log_knows_is_refused(tmp_path: Path, resources: dict[str, int], named: str) -> None:
    with pytest.raises(UserError, match=named):
        discretise(read(tmp_path, line()), swf(), resources, 20)


def two_jobs(tmp_path: Path) -> Trace:
    return read(
        tmp_path,
        "; MaxProcs: 20",
        line(submit=0, run=90, allocated=3, used_kb=100 * STEP_KB),
        line(submit=600, run=900, allocated=10, used_kb=-1),
    )


def test_load_is_reckoned_before_and_after(tmp_path: Path) -> None:
    # Before: (90 * 3 + 900 * 10) / (20 * 600) = 9270 / 12000. A unit is 2 processors; 3 of them are 1.5, so 2 units.
    # After: (2 steps * 2 units + 5 * 5) / (10 units * 10 steps) = 29 / 100.
    # Memory: 1 job, all of 0.3 GiB: 90 s of 600 s before, 2 steps of 10 after.
    steps = discretise(two_jobs(tmp_path), swf(step_s=60, max_steps=5), {"cpu": 10, "memory": 10}, 20)
    assert (steps.load["cpu"][0], steps.load_after) == (pytest.approx(0.7725), pytest.approx(0.29))
    assert steps.load["memory"] == (pytest.approx(0.15), pytest.approx(0.2))


def test_load_without_a_span_is_undefined(tmp_path: Path) -> None:
    log = read(tmp_path, line(), line())
    steps = discretise(log, swf(), {"cpu": 10}, 20)
    assert np.isnan([steps.load["cpu"][0], steps.load_after]).all()
    assert "load undefined (all jobs arrive at once)" in describe(log, steps)[-1]


def test_a_description_says_what_became_of_the_log(tmp_path: Path) -> None:
    log = two_jobs(tmp_path)
    steps = discretise(log, swf(step_s=60, max_steps=5, memory_kb=5 * GIB_KB), {"cpu": 1, "memory": 10}, 20)
    assert describe(log, steps) == [
        "2 rows, 2 jobs over 0.0 days",
        "memory unknown: holds none (1 rows)",
        "durations: steps of 60 s, rounded up; 1 jobs (50.0%) run longer than 5 and are cut",
        "cpu: 1 units of 20 cores; load 77.2% in the log, 70.0% in steps",
        "memory: 10 units of 0.5 GiB; load 0.9% in the log, 2.0% in steps",
    ]


# Windows


def starts(windows: list[JobSet]) -> list[int]:
    """Return the first job of each: in `numbered` logs a job's demand is its number."""
    return [int(window.demand[0, 0]) for window in windows]


def test_windows_fill_their_period() -> None:
    assert starts(consecutive(numbered(100), (10, 40), size=10, most=9)) == [10, 20, 30]
    assert starts(consecutive(numbered(100), (10, 44), size=10, most=9)) == [10, 22, 34]
    assert starts(consecutive(numbered(100), (10, 19), size=9, most=9)) == [10]


def test_fewer_windows_than_fit_are_spread_over_the_period() -> None:
    assert starts(consecutive(numbered(100), (0, 100), size=10, most=4)) == [0, 30, 60, 90]
    assert starts(consecutive(numbered(100), (0, 100), size=10, most=1)) == [0]


@pytest.mark.parametrize(("jobs", "size", "most"), [(1000, 60, 99), (997, 7, 50), (119, 60, 9), (1000, 3, 301)])
def test_no_job_is_in_two_windows(jobs: int, size: int, most: int) -> None:
    windows = consecutive(numbered(jobs), (0, jobs), size, most)
    used = np.concatenate([window.demand[:, 0] for window in windows])
    assert len(windows) == min(jobs // size, most)
    assert len(np.unique(used)) == len(used) == size * len(windows)


def test_a_window_starts_at_step_0() -> None:
    window = consecutive(numbered(100), (10, 13), size=3, most=1)[0]
    assert window.arrival.tolist() == [0, 1, 2]
    assert window.duration.tolist() == [11, 12, 13]
    assert window.demand.tolist() == [[10], [11], [12]]


def test_splits_share_no_job() -> None:
    windows = cut(numbered(400), 20, Counts(train=5, validation=50, test=50))
    assert [len(split) for split in windows] == [5, 3, 5]
    used = np.concatenate([window.demand[:, 0] for split in windows for window in split])
    assert len(np.unique(used)) == len(used)
    last = [split[-1].demand[-1, 0] for split in windows]
    first = [split[0].demand[0, 0] for split in windows]
    assert (first, last) == ([0, 240, 300], [239, 299, 399])


def test_random_windows_start_anywhere_and_stay_inside() -> None:
    rng = np.random.default_rng(1)
    assert {random_start((10, 20), 7, rng) for _ in range(200)} == {10, 11, 12, 13}


def test_a_period_too_short_for_a_window_is_refused() -> None:
    with pytest.raises(UserError, match=r"a period of 5 jobs \(10 to 15 of the log\) is shorter than a window of 6"):
        consecutive(numbered(100), (10, 15), 6, 1)
    with pytest.raises(UserError, match="shorter than a window"):
        random_start((10, 15), 6, np.random.default_rng(1))


# Real logs


def test_hpc2n_becomes_steps_and_units() -> None:
    log = logs.read(there(HPC2N))
    steps = discretise(log, swf(), {"cpu": 10, "memory": 10}, 20)
    assert steps.capped == (log.run_s > 20 * 3600).sum()
    processors = log.demand[:, 0] / 1000
    assert steps.load["cpu"][0] == pytest.approx(log.run_s @ processors / (240 * (log.submit_s[-1] - log.submit_s[0])))
    assert (steps.demand[:, 1] == 0).sum() == 2121
    assert all(len(split) for split in cut(steps, 60, Counts(train=100, validation=30, test=50)))


def test_lublin_becomes_steps_and_units() -> None:
    assert discretise(logs.read(there(LUBLIN)), swf(), {"cpu": 10}, 20).load["cpu"][0] == pytest.approx(1.06, abs=0.005)
