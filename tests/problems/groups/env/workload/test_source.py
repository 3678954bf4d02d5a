"""Jobs of user groups: the cluster they share, what a recipe draws, what a log becomes, and what is said of it."""

import copy
import itertools
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import REPOSITORY
from machine_rows import TRACES, trace
from ruamel.yaml import YAML

from pipeline.core.config import GroupsLog, GroupsScenario, Params, Sinusoidal, check_params
from pipeline.core.logs.predictions import predict_run_times
from pipeline.core.logs.trace import Trace
from pipeline.core.types import SPLITS
from pipeline.errors import UserError
from pipeline.problems.groups.env.nouns import Jobs, check_jobs
from pipeline.problems.groups.env.workload.log import Gathered, dealt, gathered, random_window
from pipeline.problems.groups.env.workload.source import (
    Cut,
    Drawn,
    cluster_of,
    configurations_of,
    draw_jobs,
    load_of_one,
    mean_rates,
    source,
)

NOWHERE = Path("nowhere")
HPC2N = TRACES / "HPC2N-2002-2.2-cln.first15000.swf.gz"
SINUSOIDAL: dict[str, Any] = {
    "name": "sinusoidal",
    "intervals": 8,
    "period": 4.0,
    "amplitude": 1.0,
    "run": {"short": 2.0, "long": 8.0},
    "spread": 1.0,
    "demand": {"cpu": [1, 3], "memory": [2, 2]},
    "mixes": [{"short": 0.75, "long": 0.25}, {"short": 0.0, "long": 1.0}],
}
ROW: dict[str, Any] = {
    "problem": "groups",
    "resources": {"cpu": 10, "memory": 8},
    "groups": 2,
    "queues": ["short", "long"],
    "orders": [["short", "long"], ["long", "short"]],
    "levels": [0, 0.5, 1, 2],
    "interval": 5.0,
    "borrowing": True,
    "policies_know": "durations",
    "time_limit": 1000.0,
    "workload": SINUSOIDAL,
    "loads": [50, 100],
    "jobsets": {"train": 3, "validation": 2, "test": 2},
}
LOG: dict[str, Any] = {"name": "log", "format": "swf", "path": "log.swf", "bounds": [10.0], "window": 2}
ON_LOG: dict[str, Any] = {"resources": {"cpu": 10}, "workload": LOG}


def shared(**changes: Any) -> Params:
    """params.yaml with a small scenario of user groups, `shared`."""
    rows: dict[str, Any] = YAML(typ="safe").load(REPOSITORY / "params.yaml")
    rows["scenarios"]["shared"] = copy.deepcopy(ROW) | changes
    return check_params(rows, "params.yaml")


def scenario(**changes: Any) -> GroupsScenario:
    return shared(**changes).groups_scenario("shared")


def recipe(row: GroupsScenario) -> Sinusoidal:
    assert isinstance(row.workload, Sinusoidal)
    return row.workload


def drawn(**changes: Any) -> Drawn:
    found = source(shared(**changes), "shared", NOWHERE)
    assert isinstance(found, Drawn)
    return found


# The cluster


def test_a_cluster_knows_queues_by_their_numbers() -> None:
    cluster = cluster_of(scenario())
    assert cluster.capacity.tolist() == [10, 8]
    assert (cluster.groups, cluster.interval, cluster.borrowing, cluster.time_limit) == (2, 5.0, True, 1000.0)
    assert cluster.orders.tolist() == [[0, 1], [1, 0]]


def test_levels_are_shares_rounded_up_in_the_first_resource_and_down_in_the_others() -> None:
    row = scenario(groups=4, levels=[0, 0.5, 1, 2, 4])  # 2.5 and 2 units are an equal share
    found = configurations_of(row)
    assert found.units.tolist() == [[0, 0], [2, 1], [3, 2], [5, 4], [10, 8]]
    assert (found.orders, found.total) == (2, 10)


def test_a_level_that_is_whole_units_is_not_rounded_up() -> None:
    row = scenario(**ON_LOG | {"resources": {"cpu": 100}}, groups=10, levels=[0, 1.1])
    assert 1.1 * 100 / 10 > 11
    assert configurations_of(row).units.tolist() == [[0], [11]]


