"""Logs and job tables larger than memory: small chunks change no result, and large files need bounded memory.

The slow tests make their own files: a log of 5 million jobs, tables of 10 million rows.
"""

import gzip
import os
import re
import subprocess
import sys
import tracemalloc
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from builders import REPOSITORY

from pipeline.core.config import Params, PoolScenario, load_params
from pipeline.core.logs import rows as chunked
from pipeline.core.logs import swf
from pipeline.core.logs.swf import read as read_log
from pipeline.core.logs.trace import Trace
from pipeline.errors import UserError
from pipeline.interactive.pool.scheduling import SCHEDULING, abreast, job_columns, schedule
from pipeline.interactive.pool.scheduling import scheduled as as_scheduled
from pipeline.interactive.scheduling.schedule import write
from pipeline.interactive.scheduling.user_jobs import UserJobs, read_user_jobs
from pipeline.problems.pool.env.nouns import Cluster, JobSet
from pipeline.problems.pool.heuristics.scores import HEURISTICS
from pipeline.progress import no_progress

MIB = 1 << 20
MOST_MIB = 2048
HEAD = "jobset,job,arrival,duration,cpu,memory"


# A log in small chunks


def job(k: int, rng: np.random.Generator) -> str:
    """Return a line of a log: most are plain, some have a fault that is repaired or sets the line aside."""
    fields = [k, 10 * k, 5, int(rng.integers(1, 9000)), 2, -1, 100, 2, 60, -1, 1, 1, 1, 1, 1, -1, -1, -1]
    kind = rng.integers(0, 40)
    if kind == 0:
        fields[1] -= 500  # out of order
    if kind == 1:
        fields[3] = -1
    if kind == 2:
        fields[4] = fields[7] = 0
    line = " ".join(map(str, fields))
    if kind == 3:
        line = line.rsplit(" ", 1)[0]
    if kind == 4:
        line = line.replace(" 5 ", f" {rng.random() * 100!r} ", 1)
    return f"; a note\n\n{line}" if kind == 5 else line


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log of 4,000 lines, of which one in seven is not plain; those of its second half are all plain."""
    rng = np.random.default_rng(5)
    path = tmp_path_factory.mktemp("log") / "log.swf"
    rows = [job(k, rng) for k in range(2_000)]
    rows += [f"{k} {10 * k} 5 {k % 50 + 1}.5 1 -1 7 2 60 -1 1 1 1 1 1 -1 -1 -1" for k in range(2_000, 4_000)]
    path.write_text("\n".join(["; MaxProcs: 64", *rows]))
    return path


def same(one: Trace, other: Trace) -> None:
    for mine, yours in zip(one, other, strict=True):
        np.testing.assert_equal(mine, yours)


@pytest.mark.parametrize("chunk", [1000, 4096, 1 << 16])
def test_a_log_is_the_same_in_chunks_of_any_size(mixed: Path, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = read_log(mixed)
    monkeypatch.setattr(chunked, "CHUNK", chunk)
    same(read_log(mixed), whole)


def test_a_log_is_the_same_line_by_line(mixed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunked, "CHUNK", 4096)
    fast = read_log(mixed)
    assert {what.reason for what in fast.repaired} >= {"17 columns: last one taken as unknown"}
    monkeypatch.setattr(swf, "_plain_numbers", lambda text: None)
    same(read_log(mixed), fast)


def test_plain_lines_take_the_fast_way_and_others_do_not() -> None:
    plain = b"1 2.5 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 1e3\r\n" * 3
    found = swf._plain_numbers(plain)
    assert found is not None
    assert found.tolist() == [[1, 2.5, *range(3, 18), 1000]] * 3
    for old, new in ((b"2.5", b"nan"), (b"2.5", b"True"), (b"2.5", b"1_0"), (b"17 ", b""), (b"2.5", b"1e12")):
        assert swf._plain_numbers(plain + plain.replace(old, new, 1)) is None
    for more in (b"; a note\n", b"\0", b"\xff", b"1\r2"):
        assert swf._plain_numbers(plain + more) is None


def test_fractions_are_what_python_reads() -> None:
    rng = np.random.default_rng(3)
    written = [repr(float(x)) for x in rng.random((500, 18)).ravel() * 10.0 ** rng.integers(-5, 11, 9000)]
    rows = [" ".join(written[k : k + 18]) for k in range(0, 9000, 18)]
    found = swf._plain_numbers("\n".join(rows).encode())
    assert found is not None
    assert found.ravel().tolist() == [float(number) for number in written]


@pytest.mark.parametrize("line", [1, 1_999, 3_998])
def test_a_bad_line_is_named_by_its_number_in_the_whole_log(
    mixed: Path, tmp_path: Path, line: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunked, "CHUNK", 4096)
    rows = mixed.read_text().split("\n")
    path = tmp_path / "log.swf"
    path.write_text("\n".join([*rows[:line], "1 2 3", *rows[line:]]))
    with pytest.raises(UserError, match=rf"log.swf:{line + 1}: expected 18 numbers, found 3$"):
        read_log(path)


def test_what_is_kept_of_a_log_is_little(mixed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunked, "CHUNK", 1 << 14)
    tracemalloc.start()
    log = read_log(mixed)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 16 * (1 << 14) + 250 * len(log.id)  # some copies of a chunk; 76 bytes per job, sorted and aggregated


def test_reading_is_heard_of(mixed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunked, "CHUNK", 1 << 14)
    told: list[float] = []
    read_log(mixed, lambda percent, note: told.append(percent))
    assert len(told) > 10
    assert told == sorted(told)
    assert told[-1] == 100


# A table in small chunks


def table(jobsets: int, each: int, seed: int = 1) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    jobs = jobsets * each
    arrival = np.sort(rng.integers(0, 2 * each, (jobsets, each)), axis=1).ravel()
    duration = np.where(rng.random(jobs) < 0.8, rng.integers(1, 4, jobs), rng.integers(10, 16, jobs))
    ids = {"jobset": np.repeat(np.arange(jobsets), each), "job": np.tile(np.arange(each), jobsets)}
    demands = {name: rng.integers(1, 6, jobs) for name in ("cpu", "memory")}
    return pd.DataFrame({**ids, "arrival": arrival, "duration": duration, **demands})


@pytest.fixture
def online(params: Params) -> PoolScenario:
    return params.pool_scenario("online")


def read(path: Path, scenario: PoolScenario, rows: int) -> UserJobs[JobSet]:
    return read_user_jobs(path, job_columns(load_params(REPOSITORY / "params.yaml"), scenario), rows)


def write_schedule(path: Path, jobs: UserJobs[JobSet], start: np.ndarray, rows: int = 10**6) -> None:
    write(path, jobs, as_scheduled(jobs.jobs, start), SCHEDULING, rows)


def scheduled(jobs: UserJobs[JobSet], scenario: PoolScenario, at_once: int, policy: str = "random") -> list[int]:
    found = schedule(jobs, Cluster.of(scenario), HEURISTICS[policy], True, 1, no_progress, at_once)
    return [int(step) for step in found]


@pytest.mark.parametrize("name", ["jobs.csv", "jobs.csv.gz", "jobs.parquet"])
@pytest.mark.parametrize("shuffled", [False, True])
def test_a_table_is_the_same_in_chunks_and_parts_of_any_size(
    tmp_path: Path, online: PoolScenario, name: str, shuffled: bool
) -> None:
    frame = table(15, 50)
    if shuffled:
        frame = frame.sample(frac=1, random_state=2)
    path = tmp_path / name
    frame.to_parquet(path) if name.endswith(".parquet") else frame.to_csv(path, index=False)
    whole, chunked = read(path, online, rows=10**6), read(path, online, rows=77)
    assert chunked.ids.to_pandas().astype("int64").equals(whole.ids.to_pandas().astype("int64"))
    assert whole.ids["job"].to_pylist() == frame["job"].tolist()
    for mine, yours in zip((chunked.number, *chunked.jobs), (whole.number, *whole.jobs), strict=True):
        np.testing.assert_array_equal(mine, yours)
    assert scheduled(chunked, online, at_once=120) == scheduled(whole, online, at_once=10**6)


def test_parts_hold_whole_jobsets_up_to_a_number_of_jobs(tmp_path: Path, online: PoolScenario) -> None:
    path = tmp_path / "jobs.csv"
    table(7, 10).to_csv(path, index=False)
    jobs = read(path, online, 10**6)
    assert [part.number.tolist() for part in jobs.parts(abreast(20), jobs=35)] == [[0, 1, 2], [3, 4, 5], [6]]
    assert [part.number.tolist() for part in jobs.parts(abreast(20), jobs=3)] == [[k] for k in range(7)]
    assert [part.number.tolist() for part in jobs.parts(abreast(1 << 21))] == [[0, 1], [2, 3], [4, 5], [6]]


@pytest.mark.parametrize("name", ["out.csv", "out.csv.gz", "out.parquet"])
def test_a_schedule_is_the_same_in_chunks_of_any_size(tmp_path: Path, online: PoolScenario, name: str) -> None:
    path = tmp_path / "jobs.csv"
    table(5, 40).to_csv(path, index=False)
    jobs = read(path, online, rows=77)
    start = np.array(scheduled(jobs, online, at_once=10**6))
    for folder, rows in (("one", 10**6), ("more", 33)):
        write_schedule(tmp_path / folder / name, jobs, start, rows)
    one, more = tmp_path / "one" / name, tmp_path / "more" / name
    if name == "out.parquet":  # its row groups differ, and so do its bytes
        pd.testing.assert_frame_equal(pd.read_parquet(one), pd.read_parquet(more))
    else:
        assert one.read_bytes() == more.read_bytes()
    if name == "out.csv.gz":
        assert gzip.compress(gzip.decompress(one.read_bytes()), mtime=0) == one.read_bytes()
    assert sorted(place.name for place in (tmp_path / "one").iterdir()) == [name]


def test_ids_are_as_written_whatever_chunk_they_stand_in(tmp_path: Path, online: PoolScenario) -> None:
    rows = [f"{k // 3},{k},0,1,1,1" for k in range(9)] + ["night,007,0,1,1,1", "2,x,0,1,1,1", "NA,7,0,1,1,1"]
    path = tmp_path / "jobs.csv"
    path.write_text("\n".join([HEAD, *rows]))
    jobs = read(path, online, rows=4)
    assert jobs.ids["jobset"].to_pylist() == [*"000111222", "night", "2", "NA"]
    assert jobs.ids["job"].to_pylist() == [*map(str, range(9)), "007", "x", "7"]
    assert jobs.number.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 2, 4]


def test_numbers_with_a_point_stay_whole_as_ids(tmp_path: Path, online: PoolScenario) -> None:
    frame = table(1, 3).assign(job=[1234567.0, 12345678.0, 3.0], jobset=[0.5, 0.5, 1234567.25])
    frame.to_parquet(tmp_path / "jobs.parquet")
    jobs = read(tmp_path / "jobs.parquet", online, rows=10**6)
    write_schedule(tmp_path / "out.csv", jobs, jobs.jobs.arrival)
    ids = [line.split(",")[:2] for line in (tmp_path / "out.csv").read_text().splitlines()[1:]]
    assert ids == [["0.5", "1234567"], ["0.5", "12345678"], ["1234567.25", "3"]]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("0,x,-1,1,1,1", "arrival: expected at least 0, got -1 in line 502"),
        ("0,x,soon,1,1,1", "arrival: expected a whole number in line 502, got soon"),
        ("0,x,0,1,11,1", "cpu: expected at most 10, got 11 in line 502"),
        ("0,,0,1,1,1", "job: expected not_nullable, got nan in line 502"),
        ("0,7,0,1,1,1", "expected each jobset, job once, got the one in line 9 again"),
    ],
)
@pytest.mark.parametrize("rows", [33, 10**6])
def test_a_bad_row_is_named_by_its_number_in_the_whole_table(
    tmp_path: Path, online: PoolScenario, row: str, said: str, rows: int
) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text("\n".join([HEAD, *(f"0,{k},0,1,1,1" for k in range(500)), row, "1,0,0,1,1,1"]))
    with pytest.raises(UserError) as caught:
        read(path, online, rows)
    assert str(caught.value) == f"{path}: {said}"


@pytest.mark.parametrize(("words", "bytes_of_a_row"), [(False, 28), (True, 44)])
def test_a_table_is_held_in_few_bytes(tmp_path: Path, online: PoolScenario, words: bool, bytes_of_a_row: int) -> None:
    frame = table(100, 300)
    if words:
        frame["jobset"] = "night-" + frame["jobset"].astype(str)
        frame["job"] = "job-" + frame["job"].astype(str)
    path = tmp_path / "jobs.csv"
    frame.to_csv(path, index=False)
    jobs = read(path, online, rows=1000)
    arrays = jobs.number.nbytes + jobs.jobs.arrival.nbytes + jobs.jobs.duration.nbytes + jobs.jobs.demand.nbytes
    assert (arrays + jobs.ids.nbytes) / len(frame) <= bytes_of_a_row + 4


# Large files


def measured(folder: Path, *words: str) -> tuple[float, str]:
    """Run a command as users do; return its peak memory in MiB, and its output."""
    named = {**os.environ, "PIPELINE_TRACKING": "off", "PYTHONPATH": str(REPOSITORY)}
    with (folder / "said").open("w+") as said:
        begun = subprocess.Popen([sys.executable, "-m", "pipeline", *words], cwd=folder, env=named, stderr=said)
        _, status, usage = os.wait4(begun.pid, 0)
        begun.returncode = os.waitstatus_to_exitcode(status)
        text = (folder / "said").read_text()
    assert begun.returncode == 0, text
    return usage.ru_maxrss * 1024 / MIB, text


def write_log(path: Path, jobs: int) -> None:
    rng = np.random.default_rng(1)
    opener = partial(gzip.open, compresslevel=1) if path.suffix == ".gz" else open
    with opener(path, "wb") as stream:
        stream.write(b"; Version: 2.2\n; MaxProcs: 1024\n")
        for first in range(0, jobs, 250_000):
            n = min(250_000, jobs - first)
            size, run = 2 ** rng.integers(0, 8, n), np.minimum(rng.lognormal(7, 2, n), 4e5).astype(int)
            run[rng.random(n) < 0.01] = -1
            unknown, number = np.full(n, -1), np.arange(first, first + n)
            kb = rng.integers(60, 90_000, n)
            fields = [number + 1, 30 * number, rng.integers(0, 9000, n), run, size, unknown, kb, size, run, unknown]
            fields += [*rng.integers(1, 300, (5, n)), unknown, unknown, unknown]
            text = pd.DataFrame(np.stack(fields, axis=1)).to_csv(sep=" ", header=False, index=False)
            stream.write(text.encode())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["log.swf", "log.swf.gz"])
def test_a_log_of_five_million_jobs_becomes_jobsets(tmp_path: Path, name: str) -> None:
    write_log(tmp_path / name, 5_000_000)
    whole = (REPOSITORY / "params.yaml").read_text()
    text = re.sub(r"(?ms)^workload:\n.*?^$", f"workload: {{name: swf, path: {name}, accept: [size, load]}}\n", whole)
    (tmp_path / "params.yaml").write_text(text)
    measured(tmp_path, "log")
    peak, said = measured(tmp_path, "generate", "online")
    assert "jobs over 1736.1 days" in said
    assert len(pd.read_parquet(tmp_path / "data/jobsets/online/train.parquet")) == 100 * 100
    assert peak <= MOST_MIB


@pytest.mark.slow
@pytest.mark.parametrize("name", ["jobs.csv", "jobs.csv.gz", "jobs.parquet"])
@pytest.mark.parametrize(("jobsets", "each"), [(10_000, 1_000), (1, 10_000_000)])  # the single stream takes 15 minutes
def test_a_table_of_ten_million_rows_is_scheduled(tmp_path: Path, name: str, jobsets: int, each: int) -> None:
    if jobsets == 1 and name != "jobs.csv":
        pytest.skip("the one stream is played once; formats differ in reading only")
    frame = table(jobsets, each)
    frame.to_parquet(tmp_path / name) if name.endswith(".parquet") else frame.to_csv(tmp_path / name, index=False)
    del frame
    (tmp_path / "params.yaml").write_text((REPOSITORY / "params.yaml").read_text())
    words = f"schedule {name} --scenario online --policy sjf --out out.parquet"
    peak, said = measured(tmp_path, *words.split())
    assert "out.parquet: 10000000 jobs, mean slowdown " in said
    assert len(pd.read_parquet(tmp_path / "out.parquet", columns=["start"])) == 10_000_000
    assert peak <= MOST_MIB
