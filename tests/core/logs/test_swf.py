"""Reader of the Standard Workload Format. Expected numbers are computed by hand from the few lines of each log."""

import gzip
from pathlib import Path

import numpy as np
import pytest
from swf_lines import CASES, GIB_KB, HPC2N, LUBLIN, line, read, there

from pipeline.core.logs import swf
from pipeline.core.types import ANY_KIND
from pipeline.errors import UserError


def test_every_field_comes_from_its_place(tmp_path: Path) -> None:
    trace = read(
        tmp_path,
        "; MaxProcs: 8",
        line(7, submit=100, wait=5, run=50, allocated=4, used_kb=GIB_KB, estimate=60, user=3),
    )
    assert (trace.id, trace.submit_s, trace.wait_s, trace.run_s, trace.estimate_s) == (7, 100, 5, 50, 60)
    assert trace.demand.tolist() == [[4000, 4000]]  # 4 processors, of 1 GiB each
    assert (trace.nodes, trace.user, trace.kinds) == (1, 3, ANY_KIND)
    assert (trace.resources, trace.units, trace.kind_names) == (("cpu", "memory"), ("cores", "GiB"), ("",))
    assert (trace.has_estimates, trace.dropped, trace.repaired, trace.rows) == (True, (), (), 1)


def test_processors_are_the_larger_of_allocated_and_requested(tmp_path: Path) -> None:
    jobs = (line(allocated=4, requested=6), line(allocated=4, requested=2), line(allocated=-1, requested=3))
    assert read(tmp_path, *jobs).demand.tolist() == [[6000], [4000], [3000]]


def test_requested_memory_goes_before_used(tmp_path: Path) -> None:
    trace = read(
        tmp_path,
        line(used_kb=GIB_KB, requested_kb=GIB_KB / 2),
        line(used_kb=GIB_KB, requested_kb=0, allocated=3),
        line(used_kb=0, requested_kb=-1),
    )
    assert trace.demand[:, 1].tolist() == [500, 3000, 0]
    assert ("memory unknown: holds none", 1, 3) in trace.repaired


def test_a_log_without_memory_has_processors_only(tmp_path: Path) -> None:
    trace = read(tmp_path, "; MaxProcs: 4", line(allocated=2))
    assert (trace.resources, trace.units, trace.repaired) == (("cpu",), ("cores",), ())
    assert trace.machines is not None
    assert (trace.machines.capacity.tolist(), trace.machines.kind.tolist()) == ([[4000]], [0])
    assert trace.machines.resources == ("cpu",)


def test_the_memory_of_the_machine_is_the_most_that_was_held_at_once(tmp_path: Path) -> None:
    trace = read(
        tmp_path,
        "; MaxProcs: 8",
        line(submit=0, wait=0, run=10, allocated=2, used_kb=2 * GIB_KB),  # 4 GiB in [0, 10)
        line(submit=1, wait=4, run=10, allocated=1, used_kb=GIB_KB),  # 1 GiB in [5, 15): the most, 5
        line(submit=2, wait=8, run=5, allocated=1, used_kb=3 * GIB_KB),  # 3 GiB in [10, 15): 4
    )
    assert trace.machines is not None
    assert trace.machines.capacity.tolist() == [[8000, 5000]]


@pytest.mark.parametrize(
    ("header", "size"),
    [
        ("; MaxNodes: 64 (dual)", 64),
        ("; MaxNodes: 64\n;MaxProcs: 128", 128),
        ("; MaxProcs: 1,024", 1024),
        ("; MaxProcs: 12,345,678", 12_345_678),
        ("; MaxProcs: 1024 (estimated)", 1024),
        ("; MaxProcs: 1024.0", 1024),
        (";maxprocs :1024", 1024),
        (";\tMAX PROCS:\t1024", 1024),
        ("; MaxProcs: -1\n; MaxNodes: 64", 64),
        ("; MaxProcs: 8\n; MaxProcs: 8", 8),
    ],
)
def test_the_header_sizes_the_machine(tmp_path: Path, header: str, size: int) -> None:
    trace = read(tmp_path, header, line(allocated=5), line(allocated=2))
    assert trace.machines is not None
    assert trace.machines.capacity.tolist() == [[size * 1000]]
    assert trace.repaired == ()