def test_no_level_is_more_than_there_is() -> None:
    assert configurations_of(scenario(levels=[0, 1, 3])).units.tolist() == [[0, 0], [5, 4], [10, 8]]


@pytest.mark.parametrize("levels", [[0, 0.3, 0.7, 1, 1.5, 2.2, 4], [0, 0.5, 1.3, 9]])
def test_what_fits_by_the_first_resource_fits_by_the_others(levels: list[float]) -> None:
    units = configurations_of(scenario(groups=4, levels=levels)).units
    given = np.array([units[list(chosen)].sum(axis=0) for chosen in itertools.product(range(len(units)), repeat=4)])
    fits = given[:, 0] <= 10
    assert 1 < fits.sum() < len(fits)
    assert (given[fits, 1] <= 8).all()


def test_levels_of_as_many_units_are_refused() -> None:
    said = "levels: expected more cpu at 0.2 than at 0.1, found 1 units at both"  # 0.5 and 1 of 10
    with pytest.raises(UserError, match=rf"^params.yaml: scenarios.shared.{said}$"):
        drawn(levels=[0, 0.1, 0.2])


# A recipe


def test_the_load_of_a_job_is_that_of_its_groups_queues() -> None:
    row = scenario()
    # A job holds 2 of 10 and 2 of 8: 22.5 % in the mean. Medians: 0.75 * 2 + 0.25 * 8 = 3.5, and 8.
    assert load_of_one(recipe(row), row, 0) == pytest.approx(22.5 * 3.5 * math.exp(0.5))
    assert load_of_one(recipe(row), row, 1) == pytest.approx(22.5 * 8 * math.exp(0.5))


def test_groups_have_equal_parts_of_the_load() -> None:
    row = scenario(groups=3)
    rates = mean_rates(recipe(row), row, 60)
    assert rates * [load_of_one(recipe(row), row, group) for group in range(3)] == pytest.approx([20, 20, 20])
    assert rates[0] == rates[2] == pytest.approx(rates[1] * 8 / 3.5)  # mixes in turn


def test_drawn_jobs_make_the_load_of_their_scenario() -> None:
    row = scenario(workload=SINUSOIDAL | {"intervals": 40_000, "spread": 0.5})
    jobs = draw_jobs(recipe(row), row, 80, np.random.default_rng(1))
    work = jobs.duration * (jobs.demand / [10, 8]).mean(axis=1) / (40_000 * 5.0)
    assert [work[jobs.group == group].sum() for group in range(2)] == pytest.approx([0.4, 0.4], rel=0.03)


def test_groups_have_their_rush_one_after_the_other() -> None:
    row = scenario(workload=SINUSOIDAL | {"intervals": 4_000})
    jobs = draw_jobs(recipe(row), row, 100, np.random.default_rng(1))
    early = jobs.arrival % 20 < 10  # of a period of 4 intervals of 5
    # The mean of 1 + sin over the first half is 1 + 2 / pi: of all, 1 / 2 + 1 / pi.
    share = 1 / 2 + 1 / math.pi
    for group, expected in ((0, share), (1, 1 - share)):
        assert early[jobs.group == group].mean() == pytest.approx(expected, abs=0.02)


def test_drawn_jobs_are_what_the_recipe_says() -> None:
    row = scenario(workload=SINUSOIDAL | {"intervals": 4_000})
    jobs = draw_jobs(recipe(row), row, 100, np.random.default_rng(1))
    check_jobs(jobs, cluster_of(row))
    assert jobs.arrival[-1] < 20_000
    assert (jobs.estimate == jobs.duration).all()
    assert set(jobs.queue[jobs.group == 1]) == {1}
    assert (jobs.queue[jobs.group == 0] == 0).mean() == pytest.approx(0.75, abs=0.02)
    for queue, median in ((0, 2.0), (1, 8.0)):
        logs = np.log(jobs.duration[jobs.queue == queue] / median)
        assert (logs.mean(), logs.std()) == (pytest.approx(0, abs=0.05), pytest.approx(1, abs=0.05))
    wide = jobs.demand[:, 0] == 3
    assert set(jobs.demand[:, 0]) == {1, 3}
    assert (jobs.demand[:, 1] == 2).all()
    assert [wide[jobs.queue == queue].mean() for queue in range(2)] == pytest.approx([0.5, 0.5], abs=0.03)


