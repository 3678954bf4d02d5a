"""A busy day is chosen by its queue, played on a real slurmctld with a fast clock, and compared in pairs."""

import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks.slurm.accelerated import accelerated
from benchmarks.slurm.accounting import why_no_accounting
from benchmarks.slurm.busy_day import BusyDay, chosen, in_minutes, replayed
from benchmarks.slurm.clock import why_no_clock
from benchmarks.slurm.configuration import Cluster
from benchmarks.slurm.day import extended
from benchmarks.slurm.day_figures import DAY, effects, lines
from benchmarks.slurm.day_played import played, rows_of
from benchmarks.slurm.loopback import why_not
from pipeline.core.logs.trace import DAY_S
from pipeline.errors import UserError
from pipeline.sites.replay import LINEAR, Backfill, Order, Queue, replay
from pipeline.sites.slurm_config import SlurmConfig
from pipeline.sites.slurm_settings import ExpectedWaits, named_order, plan_settings, settings_files

REASON = why_not() or why_no_accounting() or why_no_clock()
CPUS, SPEED = 4, 200.0


def queue_of(submit: list[float], run: list[float], limit: list[float], cpus: list[int]) -> Queue:
    """Return jobs of one pool of processors."""
    count = len(submit)
    none = np.zeros(count, dtype=np.int64)
    return Queue(
        submit=np.array(submit), run=np.array(run), limit=np.array(limit), nodes=np.ones(count, dtype=np.int64),
        demand=np.array(cpus)[:, None] * 1000, cpus=np.array(cpus, dtype=float), user=none, qos=np.zeros(count),
        partition=none, capacity=np.array([[CPUS * 1000]]), members=np.array([[True]]), tier=np.ones(1, dtype=np.int64),
        factor=np.ones(1), counted=np.empty((count, 0), dtype=np.int64), bound=np.empty((count, 0), dtype=np.bool_),
        most=np.empty(0), of_jobs=np.empty(0, dtype=np.bool_),
    )  # fmt: skip


def test_the_day_with_most_waiting_is_chosen_and_begins_with_what_runs() -> None:
    hour = 3600.0
    submit = [0.0, DAY_S + hour, DAY_S + 2 * hour, 2 * DAY_S - hour, 2 * DAY_S + hour, 3 * DAY_S + hour, 4 * DAY_S]
    run = [hour, 2 * hour, hour, 3 * hour, hour, hour, hour]
    queue = queue_of(submit, run, [2 * one for one in run], [CPUS] * 7)
    day = chosen(queue, 0, Backfill())
    # On day 1 a job waits for an hour, and on day 2 another one for an hour; the later day is chosen among equals.
    assert (day.number, day.running, day.counted) == (2, 1, 1)
    assert day.job.tolist() == [3, 4, 5, 6]
    assert day.queue.run[:2].tolist() == [2 * hour, hour]
    assert day.queue.limit[0] == 5 * hour
    assert day.queue.submit.tolist() == [0.0, hour, DAY_S + hour, 2 * DAY_S]
    for submits, starts in replayed(day, "fcfs", 1):
        assert starts.tolist() == [0.0, 2 * hour]
        assert abs(submits[1] - hour) <= 60


def test_without_a_suitable_day_there_is_an_error() -> None:
    with pytest.raises(UserError, match="expected a day with 1 to 400 jobs"):
        chosen(queue_of([0.0, 10.0], [5.0, 5.0], [60.0, 60.0], [1, 1]), 0, Backfill())


def test_limits_are_whole_minutes_at_which_jobs_end() -> None:
    queue = in_minutes(queue_of([0.0, 1.0], [70.0, 200.0], [61.0, 180.0], [1, 1]), 5.0)
    assert queue.limit.tolist() == [120.0, 180.0]
    assert queue.run.tolist() == [70.0, 180.0]
    assert queue.submit.tolist() == [5.0, 6.0]


def test_effects_are_paired_by_repeat() -> None:
    waits = {("before", 0): (100.0, 300.0), ("after", 0): (50.0, 250.0), ("before", 1): (80.0, 120.0),
             ("after", 1): (40.0, 80.0), ("before", 2): (1.0, 1.0)}  # fmt: skip
    rows = [
        {"player": "slurm", "setting": setting, "repeat": repeat, "speed": 1.0, "part": "day", "job": job}
        | {"planned_s": 0.0, "run_s": 100.0, "limit_s": 120.0, "cpus": 1}
        | {"submit_s": 0.0, "start_s": wait, "end_s": np.nan}
        for (setting, repeat), both in waits.items()
        for job, wait in enumerate(both)
    ]
    day = DAY.validate(pd.DataFrame(rows))
    mean, slowdown, p99, longest = effects(day, "slurm")
    assert (mean.before, mean.after, mean.pairs) == (150.0, 105.0, 2)
    assert mean.change == pytest.approx((-0.25 - 0.4) / 2)
    assert np.isnan(mean.low)  # of two pairs
    assert (slowdown.before, slowdown.after) == (2.5, 2.05)
    assert (p99.after, longest.before) == (165.0, 210.0)
    said = lines(day)
    assert said[0] == "slurm: mean wait: 150 before, 105 after: -32.5 %, n = 2 pairs"
    assert said[4:] == ["slurm: medians of the fast clock's delays: submitted late by 0 s"]


