"""What controlled groups got, worked by hand."""

import numpy as np
import pandas as pd
import pytest

from pipeline.core.types import IntArray
from pipeline.errors import UserError
from pipeline.problems.groups.env.evaluation.metrics import fairness, jain, results, summary
from pipeline.problems.groups.env.nouns import Jobs, JobsBatch, Served, SharedCluster, batch
from pipeline.problems.groups.env.tables import (
    GROUP_RESULTS,
    GROUPS_FAIRNESS,
    GROUPS_SUMMARY,
    INTERVALS,
    JOB_RESULTS,
    JOBSET_RESULTS,
    jobs_schema,
)
from pipeline.simulation.results import Results

NEVER = np.nan
CLUSTER = SharedCluster(np.array([10]), 3, np.array([[0, 1]]), interval=10.0, borrowing=False, time_limit=95.0)
ONE = np.array([0])


def jobs(*rows: tuple[float, float, int, int]) -> Jobs:
    """Jobs of (arrival, duration, group, queue) that want one unit."""
    table = np.array(rows, dtype=float)
    group, queue = table[:, 2:].astype(np.int64).T
    return Jobs(table[:, 0], table[:, 1], table[:, 1], np.ones((len(rows), 1), np.int64), group, queue)


def served(start: list[float], finish: list[float], end: list[float], busy: list[float]) -> Served:
    return Served(np.array(start, float), np.array(finish, float), np.array(end), np.array(busy))


# Of group 0 the first ends and the second waits ten and ends; of group 2 the third is never started, and the fourth is
# cut while it runs. Group 1 has no jobs.
BATCH = batch([jobs((0, 20, 0, 0), (10, 4, 0, 1), (30, 30, 2, 0), (40, 50, 2, 1))])
END = served([0, 20, NEVER, 90], [20, 24, NEVER, NEVER], [100.0], [14.0])


def tables(laid: JobsBatch, end: Served, load: IntArray) -> Results:
    return results("equal", load, np.arange(len(load)), laid, end, CLUSTER, np.full(len(load), -2.5))


def job_table(laid: JobsBatch, end: Served, load: IntArray = ONE + 50) -> pd.DataFrame:
    return JOB_RESULTS.validate(tables(laid, end, load).jobs)


def jobset_table(laid: JobsBatch, end: Served, load: IntArray = ONE + 50) -> pd.DataFrame:
    return JOBSET_RESULTS.validate(tables(laid, end, load).jobsets)


def group_table(laid: JobsBatch, end: Served, load: IntArray = ONE + 50) -> pd.DataFrame:
    return GROUP_RESULTS.validate(tables(laid, end, load).others["groups"])


def test_unfinished_jobs_count_as_if_they_ended_at_the_cut() -> None:
    table = job_table(BATCH, END)
    assert table["finish"].tolist() == [20, 24, 100, 100]
    assert table["wait"].tolist() == [0, 10, 70, 50]
    assert table["slowdown"].tolist() == [1, 14 / 4, 70 / 30, 60 / 50]
    assert table["bounded_slowdown"].tolist() == [1, 14 / 10, 70 / 30, 60 / 50]
    assert table["unfinished"].tolist() == [False, False, True, True]
    assert table["start"].isna().tolist() == [False, False, True, False]
    assert table["group"].tolist() == [0, 0, 2, 2]
    assert table["queue"].tolist() == [0, 1, 0, 1]


def test_a_job_due_after_the_cut_has_waited_for_nothing() -> None:
    laid = batch([jobs((0, 5, 0, 0), (200, 5, 0, 0))])
    table = job_table(laid, served([0, NEVER], [5, NEVER], [100.0], [1.0]))
    assert table.loc[1, ["finish", "wait", "slowdown"]].tolist() == [200, 0, 1]
    assert table.loc[1, "unfinished"]


def test_a_job_cut_as_it_began_is_not_faster_than_its_run_time() -> None:
    laid = batch([jobs((0, 50, 0, 0))])
    table = job_table(laid, served([0], [NEVER], [10.0], [1.0]))
    assert table.loc[0, ["slowdown", "bounded_slowdown"]].tolist() == [1, 1]