def test_a_jobset_without_a_job_is_drawn_again() -> None:
    row = scenario(workload=SINUSOIDAL | {"intervals": 1})
    draws = [draw_jobs(recipe(row), row, 1, np.random.default_rng(seed)) for seed in range(50)]
    assert min(len(jobs.arrival) for jobs in draws) == 1  # of 36 draws 35 have none


def test_every_drawn_jobset_has_a_stream_of_its_own() -> None:
    origin = drawn()
    splits = {split: origin.split(split) for split in SPLITS}
    assert {split: [len(group) for group in by_load.values()] for split, by_load in splits.items()} == {
        "train": [3, 3],
        "validation": [2, 2],
        "test": [2, 2],
    }
    jobsets = [jobs for by_load in splits.values() for group in by_load.values() for jobs in group]
    jobsets += [origin.fresh(50, number) for number in range(3)] + [origin.fresh(100, 0)]
    assert len({tuple(jobs.duration) for jobs in jobsets}) == 18
    assert origin.fresh(50, 1).arrival.tolist() == drawn().fresh(50, 1).arrival.tolist()
    assert cluster_of(origin.scenario).queues == 2


# A log


def log(
    arrival: Sequence[float],
    run: Sequence[float],
    cpu: Sequence[float],
    user: Sequence[int],
    estimate: Sequence[float] | None = None,
) -> Trace:
    return trace(arrival, run, cpu, estimate=estimate)._replace(user=np.array(user))


def fit(
    some: Trace, policies_know: str = "durations", resources: dict[str, int] | None = None, **changes: Any
) -> Gathered:
    workload = LOG | changes
    row = scenario(resources=resources or {"cpu": 10}, workload=workload, policies_know=policies_know)
    return gathered(some, GroupsLog(**workload), row)


def test_predictions_are_learned_from_the_training_period_and_choose_the_queue() -> None:
    rng = np.random.default_rng(0)
    run = rng.integers(1, 20, 120).astype(float)
    some = log(np.arange(120.0).tolist(), run.tolist(), [1] * 120, [1] * 120, estimate=(3 * run).tolist())
    found = fit(some, policies_know="predictions")
    learned = np.flatnonzero(some.submit_s < found.periods["train"][1])
    assert 0 < len(learned) < 120
    assert found.jobs.estimate.tolist() == predict_run_times(some, learned).tolist()
    assert found.jobs.queue.tolist() == (found.jobs.estimate > 10).astype(int).tolist()
    off = np.abs(found.jobs.estimate - run)
    assert off.mean() < np.abs(3 * run - run).mean() / 2
    few = fit(some, policies_know="predictions", first_s=50, longest_s=5)
    assert (len(few.jobs.estimate), few.jobs.estimate.max()) == (70, 5.0)


def test_the_heaviest_users_go_where_there_is_least_and_ties_to_the_first() -> None:
    # Work 4, 4, 3, 3, 1: 5 to group 0, 6 to 1, 7 to 0, 8 to 1, and 9 to 0 again.
    users, work = np.array([9, 8, 7, 6, 5]), np.array([1.0, 3.0, 3.0, 4.0, 4.0])
    assert dealt(users, work, 2) == {5: 0, 6: 1, 7: 0, 8: 1, 9: 0}


def test_users_are_dealt_by_their_work_in_the_training_period_only() -> None:
    # Training is up to 60 s. There user 3 uses 2 * 10, user 5 1 * 30 and user -1 1 * 5; user 8 only comes later.
    some = log([0, 10, 20, 70, 80, 100], [10, 30, 5, 999, 9, 9], [2, 1, 1, 9, 1, 1], [3, 5, -1, 3, 8, 5])
    found = fit(some)
    assert found.work[:3].tolist() == [20, 30, 5]
    assert found.jobs.group.tolist() == [1, 0, 1, 1, 0, 0]  # user 8 modulo 2


def test_periods_are_shares_of_the_time_from_the_first_job_that_is_used() -> None:
    some = log([0, 50, 60, 150], [1, 1, 1, 1], [1, 1, 1, 1], [1, 1, 1, 1])
    found = fit(some, first_s=20, train_share=0.5, validation_share=0.25)
    assert found.periods == {"train": (50, 100), "validation": (100, 125), "test": (125, 150)}
    assert found.within("train").tolist() == [True, True, False]