@pytest.mark.parametrize("header", ["; Note: none", "; MaxProcs: 0", "; MaxProcs: unknown", "; MaxNodes: -1"])
def test_without_a_size_in_the_header_the_machine_is_unknown_but_held_what_was_in_use(
    tmp_path: Path, header: str
) -> None:
    trace = read(tmp_path, header, line(allocated=5), line(submit=8, allocated=2), line(submit=10, allocated=4))
    assert trace.machines is None  # 5 + 2 processors at 8 s; at 10 s 2 + 4
    assert trace.repaired == (("no MaxProcs header: the machine is unknown, with at least 7 processors", 1, 0),)


@pytest.mark.parametrize(
    "value", ["1 024", "1.024", "12,34", "128*8", "-5", "1024x", "1_024", "many", "1e3", "9999999999999"]
)
def test_a_size_that_is_no_whole_number_is_refused_with_its_line(tmp_path: Path, value: str) -> None:
    said = refusal(tmp_path, "; Version: 2.2", f"; MaxProcs: {value}", line())
    assert said == f":2: MaxProcs: expected a whole number such as 1024, found '{value}'"


def test_headers_that_contradict_each_other_are_refused(tmp_path: Path) -> None:
    said = refusal(tmp_path, "; MaxProcs: 64", line(), "; MaxProcs: 128", line(2))
    assert said == ":3: MaxProcs: expected 64, as an earlier line says, found 128"
    said = refusal(tmp_path, "; MaxProcs: 64", "; MaxNodes: 128", line())
    assert said == ":2: expected at least as many MaxProcs (64) as MaxNodes (128): correct the header"


def test_headers_of_different_parts_of_a_file_are_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.core.logs.rows.CHUNK", 1)
    with pytest.raises(UserError, match=r"log.swf:3: MaxProcs: expected 64"):
        read(tmp_path, "; MaxProcs: 64", line(), "; MaxProcs: 128", line(2))


def test_each_processor_may_be_a_machine_by_itself(tmp_path: Path) -> None:
    trace = read(tmp_path, "; MaxProcs: 3", line(allocated=2, used_kb=100), line(allocated=3), per_node=True)
    assert (trace.nodes.tolist(), trace.demand.tolist()) == ([2, 3], [[1000], [1000]])
    assert trace.machines is not None
    assert (trace.machines.capacity.tolist(), trace.machines.kind.tolist()) == ([[1000]] * 3, [0, 0, 0])
    assert (trace.resources, trace.repaired) == (("cpu",), ())


def test_too_many_processors_to_be_machines_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="expected at most 1,000,000 processors as machines, found 2,000,000"):
        read(tmp_path, "; MaxProcs: 2000000", line(), per_node=True)


def test_a_missing_estimate_is_the_run_time(tmp_path: Path) -> None:
    trace = read(tmp_path, "; MaxProcs: 8", line(run=10, estimate=30), line(run=20, estimate=0), line(run=5))
    assert trace.estimate_s.tolist() == [30, 20, 5]
    assert trace.repaired == (("estimate unknown: its run time taken", 2, 3),)
    assert trace.has_estimates


def test_estimates_that_are_always_right_are_estimates(tmp_path: Path) -> None:
    assert read(tmp_path, line(run=10, estimate=10)).has_estimates
    assert not read(tmp_path, line(run=10)).has_estimates


def test_times_keep_their_fractions_and_processors_are_rounded_half_up(tmp_path: Path) -> None:
    trace = read(tmp_path, "; MaxProcs: 8", line(submit=0.25, run=0.5, allocated=2.5), line(submit=1))
    assert (trace.submit_s.tolist(), trace.run_s.tolist()) == ([0.25, 1], [0.5, 10])
    assert trace.demand[:, 0].tolist() == [3000, 1000]
    assert trace.repaired == (("fraction of a processor: rounded", 1, 2),)