def test_a_jobset_has_the_means_of_its_jobs() -> None:
    row = jobset_table(BATCH, END).iloc[0]
    slowdowns = sorted([1, 3.5, 7 / 3, 1.2])
    assert row["jobs"] == 4
    assert row["mean_slowdown"] == pytest.approx(sum(slowdowns) / 4)
    assert row["p50_slowdown"] == pytest.approx((1.2 + 1.4) / 2)  # of bounded slowdown, as the next two
    assert row["p99_slowdown"] == pytest.approx(1.4 + 0.97 * (7 / 3 - 1.4))
    assert row["worst_slowdown"] == pytest.approx(7 / 3)
    assert row["mean_bounded_slowdown"] == pytest.approx((1 + 1.4 + 7 / 3 + 1.2) / 4)
    assert (row["mean_wait"], row["longest_wait"]) == (130 / 4, 70)
    assert row["p99_wait"] == pytest.approx(50 + 0.97 * 20)
    assert row["completion_time"] == (20 + 14 + 70 + 60) / 4
    assert (row["makespan"], row["utilisation"], row["unfinished"]) == (100, 0.14, 2)
    assert row["reward"] == -2.5


def test_fairness_is_over_the_means_of_groups_that_have_jobs() -> None:
    row = jobset_table(BATCH, END).iloc[0]
    # Mean waits 5 and 60: 65 squared over twice their squares. Mean slowdowns 2.25 and (7/3 + 1.2) / 2.
    assert row["jain_wait"] == pytest.approx(65**2 / (2 * (25 + 3600)))
    other = (7 / 3 + 1.2) / 2
    assert row["jain_slowdown"] == pytest.approx((2.25 + other) ** 2 / (2 * (2.25**2 + other**2)))


def test_nothing_is_fairer_than_that_nobody_waits() -> None:
    laid = batch([jobs((0, 4, 0, 0), (0, 4, 1, 0))])
    table = jobset_table(laid, served([0, 0], [4, 4], [4.0], [0.8]))
    assert table.loc[0, ["jain_wait", "jain_slowdown"]].tolist() == [1, 1]


def test_jains_index_is_one_over_the_number_where_one_has_all_and_never_above_one() -> None:
    assert jain(np.array([0.0, 0.0, 7.0, 0.0])) == 0.25
    assert jain(np.array([np.nan, 7.0, np.nan])) == 1.0
    assert (jain(np.random.default_rng(0).random((1000, 1)) * np.ones((1, 7))) <= 1.0).all()


def test_each_group_that_has_jobs_has_a_row() -> None:
    table = group_table(BATCH, END)
    assert table["group"].tolist() == [0, 2]
    assert table["jobs"].tolist() == [2, 2]
    assert table["mean_wait"].tolist() == [5, 60]
    assert table["mean_slowdown"].tolist() == pytest.approx([2.25, (7 / 3 + 1.2) / 2])
    assert table["p99_slowdown"].tolist() == pytest.approx([1 + 0.99 * 2.5, 1.2 + 0.99 * (7 / 3 - 1.2)])
    assert table["mean_bounded_slowdown"].tolist() == pytest.approx([1.2, (7 / 3 + 1.2) / 2])
    assert table["p99_wait"].tolist() == pytest.approx([9.9, 50 + 0.99 * 20])
    assert table["unfinished"].tolist() == [0, 2]


def test_every_jobset_has_rows_of_its_own() -> None:
    laid = batch([jobs((0, 4, 1, 0)), jobs((2, 1, 2, 0), (2, 1, 1, 0))])
    end, load = served([0, 2, 3], [4, 3, 4], [4.0, 4.0], [0.4, 0.2]), np.array([50, 80])
    table = jobset_table(laid, end, load)
    assert table["mean_slowdown"].tolist() == [1, 1.5]
    assert table["makespan"].tolist() == [4, 2]
    assert table["jain_wait"].tolist() == [1, 0.5]
    assert job_table(laid, end, load)["job"].tolist() == [0, 0, 1]
    groups = group_table(laid, end, load)
    assert groups[["load", "group", "mean_wait"]].to_numpy().tolist() == [[50, 1, 0], [80, 1, 1], [80, 2, 0]]


def test_a_jobset_that_does_not_belong_is_refused() -> None:
    laid, end = batch([jobs((0, 4, 1, 0))]), served([0], [4], [4.0], [0.4])
    with pytest.raises(ValueError, match="load has 2 episodes; the batch has 1"):
        jobset_table(laid, end, np.array([50, 80]))
    with pytest.raises(ValueError, match="job 0 has group 3; there are 3"):
        group_table(laid._replace(group=np.array([3])), end)
    two = served([0], [4], [4.0, 0.0], [0.4, 0.0])
    with pytest.raises(ValueError, match="jobset 1 of load 80 has no jobs"):
        job_table(laid._replace(first=np.array([0, 1, 1])), two, np.array([50, 80]))