def test_a_queue_holds_what_its_bound_does_not_exceed() -> None:
    some = log([0, 1, 2], [9, 10, 10.5], [1, 1, 1], [1, 1, 1], estimate=[11, 5, 10])
    assert fit(some).jobs.queue.tolist() == [0, 0, 1]
    found = fit(some, policies_know="estimates")
    assert found.jobs.estimate.tolist() == [11, 5, 10]
    assert found.jobs.queue.tolist() == [1, 0, 0]


def test_what_is_left_out_and_cut_is_counted() -> None:
    some = log([0, 5, 6, 9, 10], [10, 50, 20, 20, 30], [99, 1, 11, 2, 10], [1] * 5, estimate=[60] * 5)
    found = fit(some, policies_know="estimates", first_s=5, longest_s=30)
    assert found.left_out == {"arrived before 5 s": 1, "want more than the cluster has": 1}
    assert (found.capped, found.jobs.duration.tolist(), found.jobs.estimate.tolist()) == (1, [30, 20, 30], [30, 30, 30])
    # Training: up to 8 s, one job of 1 for 30 s, of 10 for 3 s.
    assert found.own_load == pytest.approx(30 / 30)


def test_amounts_are_whole_units_rounded_up_and_the_load_is_their_mean() -> None:
    one = log([0, 4], [10, 10], [2, 4], [1, 1])
    demand = np.column_stack([one.demand[:, 0], [1, 1001]])  # thousandths of a GiB
    both = one._replace(demand=demand, resources=("cpu", "memory"), units=("cores", "GiB"))
    found = fit(both, resources={"memory": 3, "cpu": 10})
    assert found.jobs.demand.tolist() == [[1, 2], [2, 4]]
    # Training: up to 2.4 s, the first job alone.
    assert found.load == {"memory": pytest.approx(10 / 7.2), "cpu": pytest.approx(20 / 24)}
    assert (found.own_load, found.unused, fit(both).unused) == (pytest.approx(10 / 9), (), ("memory",))


def even(gap: float = 1.0) -> Gathered:
    """A log of 101 jobs a second apart, with a load of 40 %: 4 of 10 units for all of the time."""
    return fit(log(np.arange(101) * gap, [4 * gap] * 101, [1] * 101, list(range(101))))


def test_a_window_begins_at_0_and_is_stretched_to_its_load() -> None:
    found = even()
    assert (found.own_load, found.stretch(20)) == (pytest.approx(0.4), pytest.approx(2))
    jobs = found.window("train", 9.5, 3.0, load=20)
    assert jobs.arrival == pytest.approx([1, 3, 5])  # 10, 11 and 12 s
    assert jobs.duration == pytest.approx(found.jobs.duration[:3])
    # A window that begins with a job holds it, and not the one at its end.
    assert found.window("train", 9.0, 3.0, load=40).arrival == pytest.approx([0, 1, 2])


def test_no_window_reaches_into_the_next_period() -> None:
    found = even()
    assert found.periods["train"] == (0, 60)
    assert len(found.window("train", 57.0, 3.0000001, load=40).arrival) == 3


def test_a_random_window_without_a_job_is_moved_to_the_nearest() -> None:
    # Training: up to 60 s, with jobs at 0 and 59 s only; a window of 4 s can begin up to 56 s.
    found = fit(log([0, 59, 100], [9, 9, 9], [1, 2, 3], [1, 2, 3]))
    windows = [random_window(found, 4.0, 100, np.random.default_rng(seed)) for seed in range(40)]
    assert {len(jobs.arrival) for jobs in windows} == {1}
    early = [jobs.arrival[0] for jobs in windows if jobs.demand[0, 0] == 1]
    late = [jobs.arrival[0] / found.stretch(100) for jobs in windows if jobs.demand[0, 0] == 2]
    assert set(early) == {0}
    assert min(late) == pytest.approx(3)  # no window ends behind the period