@pytest.mark.live
@pytest.mark.skipif(bool(REASON), reason=REASON)
@pytest.mark.parametrize(("enforced", "order"), [(False, [1, 2, 3]), (True, [2, 1, 3])])
def test_jobs_start_on_slurm_as_in_the_replay(enforced: bool, order: list[int], tmp_path: Path) -> None:
    """Job 0 has all processors for ten minutes; then the settings prefer the shorter of two limits."""
    whole = queue_of(
        [0.0, 60.0, 120.0, 1200.0], [600.0, 900.0, 300.0, 60.0], [1200.0, 36_000.0, 600.0, 600.0], [CPUS] * 4
    )
    day = BusyDay(0, whole, np.arange(4), 1, 3, Backfill(reservations=500, interval=30.0))
    settings = plan_settings(named_order("limit", 28_800.0), SlurmConfig({}), 86_400.0)
    waits = ExpectedWaits(3600.0, 7200.0, 86_400.0)
    for name, text in settings_files(settings, waits, waits).items():
        (tmp_path / name).write_text(text)
    found = played(day, Cluster(nodes=1, cpus=CPUS, mib=1000), SPEED, tmp_path if enforced else None)
    assert found.iloc[1:].sort_values("start_s")["job"].tolist() == order
    ((_, start), *_) = replayed(day, "limit_8h" if enforced else "fcfs", 0)
    assert found["start_s"].to_numpy()[1:] == pytest.approx(start[1:], abs=180)


@pytest.mark.live
@pytest.mark.skipif(bool(REASON), reason=REASON)
@pytest.mark.parametrize(
    ("flag", "tree", "order"), [("", True, [0, 1, 2, 4, 3]), ("NO_FAIR_TREE", False, [0, 2, 1, 4, 3])]
)
def test_fair_share_orders_jobs_on_slurm_as_in_the_replay(
    flag: str, tree: bool, order: list[int], tmp_path: Path
) -> None:
    """Each job has all processors; jobs of accounts b and c lose 85 % of the weight because they are nice.

    After job 0, account a has the factor 1/4 in Fair Tree and 2^-4 in the classic formula, since only one of four
    associations (one is that of root) has used anything. The factors of b and c are 1, so 0.15 is left.
    """
    weight, nice = 100_000, [0, 0, 85_000, 85_000, 85_000]
    lines = {"PriorityType": "priority/multifactor", "PriorityWeightFairShare": weight, "PriorityCalcPeriod": 1}
    lines |= {"PriorityFlags": flag} if flag else {}
    (tmp_path / "slurm.conf.lines").write_text("".join(f"{name}={value}\n" for name, value in lines.items()))
    user, submit, run = [0, 0, 1, 1, 2], [0.0, 60.0, 120.0, 180.0, 240.0], [1200.0, 900.0, 900.0, 900.0, 900.0]
    with accelerated(Cluster(nodes=1, cpus=CPUS, mib=1000), 2 * SPEED, tmp_path) as (slurm, _):
        for name in "abc":
            slurm.ask("sacctmgr", "--immediate", "add", "account", name)
            slurm.ask("sacctmgr", "--immediate", "add", "user", "root", f"account={name}")
        begin, numbers = time.monotonic(), list[str]()
        for job in range(5):
            time.sleep(max(0.0, begin + submit[job] / (2 * SPEED) - time.monotonic()))
            options = (f"--account={'abc'[user[job]]}", f"--ntasks={CPUS}", "--time=60", f"--nice={nice[job]}")
            numbers.append(slurm.submit(f"sleep {run[job] / (2 * SPEED)}", *options, "--mem-per-cpu=1"))
        slurm.until(lambda: "PD" not in slurm.states().values(), "all jobs to start", 120.0)
        found = slurm.jobs(SLURM_TIME_FORMAT="%s")
    assert sorted(range(5), key=lambda job: int(found[numbers[job]]["StartTime"])) == order
    queue = queue_of(submit, run, [3600.0] * 5, [CPUS] * 5)._replace(user=np.array(user))
    ours = Order(LINEAR, -np.array(nice, float), fair_share=weight, fair_tree=tree, users=4, period=60.0)
    assert replay(queue, ours, Backfill(), queue.submit, np.arange(5)).argsort().tolist() == order


def test_an_interrupted_day_continues_with_the_missing_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    whole = queue_of([0.0, 60.0], [600.0, 900.0], [1200.0, 1200.0], [CPUS, CPUS])
    day, ran = BusyDay(0, whole, np.arange(2), 0, 2, Backfill()), list[Path | None]()

    def run(busy: BusyDay, _: Cluster, __: float, settings: Path | None) -> pd.DataFrame:
        if len(ran) == 2:
            ran.append(Path("broken"))
            raise UserError("Slurm on loopback: stopped")
        ran.append(settings)
        times = {"place": [0, 1], "submit_s": [0.0, 60.0], "start_s": [0.0, 600.0], "end_s": [600.0, 1500.0]}
        return rows_of(busy, pd.DataFrame(times))

    monkeypatch.setattr("benchmarks.slurm.day.played", run)
    wanted = (day, tmp_path, tmp_path / "day.csv", "limit_8h", 2, SPEED)
    with pytest.raises(UserError, match="stopped"):
        extended(*wanted)
    found = extended(*wanted)
    assert ran == [None, tmp_path, Path("broken"), None, tmp_path]
    slurm = found[found["player"] == "slurm"]
    assert slurm.groupby(["repeat", "setting"]).size().to_dict() == {
        (repeat, setting): 2 for repeat in (0, 1) for setting in ("after", "before")
    }
    with pytest.raises(UserError, match="expected runs of day 0 at speed 100, found others: name another file"):
        extended(*wanted[:-1], 100.0)
