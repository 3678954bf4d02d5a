"""Jobs of event-driven scenarios: what a recipe draws, what a log becomes, and what is said of it."""

import math
from pathlib import Path

import numpy as np
import pytest
from machine_rows import LOG, ROW, TASKS, TRACES, few, scenario, trace, write_log

from pipeline.core.config import Group, MachinePark, MachinesLog, Sampled, Tasks
from pipeline.core.logs.predictions import predict_run_times
from pipeline.core.logs.trace import MachineTable
from pipeline.core.types import ANY_KIND
from pipeline.errors import UserError
from pipeline.problems.machines.env.nouns import EASY, Jobs, check_jobs
from pipeline.problems.machines.env.storage import grouped, machines_of
from pipeline.problems.machines.env.workload.source import Cut, Drawn, load_of_one, mean_run, source
from pipeline.problems.machines.env.workload.windows import fitted, kinds_at, sampled

NOWHERE = Path("nowhere")
ONE = [{"count": 1, "has": {"cpu": 2}}]


def tasks(**changes: object) -> Tasks:
    return Tasks(**(TASKS | changes))


def log(**changes: object) -> MachinesLog:
    return MachinesLog(**(LOG | changes))


def drawn() -> Drawn:
    found = source(few(), "few", NOWHERE)
    assert isinstance(found, Drawn)
    return found


def cut(folder: Path, jobs: int = 200, **changes: object) -> Cut:
    write_log(folder / "log", jobs)
    found = source(few(workload=LOG | changes), "few", folder)
    assert isinstance(found, Cut)
    return found


# Machines


def test_groups_are_machines_in_their_order_with_their_kinds() -> None:
    groups = [Group(count=2, kind="T4", has={"cpu": 4, "gpu": 0.5}), Group(count=1, has={"cpu": 8, "gpu": 0})]
    park = grouped(groups, unit=3.0)
    assert park == MachinePark(
        resources=("cpu", "gpu"),
        capacity=((4000, 500), (4000, 500), (8000, 0)),
        kind=(0, 0, 1),
        kind_names=("T4", ""),
        unit=3.0,
    )
    machines = machines_of(scenario(dispatch="easy", pause=2, time_limit=50), park)
    assert (machines.slots, machines.dispatch, machines.pause, machines.time_limit) == (4, EASY, 6.0, 150.0)
    assert machines.capacity.tolist() == [[4000, 500], [4000, 500], [8000, 0]]