@pytest.mark.parametrize(
    ("some", "policies_know", "resources", "said"),
    [
        (log([0, 1], [1, 1], [1, 1], [1, 1]), "estimates", {"cpu": 10}, "policies_know: the log has no estimates"),
        (log([0, 1], [1, 1], [1, 1], [1, 1]), "durations", {"gpu": 10}, "resources: the log has no resource 'gpu'; "),
        (log([0, 1], [1, 1], [11, 12], [1, 1]), "durations", {"cpu": 10}, "workload: no job of 2 is left"),
        (log([3, 3], [1, 1], [1, 1], [1, 1]), "durations", {"cpu": 10}, "workload: all jobs of the log arrive at once"),
        (log([0, 1], [1, 1], [0, 0], [1, 1]), "durations", {"cpu": 10}, "workload: no job of the log holds anything"),
    ],
)
def test_a_log_that_does_not_go_with_its_scenario_is_refused(
    some: Trace, policies_know: str, resources: dict[str, int], said: str
) -> None:
    with pytest.raises(UserError) as caught:
        fit(some, policies_know, resources)
    assert str(caught.value).startswith(said)


# A log's file


def write_swf(path: Path, arrivals: Sequence[float], run: float = 4.0) -> None:
    """A log of jobs of ten users in turn, who want one processor each and say twice their run time."""
    lines = [f"{k} {time} 0 {run} 1 -1 -1 1 {2 * run} -1 1 {k % 10} 1 -1 1 -1 -1 -1" for k, time in enumerate(arrivals)]
    path.write_text("\n".join(["; MaxProcs: 10", *lines]) + "\n")


def cut(folder: Path, arrivals: Sequence[float] = range(201), **changes: Any) -> Cut:
    write_swf(folder / "log", arrivals)
    found = source(shared(**ON_LOG | changes), "shared", folder)
    assert isinstance(found, Cut)
    return found


def test_windows_of_all_splits_and_loads_are_as_long_for_the_controller(tmp_path: Path) -> None:
    origin = cut(tmp_path)
    assert origin.log.own_load == pytest.approx(0.4)  # 120 jobs of 4 s on one of 10 processors, in 120 s
    # At load 100 a window is 25 s long, and the validation period 30 s.
    for split, counts in (("train", (3, 3)), ("validation", (2, 1)), ("test", (2, 2))):
        for count, (load, group) in zip(counts, origin.split(split).items(), strict=True):
            assert len(group) == count
            for jobs in group:
                check_jobs(jobs, cluster_of(origin.scenario))
                assert jobs.arrival[-1] < 10  # two intervals of 5
                assert np.diff(jobs.arrival) == pytest.approx(40 / load)
                assert len(jobs.arrival) in {50: (12, 13), 100: (24, 25)}[load]


def test_test_windows_are_side_by_side_over_their_period(tmp_path: Path) -> None:
    origin = cut(tmp_path)
    period = origin.log.periods["test"]
    assert period == (150, 200)
    first, second = origin.split("test")[100]
    assert [(jobs.arrival[0], len(jobs.arrival)) for jobs in (first, second)] == [(0, 25), (0, 25)]
    assert "test 2 of 25 to 25 jobs" in origin.notes[-1]


