"""RLScheduler's protocol: the published numbers come again, row by row."""

import gzip
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pipeline.errors import UserError
from pipeline.interactive.machines.benchmark import DEFAULT, apart, fitting, paired, run
from pipeline.interactive.machines.rlscheduler_workload import SEQUENCE, STARTS, read_protocol
from pipeline.problems.machines.lookahead import plans

SHARED = Path(__file__).parents[3].parent / "shared"
LUBLIN = SHARED / "traces" / "lublin_256.swf.gz"
HPC2N = SHARED / "traces" / "HPC2N-2002-2.2-cln.first15000.swf.gz"
GOLDEN = SHARED / "reference" / "rlscheduler" / "lublin_256_per_sequence.csv"
KEYS = ["trace", "seq", "start_index", "backfill", "policy"]
NUMBERS = ["avg_bounded_slowdown", "avg_wait_s", "utilization_peer", "makespan_s"]
# What the paper's repository publishes for HPC2N, to two digits.
PUBLISHED = {
    False: {"fcfs": 297.18, "wfp_peer": 426.99, "uni_peer": 609.77, "sjf": 157.71, "f1": 118.01},
    True: {"fcfs": 127.38, "wfp_peer": 97.39, "uni_peer": 175.12, "sjf": 122.04, "f1": 71.95},
}
has_shared = pytest.mark.skipif(not GOLDEN.exists(), reason=f"no logs at {SHARED}")


def swf(path: Path, jobs: list[tuple[int, int, int, int, int]], processors: int = 4) -> Path:
    """A log of (id, submit, run, processors, estimate)."""
    lines = [f"{j} {submit} -1 {run} {n} -1 -1 {n} {est} -1 1 1 1 1 1 1 -1 -1" for j, submit, run, n, est in jobs]
    path.write_text("\n".join([f"; MaxProcs: {processors}", *lines]) + "\n")
    return path


@has_shared
@pytest.mark.parametrize("backfill", [False, True])
def test_every_golden_row_comes_again_to_a_millionth(backfill: bool, tmp_path: Path) -> None:
    out = tmp_path / "lublin.csv"
    run(LUBLIN, 0, backfill, [], out)
    golden = pd.read_csv(GOLDEN).query(f"backfill == {int(backfill)}")
    both = golden.merge(pd.read_csv(out), on=KEYS, suffixes=("", "_ours"), validate="one_to_one")
    assert len(both) == len(golden) == len(STARTS) * len(DEFAULT)
    for name in NUMBERS:
        assert both[f"{name}_ours"].to_numpy() == pytest.approx(both[name].to_numpy(), rel=1e-6)


@has_shared
@pytest.mark.parametrize("backfill", [False, True])
def test_what_was_published_for_hpc2n_comes_again(backfill: bool, tmp_path: Path) -> None:
    out = tmp_path / "hpc2n.csv"
    run(HPC2N, 0, backfill, list(PUBLISHED[backfill]), out)
    means = pd.read_csv(out).groupby("policy")["avg_bounded_slowdown"].mean()
    assert {name: round(float(value), 2) for name, value in means.items()} == PUBLISHED[backfill]


@has_shared
def test_a_slice_plays_the_sequences_that_fit_into_it(tmp_path: Path) -> None:
    out = tmp_path / "slice.csv"
    run(LUBLIN, 4000, False, ["sjf"], out)
    rows = pd.read_csv(out)
    assert not (tmp_path / "slice_paired.csv").exists()
    assert rows["start_index"].tolist() == [start for start in STARTS if start + SEQUENCE <= 4000]
    golden = pd.read_csv(GOLDEN).query("backfill == 0 and policy == 'sjf'").set_index("start_index")
    expected = golden["avg_bounded_slowdown"].loc[rows["start_index"]].to_numpy()
    assert rows["avg_bounded_slowdown"].to_numpy() == pytest.approx(expected, rel=1e-6)


@has_shared
def test_waits_and_paired_intervals_are_written_next_to_the_rows(tmp_path: Path) -> None:
    out = tmp_path / "both.csv"
    run(LUBLIN, 0, False, ["sjf", "fcfs"], out)
    waits = pd.read_csv(tmp_path / "both_waits.csv")
    assert (waits["p99_wait_s"] <= waits["longest_wait_s"]).all()
    table = pd.read_csv(tmp_path / "both_paired.csv")
    assert table[["policy", "against", "n"]].to_numpy().tolist() == [["fcfs", "sjf", 9]]
    assert 0 < table["difference_low"][0] < table["difference"][0] < table["difference_high"][0]