def test_unknown_waits_and_users_are_marked(tmp_path: Path) -> None:
    trace = read(tmp_path, line(wait=-1, user=-1), line(wait=3, user=9))
    assert trace.user.tolist() == [-1, 9]
    assert np.isnan(trace.wait_s).tolist() == [True, False]


def test_jobs_that_did_not_run_are_dropped_each_for_its_first_cause(tmp_path: Path) -> None:
    trace = read(
        tmp_path,
        "; MaxProcs: 8",
        line(1, submit=-1, run=-1),
        line(2, run=-1, allocated=-1),
        "",
        line(3, run=-0.5),
        line(4, run=-1),
        "; a comment",
        line(5, allocated=0),
        line(6, allocated=1, used_kb=1e11, requested=1e11),
        line(7, submit=3),
    )
    assert (trace.id, trace.rows) == (7, 7)
    assert trace.dropped == (
        ("arrival unknown", 1, 2),
        ("run time unknown", 3, 3),
        ("no processors", 1, 8),
        ("memory beyond 1e9 GiB", 1, 9),
    )


@pytest.mark.parametrize("chunk", [1, 100, 1 << 20])
def test_lines_are_told_alike_however_the_log_is_cut(
    tmp_path: Path, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipeline.core.logs.rows.CHUNK", chunk)
    short = line(2).rsplit(" ", 1)[0]
    jobs = ["; MaxProcs: 8", *(line(k) for k in range(5)), short, "", line(8, run=-1), *(line(k) for k in range(5))]
    trace = read(tmp_path, *jobs)
    assert trace.dropped == (("run time unknown", 1, 9),)
    assert trace.repaired == (("17 columns: last one taken as unknown", 1, 7),)
    assert trace.rows == 12


def test_unsorted_arrivals_are_sorted_and_ties_stay_as_they_were(tmp_path: Path) -> None:
    jobs = (line(1, submit=5, user=1), line(2, submit=9, user=2), line(3, submit=5, user=3), line(4, submit=2, user=4))
    trace = read(tmp_path, "; MaxProcs: 8", *jobs)
    assert (trace.id.tolist(), trace.user.tolist()) == ([4, 1, 3, 2], [4, 1, 3, 2])
    assert trace.repaired == (("not in order of arrival: sorted", 2, 0),)


def test_a_line_that_is_no_job_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"log\.swf:3: expected 18 numbers, found 'x' as field 4$"):
        read(tmp_path, "; MaxProcs: 8", line(), line().replace("10", "x", 1))


def test_a_log_without_a_job_that_ran_says_what_was_dropped(tmp_path: Path) -> None:
    expected = (
        r"expected jobs, found none in 2 rows: run time unknown \(1, first in line 2\); no processors \(1, first in"
    )
    with pytest.raises(UserError, match=expected):
        read(tmp_path, "; MaxProcs: 8", line(run=-1), line(allocated=0))


def test_a_job_of_run_time_0_that_held_processors_ran_for_a_second(tmp_path: Path) -> None:
    trace = read(
        tmp_path,
        "; MaxProcs: 8",
        line(1, run=0, allocated=4, estimate=60),
        line(2, run=0, allocated=-1, requested=4),  # completed
        line(3, run=0, allocated=4, status=0),  # failed at once
        line(4, run=0, allocated=4, status=5),  # cancelled: it may never have started
        line(5, run=0, allocated=-1, requested=4, status=0),  # not known to have held any processor
        line(6, run=0.25),
    )
    assert (trace.id.tolist(), trace.run_s.tolist()) == ([1, 2, 3, 6], [1, 1, 1, 0.25])
    assert trace.estimate_s.tolist() == [60, 1, 1, 0.25]
    assert trace.dropped == (("run time 0, cancelled or without processors: never ran", 2, 5),)
    assert ("ran less than a second: 1 s taken", 3, 2) in trace.repaired