def test_windows_of_all_loads_are_of_the_same_blocks_of_time_and_none_share_a_job(tmp_path: Path) -> None:
    # Jobs differ by their run times. Windows are 25 s long at load 100 and 12.5 s at load 50; the test period is 50 s.
    write_swf(tmp_path / "log", range(201))
    lines = (tmp_path / "log").read_text().splitlines()
    fields = [line.split() for line in lines[1:]]
    for k, row in enumerate(fields):
        row[3] = str(4 + k / 1000)
    (tmp_path / "log").write_text("\n".join([lines[0], *(" ".join(row) for row in fields)]) + "\n")
    origin = source(shared(**ON_LOG | {"jobsets": {"train": 1, "validation": 8, "test": 8}}), "shared", tmp_path)
    found = origin.split("test")
    assert {load: len(jobsets) for load, jobsets in found.items()} == {50: 4, 100: 2}
    runs = {load: [set(jobs.duration) for jobs in jobsets] for load, jobsets in found.items()}
    for sets in runs.values():
        assert len(set.union(*sets)) == sum(len(some) for some in sets)
    for k, some in enumerate(runs[50]):  # the units that `windows` of a comparison makes of them
        assert some < runs[100][k // 2] or len(some - runs[100][k // 2]) == 0
    assert "test 4 (8 asked for) of 12 to 13 jobs" in origin.notes[-2]


def test_training_windows_begin_at_any_time_of_their_period_only(tmp_path: Path) -> None:
    arrivals = [*range(0, 121, 2), *range(121, 201)]  # twice as often from the validation period on
    origin = cut(tmp_path, arrivals, loads=[50])
    windows = [origin.fresh(50, number) for number in range(30)]
    assert all(np.diff(jobs.arrival) == pytest.approx(4 * origin.log.own_load) for jobs in windows)
    assert len({float(jobs.arrival[0]) for jobs in windows}) == 30
    assert windows[3].arrival.tolist() == origin.fresh(50, 3).arrival.tolist()


def test_a_block_with_an_empty_test_window_is_skipped_at_all_loads_and_told(tmp_path: Path) -> None:
    # The last quarter, 150 to 200 s, has jobs only in its last seconds.
    origin = cut(tmp_path, [*range(150), *range(176, 201)], loads=[50, 100])
    assert [len(group) for group in origin.split("test").values()] == [1, 1]
    assert "test 1 (2 asked for)" in origin.notes[-1]


@pytest.mark.parametrize(
    ("arrivals", "said"),
    [
        ([*range(150), 200], ": expected jobs in the test period, found a window without one in every block"),
        (
            range(41),  # a window at load 30, with an own load of 40 %, is 7.5 s long
            r".window: expected at most the 6.94e-05 days of a period \(24 to 30 s of the log\), found 8.68e-05 days",
        ),
    ],
)
def test_a_log_without_windows_is_refused(tmp_path: Path, arrivals: Sequence[float], said: str) -> None:
    with pytest.raises(UserError, match=rf"^params.yaml: scenarios.shared.workload{said}"):
        cut(tmp_path, arrivals, loads=[30])


def test_people_are_told_what_became_of_a_log(tmp_path: Path) -> None:
    workload = LOG | {"first_s": 30, "longest_s": 3.0}
    said = "\n".join(cut(tmp_path, workload=workload, policies_know="estimates", loads=[20]).notes)
    for part in (
        "201 rows, 201 jobs over 0.0 days",
        "left out: 30 jobs that arrived before 30 s",
        "171 jobs are used; 171 of them run longer than the longest and are cut",
        "cluster: 10 cpu; the widest jobs want 1",
        "own load 30.0% (training): cpu 30.0%",
        # Training: 30 up to 132 s, with eleven jobs of users 0 and 1, and ten of the others.
        "10 users; groups in training (users, jobs, share of the work): 0: 5, 51, 50.0%; 1: 5, 51, 50.0%",
        "test: 0 of 10 users are not seen in training; they have 0.0% of its work",
        "load 20: gaps between arrivals are 1.5 times as long; a window is 0.0 days of the log; train 3 of ",
    ):
        assert part in said


@pytest.mark.skipif(not HPC2N.is_file(), reason=f"the log is not there: {HPC2N}")
def test_a_real_log_is_gathered_into_groups(tmp_path: Path) -> None:
    (tmp_path / "log").symlink_to(HPC2N)
    week = {"bounds": [3600.0, 28_800.0], "window": 168}
    queues = ["short", "middle", "long"]
    rows = {"queues": queues, "orders": [queues], "interval": 3600.0, "resources": {"cpu": 240}, "groups": 4}
    origin = source(shared(workload=LOG | week, policies_know="estimates", **rows), "shared", tmp_path)
    assert isinstance(origin, Cut)
    assert len(origin.log.user) == 15_000
    assert len(np.unique(origin.log.user)) == 53
    assert origin.log.own_load == pytest.approx(0.5741, abs=0.0001)  # the training period's; 0.596 of the whole log
    days = [(after - first) / 86_400 for first, after in origin.log.periods.values()]
    assert days == pytest.approx([108.9, 27.2, 45.4], abs=0.1)
    for jobs in [*origin.split("test")[100], *(origin.fresh(50, number) for number in range(20))]:
        check_jobs(jobs, cluster_of(origin.scenario))
        assert 0 < len(jobs.arrival) < 3000
        assert jobs.arrival[-1] < 168 * 3600
        assert isinstance(jobs, Jobs)
