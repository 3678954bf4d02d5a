"""The comparison with other simulators: its jobs, its limit, and the check that all simulate the same."""

import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from builders import REPOSITORY

from benchmarks.peers.__main__ import larger, sizes
from benchmarks.peers.drivers.run_our_environment import picks
from benchmarks.peers.drivers.run_ours import starts
from benchmarks.peers.rows import cells, disagreements
from benchmarks.peers.running import parse, run
from benchmarks.peers.simulators import CHECKOUTS, SIMULATORS, Ready, prepare
from benchmarks.peers.workload import LOAD, QueueJobs, draw, read_swf, write_swf

COLUMNS = ["rule", "jobs", "machines", "simulator", "run", "finished", "done", "decisions", "cpu_s", "mean", "peak_mib"]


def row(name: str, mean: float | None, cpu_s: float | None = 2.0, turn: int = 0) -> dict[str, object]:
    values = ["fcfs", 1000, 100, name, turn, int(cpu_s is not None), 1000, 1000, cpu_s, mean, 50.0]
    return dict(zip(COLUMNS, values, strict=True))


def test_a_queue_has_the_load_that_it_should_and_comes_back_from_its_file(tmp_path: Path) -> None:
    jobs = draw(20_000, 64)
    assert set(jobs.size) == {1, 2, 4, 8, 16, 32, 64}
    assert (jobs.size * jobs.run).sum() / (64 * jobs.submit[-1]) == pytest.approx(LOAD, rel=0.05)
    write_swf(tmp_path / "queue.swf", jobs, 64)
    back, machines = read_swf(tmp_path / "queue.swf")
    assert machines == 64
    assert all((mine == other).all() for mine, other in zip(jobs, back, strict=True))
    assert set(draw(100, 64, serial=True).size) == {1}


def test_our_simulators_start_jobs_in_order_of_arrival() -> None:
    """The second needs both machines at 10; the third would fit at 2, and with backfilling it starts then."""
    jobs = QueueJobs(np.array([0, 1, 2]), np.array([10, 5, 3]), np.array([1, 2, 1]))
    expected = {"fcfs": [0, 10, 15], "easy": [0, 10, 2]}
    for rule, times in expected.items():
        assert starts("reference", jobs, 2, rule)().tolist() == times
    assert starts("replay_pooled", jobs, 2, "easy")().tolist() == expected["easy"]


def shortest_first(jobs: QueueJobs, machines: int) -> float:
    """Return the mean bounded slowdown if the shortest arrived job is picked, and all wait until it fits."""
    left, running, now, slowdowns = list(range(len(jobs.run))), list[tuple[int, int]](), 0, []
    while left:
        now = max(now, int(jobs.submit[left[0]]))
        job = min((k for k in left if jobs.submit[k] <= now), key=lambda k: jobs.run[k])
        running = [one for one in running if one[0] > now]
        while sum(size for _, size in running) + jobs.size[job] > machines:
            now = min(running)[0]
            running = [one for one in running if one[0] > now]
        running.append((now + int(jobs.run[job]), int(jobs.size[job])))
        left.remove(job)
        slowdowns.append(max((now - jobs.submit[job] + jobs.run[job]) / max(jobs.run[job], 10), 1))
    return float(np.mean(slowdowns))


def test_our_environment_of_rlschedulers_protocol_gives_what_a_plain_loop_gives(tmp_path: Path) -> None:
    drawn = draw(1_300, 16)  # run times become distinct, since jobs of equal ones are ordered by slot
    jobs = drawn._replace(run=np.random.default_rng(1).permutation(1_300) + 1, submit=20 * drawn.submit)
    write_swf(tmp_path / "queue.swf", jobs, 16)
    found = picks(str(tmp_path / "queue.swf"))
    test = QueueJobs(*(column[1_040:1_296] for column in jobs))
    assert (found["jobs"], found["decisions"]) == (256, 256)
    assert found["mean"] == pytest.approx(shortest_first(test, 16))


def test_a_result_is_the_marked_line_and_another_output_is_an_error() -> None:
    assert parse('hello\nRESULT {"jobs": 3}\nbye') == {"jobs": 3}
    with pytest.raises(ValueError, match="no result, but: hello"):
        parse("hello")


def test_a_run_is_stopped_at_the_limit_of_processor_time_and_a_failure_is_not_a_result() -> None:
    endless = run(Ready([sys.executable, "-c", "while True: pass"], None, False), [], 1)
    assert (endless.cpu_s, endless.mean) == (None, None)
    line = 'RESULT {"jobs": 3, "decisions": 4, "wall_s": 2.0, "cpu_s": 1.0, "mean": 5.0}'
    found = run(Ready([sys.executable, "-c", f"print('{line}')"], None, False), [], 10)
    assert found[:5] == (3, 4, 2.0, 1.0, 5.0)
    assert found.peak_mib > 1
    with pytest.raises(ValueError, match="ended with 3"):
        run(Ready([sys.executable, "-c", "raise SystemExit(3)"], None, False), [], 10)


def test_larger_sizes_follow_a_size_that_took_too_long() -> None:
    assert larger("fcfs", 1000, 1000, {("fcfs", 1000, 100)})
    assert not larger("fcfs", 1000, 10, {("fcfs", 1000, 100)})
    assert len(sizes()) == len(set(sizes()))


def test_medians_are_per_simulator_and_a_stopped_run_is_not_finished() -> None:
    rows = pd.DataFrame([row("compiled", 29.0, 1.0), row("compiled", 29.0, 2.0, 1), row("compiled", 29.0, 10.0, 2)])
    assert cells(rows)["fcfs", 1000, 100, "compiled"].jobs_per_s == 500
    stopped = pd.DataFrame([row("compiled", 29.0), row("accasim", None, None)])
    assert not cells(stopped)["fcfs", 1000, 100, "accasim"].finished
    assert disagreements(stopped) == []


def test_a_simulator_with_another_mean_wait_is_named() -> None:
    rows = pd.DataFrame([row("compiled", 29.0), row("alea", 29.01), row("schedgym", 31.9)])
    assert disagreements(rows) == ["sched-rl-gym: fcfs, 1,000 jobs, 100 machines: mean 31.9, ours 29 (+10.0 %)"]


def test_a_peer_without_a_checkout_is_not_available(tmp_path: Path) -> None:
    for name, entry in SIMULATORS.items():
        if entry.checkout is not None:
            reason = f"no checkout {tmp_path / entry.checkout} of {CHECKOUTS[entry.checkout]}"
            assert prepare(name, tmp_path, tmp_path) == reason


def test_the_page_says_what_the_raw_numbers_give() -> None:
    raw = pd.read_csv(REPOSITORY / "docs" / "results" / "speed" / "peers.csv")
    found = cells(raw)
    text = " ".join((REPOSITORY / "docs" / "results" / "speed.md").read_text().split())
    rates = {key: cell.jobs_per_s for key, cell in found.items()}
    many = rates["fcfs", 100_000, 100, "compiled"] / rates["fcfs", 100_000, 100, "rlscheduler"]
    assert re.findall(r"is (\d+) times as fast as RLScheduler", text) == [f"{many:.0f}"]
    assert rates["fcfs", 1_000, 10_000, "compiled"] < rates["fcfs", 1_000, 10_000, "rlscheduler"]
    assert [line for line in disagreements(raw) if ": fcfs," in line or ": serial," in line] == []
