"""Expected numbers are worked by hand from the few lines of each log."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from pipeline.core import ANY_KIND
from pipeline.errors import UserError
from pipeline.logs import swf
from pipeline.logs.step_log import read_swf
from pipeline.logs.trace import Trace

SHARED = Path(__file__).parents[3] / "shared" / "traces"
HPC2N = SHARED / "HPC2N-2002-2.2-cln.first15000.swf.gz"
LUBLIN = SHARED / "lublin_256.swf.gz"
GIB_KB = 1024**2


def line(
    id: float = 1,
    *,
    submit: float = 0,
    wait: float = 0,
    run: float = 10,
    allocated: float = 1,
    used_kb: float = -1,
    requested: float = -1,
    estimate: float = -1,
    requested_kb: float = -1,
    user: float = -1,
) -> str:
    kb = requested_kb
    fields = [id, submit, wait, run, allocated, -1, used_kb, requested, estimate, kb, 1, user, -1, -1, -1, -1, -1, -1]
    return " ".join(str(field) for field in fields)


def read(folder: Path, *lines: str, per_node: bool = False, chunk: int = 1 << 20) -> Trace:
    path = folder / "log.swf"
    path.write_text("\n".join(lines) + "\n")
    return swf.read(path, per_node=per_node, chunk=chunk)


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
    assert (trace.has_estimates, trace.dropped, trace.mended, trace.rows) == (True, (), (), 1)


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
    assert ("memory unknown: holds none", 1, 3) in trace.mended


def test_a_log_without_memory_has_processors_only(tmp_path: Path) -> None:
    trace = read(tmp_path, "; MaxProcs: 4", line(allocated=2))
    assert (trace.resources, trace.units, trace.mended) == (("cpu",), ("cores",), ())
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
    ("header", "size"), [("; MaxNodes: 64 (dual)", 64), ("; MaxNodes: 64\n;MaxProcs: 128", 128), ("; Note: none", 5)]
)
def test_the_header_sizes_the_machine_or_else_the_largest_job(tmp_path: Path, header: str, size: int) -> None:
    trace = read(tmp_path, header, line(allocated=5), line(allocated=2))
    assert trace.machines is not None
    assert trace.machines.capacity.tolist() == [[size * 1000]]
    told = ("no MaxProcs header: the largest job's processors taken", 1, 0)
    assert (told in trace.mended) == (size == 5)


def test_each_processor_may_be_a_machine_by_itself(tmp_path: Path) -> None:
    trace = read(tmp_path, "; MaxProcs: 3", line(allocated=2, used_kb=100), line(allocated=3), per_node=True)
    assert (trace.nodes.tolist(), trace.demand.tolist()) == ([2, 3], [[1000], [1000]])
    assert trace.machines is not None
    assert (trace.machines.capacity.tolist(), trace.machines.kind.tolist()) == ([[1000]] * 3, [0, 0, 0])
    assert (trace.resources, trace.mended) == (("cpu",), ())


def test_too_many_processors_to_be_machines_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="expected at most 1,000,000 processors as machines, found 2,000,000"):
        read(tmp_path, "; MaxProcs: 2000000", line(), per_node=True)


def test_a_missing_estimate_is_the_run_time(tmp_path: Path) -> None:
    trace = read(tmp_path, "; MaxProcs: 8", line(run=10, estimate=30), line(run=20, estimate=0), line(run=5))
    assert trace.estimate_s.tolist() == [30, 20, 5]
    assert trace.mended == (("estimate unknown: its run time taken", 2, 3),)
    assert trace.has_estimates


def test_estimates_that_are_always_right_are_estimates(tmp_path: Path) -> None:
    assert read(tmp_path, line(run=10, estimate=10)).has_estimates
    assert not read(tmp_path, line(run=10)).has_estimates


def test_times_keep_their_fractions_and_processors_are_rounded_half_up(tmp_path: Path) -> None:
    trace = read(tmp_path, "; MaxProcs: 8", line(submit=0.25, run=0.5, allocated=2.5), line(submit=1))
    assert (trace.submit_s.tolist(), trace.run_s.tolist()) == ([0.25, 1], [0.5, 10])
    assert trace.demand[:, 0].tolist() == [3000, 1000]
    assert trace.mended == (("fraction of a processor: rounded", 1, 2),)


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
        line(3, run=0),
        line(4, run=-1),
        "; a comment",
        line(5, allocated=0),
        line(6, allocated=1, used_kb=1e11, requested=1e11),
        line(7, submit=3),
    )
    assert (trace.id, trace.rows) == (7, 7)
    assert trace.dropped == (
        ("arrival unknown", 1, 2),
        ("run time unknown", 2, 3),
        ("run time 0", 1, 5),
        ("no processors", 1, 8),
        ("memory beyond 1e9 GiB", 1, 9),
    )


@pytest.mark.parametrize("chunk", [1, 100, 1 << 20])
def test_lines_are_told_alike_however_the_log_is_cut(tmp_path: Path, chunk: int) -> None:
    short = line(2).rsplit(" ", 1)[0]
    jobs = ["; MaxProcs: 8", *(line(k) for k in range(5)), short, "", line(8, run=0), *(line(k) for k in range(5))]
    trace = read(tmp_path, *jobs, chunk=chunk)
    assert trace.dropped == (("run time 0", 1, 9),)
    assert trace.mended == (("17 columns: last one taken as unknown", 1, 7),)
    assert trace.rows == 12


def test_unsorted_arrivals_are_sorted_and_ties_stay_as_they_were(tmp_path: Path) -> None:
    jobs = (line(1, submit=5, user=1), line(2, submit=9, user=2), line(3, submit=5, user=3), line(4, submit=2, user=4))
    trace = read(tmp_path, "; MaxProcs: 8", *jobs)
    assert (trace.id.tolist(), trace.user.tolist()) == ([4, 1, 3, 2], [4, 1, 3, 2])
    assert trace.mended == (("not in order of arrival: sorted", 2, 0),)


def test_a_line_that_is_no_job_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"log\.swf:3: expected 18 numbers, found 'x' as field 4$"):
        read(tmp_path, "; MaxProcs: 8", line(), line().replace("10", "x", 1))


def test_a_log_without_a_job_that_ran_says_what_was_dropped(tmp_path: Path) -> None:
    expected = r"expected jobs, found none in 2 rows: run time unknown \(1, first in line 2\); run time 0 \(1, first in"
    with pytest.raises(UserError, match=expected):
        read(tmp_path, "; MaxProcs: 8", line(run=-1), line(run=0))


# Real logs


def test_hpc2n_is_read_as_the_other_reader_reads_it() -> None:
    if not HPC2N.exists():
        pytest.skip(f"the trace files stand beside the project, and {HPC2N} is not there")
    trace, log = swf.read(HPC2N), read_swf(HPC2N)
    assert (len(trace.id), trace.rows, trace.dropped) == (15_000, 15_000, ())
    assert (trace.id.tolist(), trace.submit_s.tolist()) == (log.id.tolist(), log.submit_s.tolist())
    assert (trace.run_s.tolist(), trace.demand[:, 0].tolist()) == (log.run_s.tolist(), (log.processors * 1000).tolist())
    (unknown,) = trace.mended
    assert unknown[:2] == ("memory unknown: holds none", 2121)
    assert len(np.unique(trace.user)) == 53
    assert np.median(trace.run_s / trace.estimate_s) == pytest.approx(0.39, abs=0.005)
    assert trace.machines is not None
    cpu, memory = trace.machines.capacity[0]
    # Each of the jobs that held memory at the peak may be off by half a thousandth.
    assert (cpu, memory) == (240_000, pytest.approx(log.peak_memory_kb / GIB_KB * 1000, abs=120))


def test_hpc2n_counts_unknown_memory_from_its_first_line() -> None:
    if not HPC2N.exists():
        pytest.skip(f"the trace files stand beside the project, and {HPC2N} is not there")
    with gzip.open(HPC2N, "rt") as lines:
        numbered = [(number, text.split()) for number, text in enumerate(lines, 1) if not text.startswith(";")]
    first = next(number for number, fields in numbered if float(fields[9]) <= 0 and float(fields[6]) <= 0)
    assert swf.read(HPC2N).mended[0].first_line == first


def test_lublin_is_read_whole() -> None:
    if not LUBLIN.exists():
        pytest.skip(f"the trace files stand beside the project, and {LUBLIN} is not there")
    trace = swf.read(LUBLIN)
    assert (len(trace.id), trace.dropped, trace.mended) == (10_000, (), ())
    assert (trace.resources, trace.has_estimates, set(trace.user)) == (("cpu",), False, {-1})
    assert trace.machines is not None
    assert trace.machines.capacity.tolist() == [[256_000]]