def test_the_reported_log_of_run_times_0_keeps_all_but_the_job_that_was_cancelled() -> None:
    trace = swf.read(CASES / "zero_run.swf")
    assert (trace.id.tolist(), trace.run_s.tolist()) == ([1, 2, 3, 5], [1, 1, 5, 60])


def test_partial_executions_are_dropped_since_the_summary_line_covers_them(tmp_path: Path) -> None:
    jobs = (line(1, run=30, status=1), line(1, run=10, status=2), line(1, submit=-1, run=20, status=3))
    trace = read(tmp_path, "; MaxProcs: 8", *jobs, line(2, status=0), line(2, status=4), line(3, status=-1))
    assert (trace.id.tolist(), trace.run_s.tolist()) == ([1, 2, 3], [30, 10, 10])
    assert trace.dropped == (("partial execution, which its job's summary line covers", 3, 3),)


def test_a_job_that_was_cancelled_while_it_ran_is_a_job_and_one_that_never_ran_is_none(tmp_path: Path) -> None:
    trace = read(tmp_path, "; MaxProcs: 8", line(1, run=5, status=5), line(2, run=-1, wait=90, status=5))
    assert (trace.id.tolist(), trace.dropped) == ([1], (("run time unknown", 1, 3),))


def test_a_negative_wait_is_unknown_and_counted_unless_it_says_unknown(tmp_path: Path) -> None:
    trace = read(tmp_path, "; MaxProcs: 8", line(wait=-1), line(wait=-7))
    assert np.isnan(trace.wait_s).all()
    assert trace.repaired == (("negative wait: unknown", 1, 3),)


def test_jobs_of_several_partitions_are_reported(tmp_path: Path) -> None:
    jobs = (line(1, partition=1), line(2, partition=2), line(3))
    assert read(tmp_path, "; MaxProcs: 8", *jobs).repaired == (("jobs of 2 partitions: taken as one machine", 1, 0),)
    assert read(tmp_path, "; MaxProcs: 8", jobs[0], jobs[2]).repaired == ()


def test_times_of_1970_among_those_of_decades_later_are_unknown(tmp_path: Path) -> None:
    late = 1_600_000_000
    jobs = (line(1, submit=0), line(2, submit=3600), line(3, submit=late, run=late), line(4, submit=late))
    trace = read(tmp_path, "; MaxProcs: 8", *jobs, *(line(k, submit=late + k) for k in range(5, 9)))
    assert trace.id.tolist() == [4, 5, 6, 7, 8]
    assert trace.dropped == (("a time within a day of 0, decades before the others: unknown", 3, 0),)


def test_times_from_0_on_are_times(tmp_path: Path) -> None:
    assert len(read(tmp_path, "; MaxProcs: 8", *(line(k, submit=k) for k in range(5))).id) == 5


def test_many_ties_stay_as_they_were(tmp_path: Path) -> None:
    # Any method sorts short arrays stably, so this needs a long one.
    trace = read(tmp_path, *(line(k, submit=k % 2) for k in range(1000)))
    assert trace.id.tolist() == [*range(0, 1000, 2), *range(1, 1000, 2)]


def test_a_fraction_in_a_field_nobody_reads_is_not_counted(tmp_path: Path) -> None:
    fields = line().split()
    fields[5] = "552.21"
    assert read(tmp_path, "; MaxProcs: 8", " ".join(fields)).repaired == ()


def test_gz_and_plain_give_the_same(tmp_path: Path) -> None:
    text = "; MaxProcs: 8\r\n" + line(1, submit=4, used_kb=3) + "\r\n" + line(2, submit=2) + "\r\n"
    plain, packed = tmp_path / "log.swf", tmp_path / "log.swf.gz"
    plain.write_bytes(text.encode())
    packed.write_bytes(gzip.compress(text.encode()))
    for one, other in zip(swf.read(plain), swf.read(packed), strict=True):
        np.testing.assert_equal(one, other)