def test_a_limit_before_the_first_job_is_told_to_the_user() -> None:
    laid = batch([jobs((25, 4, 1, 0))])
    wanted = "^jobset 0 of load 50: expected a time_limit after its first arrival, 25; got 10$"
    with pytest.raises(UserError, match=wanted):
        jobset_table(laid, served([NEVER], [NEVER], [10.0], [0.0]))


def test_a_summary_has_the_mean_over_jobsets_and_the_longest_delay_of_all() -> None:
    first = jobset_table(BATCH, END)
    second = first.assign(jobset=1, longest_wait=90.0, mean_wait=0.0, p99_wait=0.0, jain_wait=1.0, unfinished=0)
    heavy = first.assign(load=90, reward=4.0)
    frame = pd.concat([heavy, first, second.assign(reward=0.5)])
    table = GROUPS_SUMMARY.validate(summary(frame, "shared"))
    assert table["load"].tolist() == [50, 90]
    row = table.iloc[0]
    assert (row["scenario"], row["policy"], row["n"], row["jobs"]) == ("shared", "equal", 2, 8)
    assert (row["delay"], row["longest_delay"], row["unfinished"]) == (130 / 8, 90, 2)
    assert row["p99_delay"] == pytest.approx((50 + 0.97 * 20) / 2)
    assert row["jain_delay"] == pytest.approx((65**2 / (2 * 3625) + 1) / 2)
    assert row["reward"] == -1.0


def test_a_summary_of_one_job_is_valid() -> None:
    laid, end = batch([jobs((0, 4, 1, 0))]), served([0], [4], [4.0], [0.4])
    table = GROUPS_SUMMARY.validate(summary(jobset_table(laid, end), "shared"))
    assert table["jobs"].tolist() == [1]


def test_scenarios_without_groups_have_no_rows_in_it() -> None:
    table = summary(pd.DataFrame({"load": [50], "policy": ["sjf"], "mean_slowdown": [1.0]}), "online")
    assert GROUPS_SUMMARY.validate(table).empty


def test_fairness_has_the_mean_of_each_group_over_the_jobsets_in_which_it_has_jobs() -> None:
    first = group_table(BATCH, END)
    second = first[first["group"] == 2].assign(jobset=1, group=1, mean_wait=8.0)  # a group that the first one lacks
    third = first[first["group"] == 0].assign(jobset=2, mean_wait=7.0, p99_slowdown=2.0)
    frame = pd.concat([one.assign(policy=name) for name in ("static", "equal") for one in (first, second, third)])
    table = GROUPS_FAIRNESS.validate(fairness(frame, "shared"))
    assert table["policy"].tolist() == ["static"] * 3 + ["equal"] * 3  # as they came
    assert table["group"].tolist() == [0, 1, 2] * 2
    assert table["jobs"].tolist() == [4, 2, 2] * 2
    assert table["delay"].tolist() == [6, 8, 60] * 2
    assert table["slowdown"].tolist()[0] == pytest.approx(2.25)
    assert table["p99_slowdown"].tolist()[0] == pytest.approx((3.475 + 2) / 2)


def test_an_interval_may_be_without_what_was_expected_but_not_without_a_reward() -> None:
    row = {"policy": "equal", "load": 50, "jobset": 0, "interval": 0, "group": 0, "share": 0.2, "used": 0.1}
    row |= {"waiting": 3, "cost": 30.0, "reward": -1.0, "q": NEVER, "realised": NEVER}
    assert len(INTERVALS.validate(pd.DataFrame([row]))) == 1
    for name, wrong in {"reward": NEVER, "used": 1.1, "q": np.inf, "cost": -1.0}.items():
        with pytest.raises(Exception, match=name):
            INTERVALS.validate(pd.DataFrame([row | {name: wrong}]))


def test_jobs_have_a_group_a_queue_and_a_demand_for_each_resource() -> None:
    row = {"load": 50, "jobset": 0, "job": 0, "arrival": 0.0, "duration": 1.0, "estimate": 1.0, "group": 0, "queue": 0}
    schema = jobs_schema(["nodes"])
    assert len(schema.validate(pd.DataFrame([row | {"nodes": 3}]))) == 1
    for wrong in ({"nodes": -1}, {"nodes": 1, "group": -1}, {"nodes": 1, "estimate": 0.0}, {}, {"nodes": 1, "cpu": 1}):
        with pytest.raises(Exception, match=r"nodes|group|estimate|cpu"):
            schema.validate(pd.DataFrame([row | wrong]))