def test_sampled_machines_are_the_logs_own_and_the_same_for_a_seed() -> None:
    table = MachineTable(np.arange(10)[:, None] * 1000, np.arange(10) % 2, ("cpu",))
    first, again, other = (sampled(table, Sampled(sample=5, seed=seed), ("", "T4"), 1.0) for seed in (1, 1, 2))
    assert first == again != other
    amounts = [row[0] for row in first.capacity]
    assert amounts == sorted(set(amounts))
    assert [amount // 1000 % 2 for amount in amounts] == list(first.kind)
    with pytest.raises(UserError, match=r"^machines.sample: expected at most the log's 10 machines, got 11$"):
        sampled(table, Sampled(sample=11), ("", "T4"), 1.0)


def test_the_kinds_of_a_log_become_those_of_the_machines_by_name() -> None:
    park = grouped([Group(count=1, kind=kind, has={"cpu": 1}) for kind in ("A100", "T4")], 1.0)
    bits = np.array([0b01, 0b10, 0b11, 0b100, ANY_KIND], dtype=np.uint64)  # of T4, P100, both; A100; any
    assert kinds_at(park, bits, ("T4", "P100", "A100")).tolist() == [0b10, 0, 0b10, 0b01, int(ANY_KIND)]


# A recipe


def test_the_mean_of_a_cut_run_time_is_exact() -> None:
    some = tasks(median=40.0, spread=1.2, longest=100.0)
    runs = np.minimum(40.0 * np.exp(1.2 * np.random.default_rng(1).standard_normal(1_000_000)), 100.0)
    assert mean_run(some) == pytest.approx(runs.mean(), abs=4 * runs.std() / 1000)
    # Cut at the median, half of the jobs run for it; the mean of the others is e ** (s ** 2 / 2) * P(z < -s).
    below = math.exp(0.5) * math.erfc(1 / math.sqrt(2)) / 2
    assert mean_run(tasks(median=1.0, spread=1.0, longest=1.0)) == pytest.approx(0.5 + below)


def test_the_load_is_the_mean_over_resources_of_what_jobs_hold() -> None:
    park = grouped([Group(count=2, has={"cpu": 4, "memory": 10})], 1.0)
    some = tasks(median=10.0, spread=1e-6, longest=1e9, demand={"cpu": [1, 3], "memory": [1, 1]})
    # One job a time unit holds 10 * 2 of 8 cores and 10 * 1 of 20: 2.5 and 0.5 times all, 1.5 in the mean.
    assert load_of_one(some, park) == pytest.approx(150)


def test_drawn_jobs_are_what_the_recipe_says() -> None:
    origin = drawn()
    jobsets = origin.split("test")
    assert list(jobsets) == [60, 120]
    for jobs in (jobs for group in jobsets.values() for jobs in group):
        assert len(jobs.arrival) == 20
        assert jobs.arrival[0] == 0
        assert (jobs.duration <= 50).all()
        assert (jobs.estimate == jobs.duration).all()
        assert set(jobs.demand[:, 0]) <= {1000, 2000}
        assert set(jobs.demand[:, 1]) <= {1000, 5000}
        check_jobs(jobs, machines_of(origin.scenario, origin.park))


def test_drawn_jobs_come_as_often_as_their_load_says() -> None:
    origin = drawn()
    gap = np.mean([origin.fresh(60, number).arrival[-1] / 19 for number in range(400)])
    # A job holds 1.5 of 12 cores and 3 of 30 GiB in the mean: 11.25 % of all, times run time over gap.
    assert 11.25 * mean_run(origin.tasks) / gap == pytest.approx(60, rel=0.05)


def test_every_jobset_has_a_stream_of_its_own() -> None:
    origin = drawn()
    jobsets = [*origin.split("train")[60], *origin.split("validation")[60], *origin.split("test")[60]]
    jobsets += [origin.fresh(60, number) for number in range(3)] + [origin.fresh(120, 0)]
    durations = {tuple(jobs.duration) for jobs in jobsets}
    assert len(durations) == len(jobsets)
    assert tuple(drawn().fresh(60, 1).duration) == tuple(origin.fresh(60, 1).duration)
    assert origin.park.unit == 1


# A log


def test_a_log_is_told_in_load_and_median_run_time_of_its_training_period() -> None:
    fit = fitted(trace([5, 15, 25, 45], [10, 10, 20, 40], [1, 1, 1, 1]), log(), scenario(machines=ONE, workload=LOG))
    # Of four jobs the first two are learned from: 20 core seconds, of 2 cores for 20 seconds, up to the third.
    assert (fit.load, fit.own_load, fit.park.unit) == ({"cpu": 0.5}, 0.5, 10.0)
    whole = fit.window(0, 4, load=25)
    assert whole.arrival.tolist() == [0, 20, 40, 80]
    assert fit.window(1, 2, load=100).arrival.tolist() == [0, 5]
    assert whole.duration.tolist() == whole.estimate.tolist() == [10, 10, 20, 40]


def test_early_jobs_are_left_out_and_long_ones_cut_and_counted() -> None:
    workload = log(first_s=15, longest_s=20)
    fit = fitted(trace([5, 15, 25, 45], [10, 10, 20, 40], [1, 1, 1, 1]), workload, scenario(machines=ONE, workload=LOG))
    assert fit.left_out == {"arrived before 15 s": 1, "could run on none of the machines": 0}
    assert (fit.capped, fit.jobs.duration.tolist()) == (1, [10, 20, 20])
    assert fit.load["cpu"] == pytest.approx(30 / (2 * 30))


def test_later_jobs_change_neither_load_nor_unit_of_time_nor_a_training_window() -> None:
    row, runs = scenario(machines=ONE, workload=LOG), np.tile([10.0, 20.0, 30.0], 10)
    calm, busy = (
        fitted(trace(np.arange(30) * 5.0, np.where(np.arange(30) < 18, runs, times * runs), [1] * 30), log(), row)
        for times in (1, 9)
    )
    assert (calm.load, calm.park.unit) == (busy.load, busy.park.unit)
    assert calm.window(0, 9, 80).arrival.tolist() == busy.window(0, 9, 80).arrival.tolist()


def test_of_parts_those_to_learn_from_tell_load_and_unit() -> None:
    parts = {"train": [[2, 4]], "validation": [[0, 1]], "test": [[1, 2]]}
    workload = log(parts=parts, block=1)
    fit = fitted(trace([0, 1, 2, 4, 8], [99, 99, 2, 4, 99], [1] * 5), workload, scenario(machines=ONE, workload=LOG))
    assert (fit.load["cpu"], fit.park.unit) == (pytest.approx(6 / (2 * 6)), 3.0)


def test_jobs_that_no_machine_can_hold_are_dropped_and_counted() -> None:
    fit = fitted(trace([0, 1, 2], [10, 10, 10], [2, 3, 1]), log(), scenario(machines=ONE, workload=LOG))
    assert fit.left_out["could run on none of the machines"] == 1
    assert fit.jobs.demand.tolist() == [[2000], [1000]]


def test_kinds_that_no_machine_has_drop_their_jobs() -> None:
    machines = [{"count": 1, "kind": "T4", "has": {"cpu": 2}}]
    jobs = trace([0, 1, 2], [10, 10, 10], [1, 1, 1], kinds=[0b01, 0b10, int(ANY_KIND)], kind_names=("P100", "T4"))
    fit = fitted(jobs, log(), scenario(machines=machines, workload=LOG))
    assert fit.jobs.arrival.tolist() == [1, 2]
    assert fit.jobs.kinds.tolist() == [1, int(ANY_KIND)]


def test_estimates_are_what_policies_are_told_where_the_scenario_says_so() -> None:
    jobs = trace([0, 1], [10, 20], [1, 1], estimate=[30, 60])
    row = scenario(machines=ONE, workload=LOG, policies_know="estimates")
    assert fitted(jobs, log(), row).jobs.estimate.tolist() == [30, 60]
    assert fitted(jobs, log(longest_s=40), row).jobs.estimate.tolist() == [30, 40]
    with pytest.raises(UserError, match=r"^policies_know: the log has no estimates; expected durations$"):
        fitted(trace([0, 1], [10, 20], [1, 1]), log(), row)


def test_predictions_are_learned_from_the_training_period_and_cut_as_run_times_are() -> None:
    rng = np.random.default_rng(0)
    run = rng.integers(1, 90, 100).astype(float)
    jobs = trace(np.arange(100.0), run.tolist(), [1] * 100, estimate=(run + 10).tolist())
    jobs = jobs._replace(user=np.zeros(100, dtype=np.int64))
    row = scenario(machines=ONE, workload=LOG, policies_know="predictions")
    found = fitted(jobs, log(train_share=0.6), row).jobs.estimate
    assert found.tolist() == predict_run_times(jobs, np.arange(60)).tolist()
    assert (
        fitted(jobs, log(train_share=0.6, longest_s=20), row).jobs.estimate.tolist() == np.minimum(found, 20).tolist()
    )
    with pytest.raises(UserError, match=r"^policies_know: the log has neither users nor estimates to predict from; "):
        fitted(trace([0, 1], [10, 20], [1, 1]), log(), row)


@pytest.mark.parametrize(
    ("jobs", "machines", "said"),
    [
        (trace([0, 0], [1, 1], [1, 1]), ONE, "workload: all jobs of the log arrive at once"),
        (trace([0, 1], [1, 1], [0, 0]), ONE, "workload: no job of the log holds anything"),
        (trace([0, 1], [1, 1], [9, 9]), ONE, "workload: no job of 2 is left"),
        (trace([0, 1], [1, 1], [1, 1]), ROW["machines"], "machines: the log has no resource 'memory'; there are: cpu"),
        (trace([0, 1], [1, 1], [1, 1]), {"sample": 1}, "machines.sample: the log has no machines"),
    ],
)
def test_a_log_that_does_not_go_with_its_scenario_is_refused(jobs: object, machines: object, said: str) -> None:
    with pytest.raises(UserError) as caught:
        fitted(jobs, log(), scenario(machines=machines, workload=LOG))
    assert str(caught.value).startswith(said)


def test_splits_share_no_job_and_windows_begin_at_0(tmp_path: Path) -> None:
    origin = cut(tmp_path)
    assert [len(origin.split(split)[60]) for split in ("train", "validation", "test")] == [4, 1, 2]
    starts = [origin._period(split) for split in ("train", "validation", "test")]
    assert starts == [(0, 120), (120, 150), (150, 200)]
    for load, group in origin.split("train").items():
        for jobs in group:
            # 2 of 12 cores for 30 s every 3 s: 167 %; 1 of 30 percents: 33 %; 100 % in the mean of whole cycles.
            assert jobs.arrival[0] == 0
            assert np.diff(jobs.arrival) == pytest.approx(3 * 100 * origin.fit.own_load / load)
            assert len(jobs.arrival) == 20


def test_fresh_windows_are_of_the_training_period_and_their_own(tmp_path: Path) -> None:
    origin = cut(tmp_path)
    first, again = (origin.fresh(60, 1) for _ in range(2))
    assert all((a == b).all() for a, b in zip(first, again, strict=True))
    assert (
        len({tuple(origin.fresh(60, number).duration) for number in range(20)}) == 5
    )  # where a window may begin, mod 5


def test_people_are_told_what_became_of_a_log(tmp_path: Path) -> None:
    said = "\n".join(cut(tmp_path, first_s=30, longest_s=40.0).notes)
    for part in (
        "200 rows, 200 jobs over 0.0 days",
        "left out: 10 jobs that arrived before 30 s",
        "190 jobs are used; 38 of them run longer than the longest and are cut",
        "3 machines: 12 cpu, 30 memory; unit of time 30 s, the median run time",
        "own load ",
        " times at load 120",
    ):
        assert part in said


def test_a_period_shorter_than_a_window_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"^params.yaml: scenarios.few.workload: a period of 18 jobs .* window of 20"):
        cut(tmp_path, jobs=30)