def test_the_machine_never_has_more_memory_than_every_processor_with_the_most(tmp_path: Path) -> None:
    # Waits are unknown, so the two seem to run at the same time, on 20 processors of 10.
    trace = read(tmp_path, "; MaxProcs: 10", *[line(wait=-1, allocated=10, used_kb=GIB_KB)] * 2)
    assert trace.machines is not None
    assert trace.machines.capacity.tolist() == [[10_000, 10_000]]


def refusal(folder: Path, *lines: str) -> str:
    with pytest.raises(UserError) as caught:
        read(folder, *lines)
    return str(caught.value).removeprefix(str(folder / "log.swf"))


# Refusing


def test_line_ends_of_cr_alone_are_named() -> None:
    with pytest.raises(UserError, match=r"cr_only.swf:1: expected line ends \(LF or CRLF\), found only CR: convert it"):
        swf.read(CASES / "cr_only.swf")


def test_cr_alone_among_whole_lines_is_named(tmp_path: Path) -> None:
    assert refusal(tmp_path, "; MaxProcs: 8", f"; a note\r{line()}").startswith(":2: expected line ends")
    assert refusal(tmp_path, "; MaxProcs: 8", line(), f"{line(2)}\r{line(3)}").startswith(":3: expected line ends")


def test_a_log_of_21_columns_is_refused_with_their_number() -> None:
    with pytest.raises(UserError, match=r"extended_21_columns.swf:1: expected 18 numbers, found 21$"):
        swf.read(CASES / "extended_21_columns.swf")


def test_a_time_in_milliseconds_since_1970_is_named(tmp_path: Path) -> None:
    said = refusal(tmp_path, line(submit=1.6e12))
    assert said == ":1: expected 18 numbers below 1e+12, found 1.6e+12 as field 2, a time in seconds: milliseconds?"


def test_a_byte_order_mark_tabs_and_a_missing_last_line_end_change_nothing(tmp_path: Path) -> None:
    path = tmp_path / "log.swf"
    path.write_bytes(b"\xef\xbb\xbf" + f"; MaxProcs: 8\n{line(1)}\n{line(2)}".replace(" ", "\t").encode())
    trace = swf.read(path)
    assert (trace.id.tolist(), trace.machines is not None) == ([1, 2], True)


def test_a_line_of_too_few_or_many_fields_is_named(tmp_path: Path) -> None:
    assert refusal(tmp_path, "; a header", line(), "1 2 3") == ":3: expected 18 numbers, found 3"
    assert refusal(tmp_path, line() + " 1") == ":1: expected 18 numbers, found 19"


@pytest.mark.parametrize("junk", ["abc", "1_000", "1,5", "0x10"])
def test_a_field_that_is_no_number_is_named(tmp_path: Path, junk: str) -> None:
    assert refusal(tmp_path, line(), "", line(run=junk)) == f":3: expected 18 numbers, found '{junk}' as field 4"


@pytest.mark.parametrize(("junk", "shown"), [("nan", "nan"), ("inf", "inf"), ("-inf", "-inf"), ("1e13", "1e+13")])
def test_a_number_nobody_can_reckon_with_is_named(tmp_path: Path, junk: str, shown: str) -> None:
    said = refusal(tmp_path, "; a header", line(), line(allocated=junk))
    assert said == f":3: expected 18 numbers below 1e+12, found {shown} as field 5"


def test_bytes_that_are_no_text_are_named(tmp_path: Path) -> None:
    path = tmp_path / "log.swf"
    for content in (bytes(range(256)), ("; MaxProcs: 8\n" + line()).encode("utf-16"), gzip.compress(line().encode())):
        path.write_bytes(content)
        with pytest.raises(UserError, match=r"log.swf:\d+: expected 18 numbers, found bytes that are not plain text"):
            swf.read(path)


def test_a_header_in_another_encoding_does_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "log.swf"
    path.write_bytes("; Acknowledge: Åke\n".encode("latin-1") + line().encode())
    assert len(swf.read(path).id) == 1


