"""Expected numbers are worked by hand from the few lines of each log."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from pipeline.config import Counts, Swf
from pipeline.errors import UserError
from pipeline.logs.step_log import READERS, Log, read_swf
from pipeline.logs.windows import periods
from pipeline.problems.pool.nouns import JobSet
from pipeline.problems.pool.workload.job_table import log_table, parts
from pipeline.problems.pool.workload.windows import (
    Discretised,
    at_once,
    consecutive,
    cut,
    describe,
    discretise,
    random_window,
)

SHARED = Path(__file__).parents[3] / "shared" / "traces"
HPC2N = SHARED / "HPC2N-2002-2.2-cln.first15000.swf.gz"
LUBLIN = SHARED / "lublin_256.swf.gz"


def line(
    id: int = 1,
    *,
    submit: float = 0,
    wait: float = 0,
    run: float | str = 10,
    allocated: float | str = 1,
    used_kb: float = -1,
    requested: float = -1,
    estimate: float = -1,
    requested_kb: float = -1,
) -> str:
    fields = [id, submit, wait, run, allocated, -1, used_kb, requested, estimate, requested_kb, 1, *[-1] * 7]
    return " ".join(str(field) for field in fields)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def read(folder: Path, *lines: str) -> Log:
    path = folder / "log.swf"
    path.write_text("\n".join(lines) + "\n")
    return read_swf(path)


def refusal(folder: Path, *lines: str) -> str:
    with pytest.raises(UserError) as caught:
        read(folder, *lines)
    return str(caught.value).removeprefix(str(folder / "log.swf"))


def swf(**settings: object) -> Swf:
    return Swf.model_validate({"name": "swf", "path": "log.swf", **settings})


def numbered(jobs: int) -> Discretised:
    """Job k arrives at step k, runs k + 1 steps and wants k units."""
    job = np.arange(jobs)
    none: dict[str, int] = {}
    return Discretised(job, job, job + 1, job[:, None], 1, jobs, 0, none, {}, none, {})


# Reading


def test_every_field_comes_from_its_place(folder: Path) -> None:
    log = read(folder, "; MaxProcs: 8", "", "  " + line(7, submit=100, run=50, allocated=4, used_kb=300))
    assert (log.id, log.submit_s, log.run_s, log.processors, log.memory_kb) == (7, 100, 50, 4, 300)
    assert log.max_processors == 8
    assert log.repaired == {}


def test_processors_are_the_larger_of_allocated_and_requested(folder: Path) -> None:
    log = read(folder, line(allocated=4, requested=6), line(allocated=4, requested=2), line(allocated=-1, requested=3))
    assert log.processors.tolist() == [6, 4, 3]


def test_estimates_are_read_and_zero_is_unknown(folder: Path) -> None:
    log = read(folder, line(estimate=90), line(estimate=0), line(), line(estimate=7.5))
    assert log.estimate_s.tolist() == [90, -1, -1, 8]
    assert log.repaired["fractions: rounded"] == 1


def test_requested_memory_goes_before_used_and_zero_is_unknown(folder: Path) -> None:
    log = read(
        folder,
        line(used_kb=5, requested_kb=9),
        line(used_kb=5, requested_kb=0),
        line(used_kb=0, requested_kb=-1),
        line(),
    )
    assert log.memory_kb.tolist() == [9, 5, -1, -1]


@pytest.mark.parametrize(
    ("header", "processors"),
    [
        (["; MaxNodes: 64 (128 with hyperthreading)"], 64),
        (["; MaxNodes: 64", ";MaxProcs:  128"], 128),
        (["; MaxProcs: -1", "; MaxNodes: 64"], 64),
        (["; MaxProcs: 0"], 5),
        (["; Note: MaxProcs: 99"], 5),
        ([], 5),
    ],
)
def test_the_header_sizes_the_machine_or_else_the_largest_job(folder: Path, header: list[str], processors: int) -> None:
    log = read(folder, *header, line(allocated=5), line(allocated=2))
    assert log.max_processors == processors
    assert ("no MaxProcs header: the largest job's processors taken" in log.repaired) == (processors == 5)


def test_a_missing_last_column_is_taken_as_unknown(folder: Path) -> None:
    log = read(folder, "; MaxProcs: 8", line(1).rsplit(" ", 1)[0], line(2))
    assert log.id.tolist() == [1, 2]
    assert log.repaired == {"17 columns: last one taken as unknown": 1}


def test_fractions_are_rounded_half_up_and_counted_once_a_line(folder: Path) -> None:
    log = read(folder, "; MaxProcs: 8", line(submit=0.4, run=552.21), line(submit=2.5, run=7.5), line(submit=9))
    assert log.submit_s.tolist() == [0, 3, 9]
    assert log.run_s.tolist() == [552, 8, 10]
    assert log.repaired == {"fractions: rounded": 2}


def test_a_fraction_in_a_field_nobody_reads_is_not_counted(folder: Path) -> None:
    fields = line().split()
    fields[5] = "552.21"
    assert read(folder, "; MaxProcs: 8", " ".join(fields)).repaired == {}


def test_unsorted_arrivals_are_sorted_and_ties_stay_as_they_were(folder: Path) -> None:
    log = read(folder, "; MaxProcs: 8", line(1, submit=5), line(2, submit=9), line(3, submit=5), line(4, submit=2))
    assert log.id.tolist() == [4, 1, 3, 2]
    assert log.repaired == {"unsorted arrivals: sorted": 2}


def test_many_ties_stay_as_they_were(folder: Path) -> None:
    # Short arrays are sorted stably by any method, so this takes a long one.
    log = read(folder, *(line(k, submit=k % 2) for k in range(1000)))
    assert log.id.tolist() == [*range(0, 1000, 2), *range(1, 1000, 2)]


def test_jobs_that_did_not_run_are_set_aside_each_for_its_first_cause(folder: Path) -> None:
    log = read(
        folder,
        "; MaxProcs: 8",
        line(1, submit=-1, run=-1),
        line(2, run=-1, allocated=-1),
        line(3, run=-1),
        line(4, run=0),
        line(5, run=0.4),
        line(6, allocated=0),
        line(7, submit=3),
    )
    assert log.id.tolist() == [7]
    assert log.repaired == {
        "fractions: rounded": 1,
        "arrival unknown: set aside": 1,
        "run time unknown: set aside": 2,
        "run time 0: set aside": 2,
        "no processors: set aside": 1,
    }


def test_peak_memory_is_the_most_held_at_once(folder: Path) -> None:
    log = read(
        folder,
        line(submit=0, wait=0, run=10, allocated=2, used_kb=100),  # 200 KB in [0, 10)
        line(submit=1, wait=4, run=10, allocated=1, used_kb=50),  # 50 KB in [5, 15): the peak, 250
        line(submit=2, wait=8, run=5, allocated=1, used_kb=180),  # 180 KB in [10, 15): 230
        line(submit=3, wait=0, run=99, allocated=9),  # unknown
    )
    assert log.peak_memory_kb == 250


def test_gz_and_plain_give_the_same(folder: Path) -> None:
    text = "; MaxProcs: 8\r\n" + line(1, submit=4, used_kb=3) + "\r\n" + line(2, submit=2) + "\r\n"
    plain, packed = folder / "log.swf", folder / "log.swf.gz"
    plain.write_bytes(text.encode())
    packed.write_bytes(gzip.compress(text.encode()))
    for one, other in zip(READERS["swf"](plain), READERS["swf"](packed), strict=True):
        np.testing.assert_equal(one, other)


# Refusing


def test_a_line_of_too_few_or_many_fields_is_named(folder: Path) -> None:
    assert refusal(folder, "; a header", line(), "1 2 3") == ":3: expected 18 numbers, found 3"
    assert refusal(folder, line() + " 1") == ":1: expected 18 numbers, found 19"


@pytest.mark.parametrize("junk", ["abc", "1_000", "1,5", "0x10"])
def test_a_field_that_is_no_number_is_named(folder: Path, junk: str) -> None:
    assert refusal(folder, line(), "", line(run=junk)) == f":3: expected 18 numbers, found '{junk}' as field 4"


@pytest.mark.parametrize(("junk", "shown"), [("nan", "nan"), ("inf", "inf"), ("-inf", "-inf"), ("1e13", "1e+13")])
def test_a_number_nobody_can_reckon_with_is_named(folder: Path, junk: str, shown: str) -> None:
    said = refusal(folder, "; a header", line(), line(allocated=junk))
    assert said == f":3: expected 18 numbers below 1e+12, found {shown} as field 5"


def test_bytes_that_are_no_text_are_named(folder: Path) -> None:
    path = folder / "log.swf"
    for content in (bytes(range(256)), ("; MaxProcs: 8\n" + line()).encode("utf-16"), gzip.compress(line().encode())):
        path.write_bytes(content)
        with pytest.raises(UserError, match=r"log.swf:\d+: expected 18 numbers, found bytes that are not plain text"):
            read_swf(path)


def test_a_header_in_another_encoding_does_no_harm(folder: Path) -> None:
    path = folder / "log.swf"
    path.write_bytes("; Acknowledge: Åke\n".encode("latin-1") + line().encode())
    assert len(read_swf(path).id) == 1


def test_a_log_without_jobs_says_why(folder: Path) -> None:
    assert refusal(folder) == ": no jobs"
    assert refusal(folder, "; MaxProcs: 8") == ": no jobs"
    assert refusal(folder, line(run=-1), line(run=-1)) == ": no jobs; run time unknown: set aside (2)"


def test_a_file_that_cannot_be_read_is_one_clear_line(folder: Path) -> None:
    packed = gzip.compress("\n".join(line(k, submit=k * k) for k in range(500)).encode())
    for name, content, said in (
        ("plain.swf.gz", line().encode(), "Not a gzipped file"),
        ("short.swf.gz", packed[: len(packed) // 2], "ended before the end"),
        ("wrong.swf.gz", packed[:200] + b"\xff" * 200 + packed[400:], "Error -3"),
        ("sum.swf.gz", packed[:-8] + b"\0" * 8, "CRC check failed"),
    ):
        (folder / name).write_bytes(content)
        with pytest.raises(UserError, match=rf"{name}: its name ends in \.gz, but .* \(.*{said}"):
            read_swf(folder / name)
    for path in (folder / "none.swf", folder / "none.swf.gz", folder):
        with pytest.raises(UserError, match="cannot be read") as caught:
            read_swf(path)
        assert "\n" not in str(caught.value)


# Steps and units


def test_arrivals_are_whole_steps_since_the_first_job(folder: Path) -> None:
    log = read(folder, *(line(submit=s) for s in (1000, 1059, 1060, 1179, 1180)))
    assert discretise(log, swf(step_s=60), {"cpu": 10}, 20).arrival.tolist() == [0, 0, 1, 2, 3]


def test_durations_are_rounded_up_and_cut_to_the_shorter_limit(folder: Path) -> None:
    log = read(folder, *(line(run=s) for s in (1, 60, 61, 300, 301, 9999)))
    steps = discretise(log, swf(step_s=60, max_steps=5), {"cpu": 10}, 20)
    assert (steps.duration.tolist(), steps.capped) == ([1, 1, 2, 5, 5, 5], 2)
    steps = discretise(log, swf(step_s=60, max_steps=5), {"cpu": 10}, 4)
    assert (steps.duration.tolist(), steps.capped) == ([1, 1, 2, 4, 4, 4], 3)


def test_estimates_become_steps_as_durations_do_and_unknown_ones_are_durations(folder: Path) -> None:
    log = read(folder, *(line(run=100, estimate=s) for s in (1, 60, 61, 9999, -1)))
    steps = discretise(log, swf(step_s=60, max_steps=5), {"cpu": 10}, 20, estimates=True)
    assert steps.estimate is not None
    assert steps.estimate.tolist() == [1, 1, 2, 5, 2]
    assert discretise(log, swf(step_s=60, max_steps=5), {"cpu": 10}, 20).estimate is None
    assert random_window(steps, (0, 5), 5, np.random.default_rng(1)).requested.tolist() == [1, 1, 2, 5, 2]


def test_those_who_overrun_are_told_of(folder: Path) -> None:
    # Of 100 s told 1 and 60 s; 61 s are two steps, as 100 s are.
    log = read(folder, *(line(run=100, estimate=s) for s in (1, 60, 61, 9999, -1)))
    steps = discretise(log, swf(step_s=60, max_steps=5), {"cpu": 10}, 20, estimates=True)
    said = "estimates: 3 jobs (60.0%) run longer than estimated, 2 (40.0%) in steps; 1 jobs have none"
    assert any(note.startswith(said) for note in describe(log, steps))


def test_a_log_as_a_table_tells_its_estimates_in_every_part(folder: Path) -> None:
    log = read(folder, *(line(id=k, submit=60 * k, run=100, estimate=60 * k) for k in (1, 2, 3)))
    how = swf(step_s=60, max_steps=5)
    (part,) = parts(log_table(discretise(log, how, {"cpu": 10}, 20, estimates=True)), 20)
    assert part.jobs.requested.tolist() == [1, 2, 3]
    (part,) = parts(log_table(discretise(log, how, {"cpu": 10}, 20)), 20)
    assert part.jobs.estimate is None


def test_processors_become_the_nearest_unit_half_up_and_at_least_one(folder: Path) -> None:
    log = read(folder, "; MaxProcs: 40", *(line(allocated=n) for n in (1, 5, 6, 9, 10, 38, 40, 41, 400)))
    steps = discretise(log, swf(), {"cores": 10}, 20)  # a unit is 4 processors: 1.25, 1.5, 2.25, 2.5, 9.5
    assert steps.demand[:, 0].tolist() == [1, 1, 2, 2, 3, 10, 10, 10, 10]
    assert steps.oversized == {"cores": 2}


def test_memory_is_that_of_all_processors_and_none_where_unknown(folder: Path) -> None:
    log = read(
        folder,
        "; MaxProcs: 10",
        line(allocated=5, used_kb=100),  # 500 of 1000 KB
        line(allocated=1, used_kb=100),  # 100
        line(allocated=1, used_kb=1),  # 1: still a unit
        line(allocated=9),  # unknown
        line(submit=50, allocated=10, used_kb=200),  # 2000: more than all
    )
    steps = discretise(log, swf(memory_kb=1000), {"cpu": 10, "memory": 10}, 20)
    assert steps.demand.tolist() == [[5, 5], [1, 1], [1, 1], [9, 0], [10, 10]]
    assert steps.oversized == {"cpu": 0, "memory": 1}
    swapped = discretise(log, swf(memory_kb=1000), {"memory": 10, "cpu": 10}, 20)
    assert swapped.demand.tolist() == steps.demand[:, ::-1].tolist()
    # 10 s of 5 + 1 + 1 + 9 + 10 processors, of 10 for 50 s.
    assert swapped.load_before == steps.load_before == pytest.approx(0.52)


def test_all_memory_is_the_most_held_at_once_where_nobody_says(folder: Path) -> None:
    log = read(
        folder,
        "; MaxProcs: 10",
        line(submit=0, run=10, allocated=4, used_kb=100),  # alone: 400
        line(submit=20, run=10, allocated=1, used_kb=300),  # with the next: 300 + 500, below 10 x 300
        line(submit=20, run=10, allocated=5, used_kb=100),
    )
    assert discretise(log, swf(), {"cpu": 10, "memory": 10}, 20).total == {"cpu": 10, "memory": 800}


def test_all_memory_is_never_above_every_processor_with_the_most(folder: Path) -> None:
    # Waits are unknown, so the two seem to run side by side on 20 processors of 10.
    log = read(folder, "; MaxProcs: 10", *[line(wait=-1, allocated=10, used_kb=100)] * 2)
    assert log.peak_memory_kb == 2000
    assert discretise(log, swf(), {"cpu": 10, "memory": 10}, 20).total["memory"] == 1000


def test_a_log_that_knows_no_memory_asks_for_none(folder: Path) -> None:
    log = read(folder, line(submit=0), line(submit=10))
    steps = discretise(log, swf(), {"cpu": 10, "memory": 10}, 20)
    assert steps.demand[:, 1].tolist() == [0, 0]
    assert steps.load["memory"] == (0, 0)


@pytest.mark.parametrize(
    ("resources", "named"), [({"cpu": 10, "gpu": 4}, "'gpu'"), ({"memory": 4}, "no resource for processors")]
)
def test_a_resource_no_log_knows_is_refused(folder: Path, resources: dict[str, int], named: str) -> None:
    with pytest.raises(UserError, match=named):
        discretise(read(folder, line()), swf(), resources, 20)


def two_jobs(folder: Path) -> Log:
    return read(
        folder,
        "; MaxProcs: 20",
        line(submit=0, run=90, allocated=3, used_kb=100),
        line(submit=600, run=900, allocated=10, used_kb=-1),
    )


def test_load_is_reckoned_before_and_after(folder: Path) -> None:
    # Before: (90 * 3 + 900 * 10) / (20 * 600) = 9270 / 12000. A unit is 2 processors; 3 of them are 1.5, so 2 units.
    # After: (2 steps * 2 units + 5 * 5) / (10 units * 10 steps) = 29 / 100.
    # Memory: 1 job, all of 300 KB: 90 s of 600 s before, 2 steps of 10 after.
    steps = discretise(two_jobs(folder), swf(step_s=60, max_steps=5), {"cpu": 10, "memory": 10}, 20)
    assert (steps.load_before, steps.load_after) == (pytest.approx(0.7725), pytest.approx(0.29))
    assert steps.load["memory"] == (pytest.approx(0.15), pytest.approx(0.2))


def test_load_without_a_span_is_undefined(folder: Path) -> None:
    log = read(folder, line(), line())
    steps = discretise(log, swf(), {"cpu": 10}, 20)
    assert np.isnan([steps.load_before, steps.load_after]).all()
    assert "load undefined (all jobs arrive at once)" in describe(log, steps)[-1]


def test_a_description_says_what_became_of_the_log(folder: Path) -> None:
    log = two_jobs(folder)
    log.repaired.update({"run time 0: set aside": 3, "no MaxProcs header": 0})
    steps = discretise(log, swf(step_s=60, max_steps=5, memory_kb=10 * 1024**2), {"cpu": 1, "memory": 10}, 20)
    assert describe(log, steps) == [
        "2 jobs over 0.0 days on 20 processors",
        "run time 0: set aside (3 lines)",
        "no MaxProcs header",
        "durations: steps of 60 s, rounded up; 1 jobs (50.0%) run longer than 5 and are cut",
        "cpu: 1 units of 20 processors; load 77.2% in the log, 70.0% in steps",
        "memory: 10 units of 1.00 GiB; 1 jobs of unknown memory hold none; load 0.0% in the log, 2.0% in steps",
    ]


# Windows


@pytest.mark.parametrize("jobs", [0, 1, 7, 100, 15_000])
@pytest.mark.parametrize("shares", [(0.6, 0.15), (0.7, 0.2), (1 / 3, 1 / 3)])
def test_periods_follow_each_other_and_leave_nothing_out(jobs: int, shares: tuple[float, float]) -> None:
    spans = periods(jobs, swf(train_share=shares[0], validation_share=shares[1]))
    assert list(spans) == ["train", "validation", "test"]
    ends = [end for span in spans.values() for end in span]
    assert ends == [0, ends[1], ends[1], ends[3], ends[3], jobs]
    assert ends == sorted(ends)


def test_default_periods_of_a_thousand_jobs() -> None:
    assert periods(1000, swf()) == {"train": (0, 600), "validation": (600, 750), "test": (750, 1000)}


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
    windows = cut(numbered(400), swf(), 20, Counts(train=5, validation=50, test=50))
    assert [len(split) for split in windows] == [5, 3, 5]
    used = np.concatenate([window.demand[:, 0] for split in windows for window in split])
    assert len(np.unique(used)) == len(used)
    last = [split[-1].demand[-1, 0] for split in windows]
    first = [split[0].demand[0, 0] for split in windows]
    assert (first, last) == ([0, 240, 300], [239, 299, 399])


def test_random_windows_start_anywhere_and_stay_inside() -> None:
    rng = np.random.default_rng(1)
    seen = [random_window(numbered(100), (10, 20), 7, rng) for _ in range(200)]
    assert set(starts(seen)) == {10, 11, 12, 13}
    assert {len(window.arrival) for window in seen} == {7}
    assert {int(window.arrival[0]) for window in seen} == {0}


def test_a_period_too_short_for_a_window_is_refused() -> None:
    with pytest.raises(UserError, match=r"a period of 5 jobs \(10 to 15 of the log\) is shorter than a window of 6"):
        consecutive(numbered(100), (10, 15), 6, 1)
    with pytest.raises(UserError, match="shorter than a window"):
        random_window(numbered(100), (10, 15), 6, np.random.default_rng(1))


def test_at_once_changes_arrivals_only() -> None:
    window = consecutive(numbered(10), (0, 10), 3, 1)[0]
    together = at_once(window)
    assert together.arrival.tolist() == [0, 0, 0]
    assert together.duration is window.duration
    assert window.arrival.tolist() == [0, 1, 2]


# Real logs


def plain_fields(path: Path) -> list[list[float]]:
    """Read a log once more, in the simplest way."""
    if not path.exists():
        pytest.skip(f"the trace files stand beside the project, and {path} is not there")
    with gzip.open(path, "rt") as lines:
        return [[float(field) for field in text.split()] for text in lines if not text.startswith(";")]


def test_hpc2n_is_read_whole() -> None:
    rows = plain_fields(HPC2N)
    log = read_swf(HPC2N)
    processors = [max(row[4], row[7]) for row in rows]
    memory = [row[9] if row[9] > 0 else row[6] for row in rows]
    assert len(log.id) == len(rows) == 15_000
    assert (log.max_processors, log.repaired) == (240, {})
    assert log.processors.tolist() == processors
    assert (log.memory_kb < 0).sum() == sum(kb <= 0 for kb in memory) == 2121  # awk says so too
    steps = discretise(log, swf(), {"cpu": 10, "memory": 10}, 20)
    assert steps.capped == sum(row[3] > 20 * 3600 for row in rows)
    work = sum(row[3] * held for row, held in zip(rows, processors, strict=True))
    assert steps.load_before == pytest.approx(work / (240 * (rows[-1][1] - rows[0][1])))
    assert (steps.demand[:, 1] == 0).sum() == 2121
    assert all(len(split) for split in cut(steps, swf(), 60, Counts(train=100, validation=30, test=50)))


def test_hpc2n_held_no_more_than_its_recorded_peak_of_memory() -> None:
    rows = np.array(plain_fields(HPC2N))
    held = np.maximum(rows[:, 4], rows[:, 7]) * np.maximum(np.where(rows[:, 9] > 0, rows[:, 9], rows[:, 6]), 0)
    start = rows[:, 1] + rows[:, 2]
    # Memory only rises when a job starts, so the peak is at one of the starts.
    peak = max(held[(start <= s) & (start + rows[:, 3] > s)].sum() for s in np.unique(start))
    assert read_swf(HPC2N).peak_memory_kb == peak


def test_lublin_is_read_whole() -> None:
    rows = plain_fields(LUBLIN)
    log = read_swf(LUBLIN)
    assert len(log.id) == len(rows) == 10_000
    assert (log.max_processors, log.peak_memory_kb) == (256, 0)
    assert discretise(log, swf(), {"cpu": 10}, 20).load_before == pytest.approx(1.06, abs=0.005)