def test_a_log_that_cannot_be_read_is_refused_with_its_path(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("nonsense\n")
    with pytest.raises(UserError, match=f"^{tmp_path}/log"):
        source(few(workload=LOG), "few", tmp_path)


# Real logs


def real(*names: str) -> list[Path]:
    paths = [TRACES / name for name in names]
    if not all(path.exists() for path in paths):
        pytest.skip(f"the trace files stand beside the project, and {', '.join(names)} are not there")
    return paths


def linked(folder: Path, log: Path, nodes: Path | None = None) -> Path:
    (folder / "log").symlink_to(log)
    if nodes is not None:
        (folder / "nodes").symlink_to(nodes)
    return folder


def check_can_run(origin: Drawn | Cut) -> list[Jobs]:
    machines = machines_of(origin.scenario, origin.park)
    jobsets = [jobs for group in origin.split("test").values() for jobs in group]
    for jobs in jobsets:
        check_jobs(jobs, machines)
    return jobsets


def test_hpc2n_has_the_load_that_its_archive_says(tmp_path: Path) -> None:
    (path,) = real("HPC2N-2002-2.2-cln.first15000.swf.gz")
    workload = LOG | {"format": "swf", "window": 200}
    machines = [{"count": 1, "has": {"cpu": 240}}]
    params = few(machines=machines, workload=workload, policies_know="estimates", dispatch="easy")
    origin = source(params, "few", linked(tmp_path, path))
    assert isinstance(origin, Cut)
    assert origin.fit.own_load == pytest.approx(0.60, abs=0.02)
    assert origin.fit.unused == ("memory",)
    jobs = check_can_run(origin)[0]
    assert (jobs.estimate >= jobs.duration).mean() > 0.8


def test_machines_of_openb_are_sampled_with_their_gpus(tmp_path: Path) -> None:
    pods, nodes = real("openb_pod_list_default.csv.gz", "openb_node_list_all_node.csv.gz")
    workload = LOG | {"format": "openb", "nodes": "x", "first_s": 1.0e7, "longest_s": 86400.0, "window": 50}
    origin = source(few(machines={"sample": 40}, workload=workload), "few", linked(tmp_path, pods, nodes))
    assert isinstance(origin, Cut)
    assert origin.park.resources == ("cpu", "memory", "gpu")
    assert len(origin.park.capacity) == 40
    assert origin.fit.left_out["arrived before 1e+07 s"] > 0
    for jobs in check_can_run(origin):
        assert (jobs.duration <= 86400).all()


def test_cloudsimpys_jobs_run_on_deepk8s_machines(tmp_path: Path) -> None:
    (path,) = real("alibaba2017_cloudsimpy_jobs.csv.gz")
    machines = [{"count": 5, "has": {"cpu": 10, "memory": 64}}]
    origin = source(few(machines=machines, workload=LOG | {"window": 100}), "few", linked(tmp_path, path))
    assert len(check_can_run(origin)) == 2 * 3