def test_a_log_without_jobs_says_why(tmp_path: Path) -> None:
    assert refusal(tmp_path) == ": expected jobs, found an empty log"
    assert refusal(tmp_path, "; MaxProcs: 8") == ": expected jobs, found an empty log"
    said = ": expected jobs, found none in 2 rows: run time unknown (2, first in line 1)"
    assert refusal(tmp_path, line(run=-1), line(run=-1)) == said


def test_a_file_that_cannot_be_read_is_one_clear_line(tmp_path: Path) -> None:
    packed = gzip.compress("\n".join(line(k, submit=k * k) for k in range(500)).encode())
    for name, content, said in (
        ("plain.swf.gz", line().encode(), "Not a gzipped file"),
        ("short.swf.gz", packed[: len(packed) // 2], "ended before the end"),
        ("wrong.swf.gz", packed[:200] + b"\xff" * 200 + packed[400:], "Error -3"),
        ("sum.swf.gz", packed[:-8] + b"\0" * 8, "CRC check failed"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(UserError, match=rf"{name}: its name ends in \.gz, but .* \(.*{said}"):
            swf.read(tmp_path / name)
    for path in (tmp_path / "none.swf", tmp_path / "none.swf.gz", tmp_path):
        with pytest.raises(UserError, match="cannot be read") as caught:
            swf.read(path)
        assert "\n" not in str(caught.value)


# Real logs


def plain_fields(path: Path) -> list[list[float]]:
    """Read a log a second time, in the simplest way."""
    with gzip.open(there(path), "rt") as lines:
        return [[float(field) for field in text.split()] for text in lines if not text.startswith(";")]


def test_hpc2n_is_read_whole() -> None:
    rows = np.array(plain_fields(HPC2N))
    trace = swf.read(HPC2N)
    assert (len(trace.id), trace.rows, trace.dropped) == (15_000, 15_000, ())
    assert (trace.id.tolist(), trace.submit_s.tolist()) == (rows[:, 0].tolist(), rows[:, 1].tolist())
    processors = np.maximum(rows[:, 4], rows[:, 7])
    assert (trace.run_s.tolist(), trace.demand[:, 0].tolist()) == (rows[:, 3].tolist(), (processors * 1000).tolist())
    (unknown,) = trace.repaired
    assert unknown[:2] == ("memory unknown: holds none", 2121)  # awk counts the same
    assert len(np.unique(trace.user)) == 53
    assert np.median(trace.run_s / trace.estimate_s) == pytest.approx(0.39, abs=0.005)


def test_hpc2n_held_no_more_than_its_recorded_peak_of_memory() -> None:
    rows = np.array(plain_fields(HPC2N))
    held = np.maximum(rows[:, 4], rows[:, 7]) * np.maximum(np.where(rows[:, 9] > 0, rows[:, 9], rows[:, 6]), 0)
    start = rows[:, 1] + rows[:, 2]
    # Memory only rises when a job starts, so the peak is at one of the starts.
    peak = max(held[(start <= s) & (start + rows[:, 3] > s)].sum() for s in np.unique(start))
    trace = swf.read(HPC2N)
    assert trace.machines is not None
    cpu, memory = trace.machines.capacity[0]
    # Each of the jobs that held memory at the peak may be off by half a thousandth.
    assert (cpu, memory) == (240_000, pytest.approx(peak / GIB_KB * 1000, abs=120))


def test_hpc2n_counts_unknown_memory_from_its_first_line() -> None:
    with gzip.open(there(HPC2N), "rt") as lines:
        numbered = [(number, text.split()) for number, text in enumerate(lines, 1) if not text.startswith(";")]
    first = next(number for number, fields in numbered if float(fields[9]) <= 0 and float(fields[6]) <= 0)
    assert swf.read(HPC2N).repaired[0].first_line == first


def test_lublin_is_read_whole() -> None:
    trace = swf.read(there(LUBLIN))
    assert (len(trace.id), trace.dropped, trace.repaired) == (10_000, (), ())
    assert (trace.resources, trace.has_estimates, set(trace.user)) == (("cpu",), False, {-1})
    assert trace.machines is not None
    assert trace.machines.capacity.tolist() == [[256_000]]