class TestReading:
    def test_run_times_below_zero_count_as_ten_and_zero_is_left_out(self, tmp_path: Path) -> None:
        log = read_protocol(swf(tmp_path / "a.swf", [(2, 5, -1, 1, 7), (1, 0, 0, 1, 7), (3, 9, 30, 2, -1)]))
        jobs = log.jobs(0, 2)
        assert jobs.duration.tolist() == [10.0, 30.0]
        assert jobs.estimate.tolist() == [7.0, 30.0]
        assert jobs.demand.tolist() == [[1000], [2000]]
        assert log.processors == 4

    def test_a_job_larger_than_the_machine_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(UserError, match=r"a\.swf: the protocol expects 1 to 4 processors; job 7 is not so"):
            read_protocol(swf(tmp_path / "a.swf", [(7, 0, 5, 9, 5)]))

    def test_a_truncated_gzip_is_one_line(self, tmp_path: Path) -> None:
        whole = gzip.compress(swf(tmp_path / "a.swf", [(1, 0, 5, 1, 5)]).read_bytes())
        path = tmp_path / "a.swf.gz"
        path.write_bytes(whole[:-6])
        with pytest.raises(UserError, match="not a whole gzip file"):
            read_protocol(path)

    def test_a_log_that_is_too_short_says_how_long_it_must_be(self, tmp_path: Path) -> None:
        path = swf(tmp_path / "a.swf", [(k, k, 5, 1, 5) for k in range(1, 4)])
        with pytest.raises(UserError, match="3 jobs; the first published sequence needs 3005"):
            run(path, 0, False, ["sjf"], tmp_path / "out.csv")

    def test_a_table_that_is_no_csv_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(UserError, match=r"expected a name that ends in \.csv$"):
            run(tmp_path / "missing.swf", 0, False, ["sjf"], tmp_path / "out.csv.gz")

    def test_an_unknown_policy_is_named_before_the_log_is_read(self, tmp_path: Path) -> None:
        with pytest.raises(UserError, match=r"unknown policy 'sfj'.*did you mean 'sjf'"):
            run(tmp_path / "missing.swf", 0, False, ["sfj"], tmp_path / "out.csv")

    def test_a_model_has_two_names_without_and_with_look_ahead(self, tmp_path: Path) -> None:
        one, other = tmp_path / "x" / "a", tmp_path / "y" / "a"
        for folder in (one, other):
            folder.mkdir(parents=True)
        with pytest.raises(UserError, match="expected names that differ, found another 'a'"):
            run(tmp_path / "missing.swf", 0, False, [str(one), str(other)], tmp_path / "out.csv")
        with pytest.raises(UserError, match=r"x/a.*policy\.json"):  # empty folders are no models
            run(tmp_path / "missing.swf", 0, False, [str(one), f"plan_{one}"], tmp_path / "out.csv")


@has_shared
def test_look_ahead_plays_after_the_jobs_that_futures_are_taken_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = plans.USUAL._replace(candidates=3, futures=2, ahead=2, decisions=1000, sure=0.0)
    monkeypatch.setattr(plans, "USUAL", few)  # 64 futures of 20 candidates take minutes
    out = tmp_path / "slice.csv"
    run(LUBLIN, 3100, False, ["saf", "plan_saf"], out)
    means = pd.read_csv(out).set_index("policy")["avg_bounded_slowdown"]
    assert list(means.index) == ["saf", "plan_saf"]
    assert means["saf"] != means["plan_saf"]
    # Jobs 2,048 on; what begins before is left out.
    assert pd.read_csv(tmp_path / "slice_paired.csv")["n"].tolist() == [1]


def test_sequences_that_do_not_overlap_share_no_job(tmp_path: Path) -> None:
    log = read_protocol(swf(tmp_path / "a.swf", [(k, k, 5, 1, 5) for k in range(1, 3000)]))
    assert apart(log) == [(0, 0), (1, SEQUENCE)]
    assert apart(log, after=1) == [(1, SEQUENCE)]
    assert fitting(log) == []


def test_a_paired_difference_is_relative_to_the_reference() -> None:
    rows = [(k, policy, value) for k in range(6) for policy, value in (("sjf", 10.0), ("fcfs", 15.0))]
    found = pd.DataFrame(rows, columns=["seq", "policy", "avg_bounded_slowdown"])
    table = paired(found, seed=1)
    assert table["policy"].tolist() == ["fcfs"]
    assert np.allclose(table[["difference", "difference_low", "difference_high"]], 0.5)
