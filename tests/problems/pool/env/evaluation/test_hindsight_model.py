"""Schedules with full knowledge, worked by hand or found by trying all, and the share of the distance to them."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from builders import cluster, jobset, random_jobset

from pipeline.comparing.hindsight import closes, hindsight_markdown, hindsight_table
from pipeline.core.config import Evaluation
from pipeline.core.schemas import HINDSIGHT_SUMMARY
from pipeline.core.types import IntArray
from pipeline.problems.pool.env.evaluation.hindsight_model import (
    Work,
    check_schedule,
    latest_starts,
    mean_slowdown,
    solve_work,
    weights_of,
)
from pipeline.problems.pool.env.nouns import Cluster, JobSet

SETTINGS = Evaluation(resamples=200, confidence=0.95)

# A long job of 10 steps at 0, and five of one step at 1, each of the whole cluster. Who starts the long one at once
# ends at 15 with slowdowns 1, 10, 11, 12, 13, 14. Who waits a step for the short ones ends at 16: 1, 2, 3, 4, 5 and
# 16 / 10. No schedule that ends at 15 may wait, so a horizon of 15 would miss it.
PATIENT = jobset((0, 10, 1), *[(1, 1, 1)] * 5)
HASTY = np.array([0, 10, 11, 12, 13, 14])
ONE = cluster(1, horizon=20)


def one_by_one(jobs: JobSet) -> IntArray:
    """A schedule that any cluster can run: each job behind the one before it."""
    start, end = [], 0
    for arrival, duration in zip(jobs.arrival.tolist(), jobs.duration.tolist(), strict=True):
        start.append(max(arrival, end))
        end = start[-1] + duration
    return np.array(start)


def least_slowdown(jobs: JobSet, of: Cluster) -> float:
    """The least mean slowdown: in some best schedule each job, in some order, starts as early as it fits."""
    best = math.inf
    for order in itertools.permutations(range(len(jobs.arrival))):
        held = np.zeros((200, len(of.capacity)), dtype=np.int64)
        start = np.zeros(len(order), dtype=np.int64)
        for k in order:
            at = int(jobs.arrival[k])
            while (held[at : at + jobs.duration[k]] + jobs.demand[k] > of.capacity).any():
                at += 1
            held[at : at + jobs.duration[k]] += jobs.demand[k]
            start[k] = at
        best = min(best, mean_slowdown(jobs, start))
    return best


def test_waiting_for_short_jobs_is_found_although_all_ends_later() -> None:
    found = solve_work(Work(PATIENT, HASTY), ONE, limit=1.0, seed=1)
    assert mean_slowdown(PATIENT, HASTY) == 61 / 6
    assert found.objective == pytest.approx(16.6 / 6)
    assert (found.start[0], found.status) == (6, "OPTIMAL")
    assert found.bound == pytest.approx(found.objective)


@pytest.mark.parametrize("seed", range(6))
def test_the_best_of_all_orders_is_found_and_proved(seed: int) -> None:
    of = cluster(3, 2, horizon=5)
    jobs = random_jobset(np.random.default_rng(seed), of, jobs=6, steps=5)
    found = solve_work(Work(jobs, one_by_one(jobs)), of, limit=5.0, seed=seed)
    assert found.status == "OPTIMAL"
    assert found.objective == pytest.approx(least_slowdown(jobs, of))


def test_the_warm_start_is_kept_where_nothing_better_is_found() -> None:
    jobs = jobset((0, 2, 1), (0, 2, 1))
    found = solve_work(Work(jobs, np.array([0, 2])), ONE, limit=1.0, seed=1)
    assert (found.start.tolist(), found.objective, found.status) == ([0, 2], 1.5, "OPTIMAL")


def test_a_search_without_time_returns_the_warm_start_and_says_so() -> None:
    rng = np.random.default_rng(5)
    of = cluster(5, 5, horizon=20)
    jobs = random_jobset(rng, of, jobs=30, steps=10)
    warm = one_by_one(jobs)
    found = solve_work(Work(jobs, warm), of, limit=1e-9, seed=1)
    assert (found.start.tolist(), found.status) == (warm.tolist(), "WARM")
    assert 1 <= found.bound < found.objective == mean_slowdown(jobs, warm)


def test_what_is_cut_is_between_its_bound_and_the_warm_start_and_the_same_each_time() -> None:
    of = cluster(10, 10, horizon=20)
    jobs = random_jobset(np.random.default_rng(3), of, jobs=25, steps=20)
    warm = one_by_one(jobs)
    found, again = (solve_work(Work(jobs, warm), of, limit=0.05, seed=7) for _ in range(2))
    check_schedule(jobs, of, found.start)
    assert found.status == "FEASIBLE"
    assert 1 <= found.bound < found.objective < mean_slowdown(jobs, warm)
    assert found.start.tobytes() == again.start.tobytes()
    assert found[1:] == again[1:]


@pytest.mark.parametrize(
    ("start", "said"),
    [
        ([0, 0, 1], "step 0: 4 units of resource 0 in use"),
        ([0, 3, 0], "job 2 starts at 0, before it arrives at 1"),
    ],
)
def test_a_schedule_that_cannot_be_is_refused(start: list[int], said: str) -> None:
    jobs = jobset((0, 3, 2), (0, 1, 2), (1, 1, 1))
    with pytest.raises(ValueError, match=said):
        check_schedule(jobs, cluster(3), np.array(start))
    with pytest.raises(ValueError, match=said):
        solve_work(Work(jobs, np.array(start)), cluster(3), 1.0, 1)


def test_weights_with_a_large_common_multiple_are_rounded_down() -> None:
    weight, scale = weights_of(np.array([9973, 9967, 9949]))  # primes
    assert (weight, scale) == ([100, 100, 100], 10**6)


def test_a_job_may_wait_as_long_as_the_others_could_gain() -> None:
    # Least: 6 slowdowns of 1. The hasty schedule has 61, 55 more; the long job may take 10 of its steps for each, but
    # none starts behind the last arrival and all others: 1 + 15 - 10. A short one: 1 + 15 - 1.
    weight, _ = weights_of(PATIENT.duration)
    assert latest_starts(PATIENT, HASTY, weight) == [6, 15, 15, 15, 15, 15]
    # One job late by half its duration: it may be no later.
    assert latest_starts(jobset((3, 4, 1)), np.array([5]), [1]) == [3 + 2]


# The share of the distance


def results(scores: dict[str, dict[int, list[float]]]) -> pd.DataFrame:
    rows = [(policy, load, k, mean) for policy, of in scores.items() for load in of for k, mean in enumerate(of[load])]
    return pd.DataFrame(rows, columns=["policy", "load", "jobset", "mean_slowdown"]).assign(unfinished=0)


def solved(objective: dict[int, list[float]]) -> pd.DataFrame:
    rows = [(load, k, value) for load, values in objective.items() for k, value in enumerate(values)]
    frame = pd.DataFrame(rows, columns=["load", "jobset", "objective"])
    return frame.assign(bound=1.0, status=["OPTIMAL" if k % 2 else "FEASIBLE" for k in frame["jobset"]])


SCORES = {
    "sjf": {10: [2.0, 2.0, 9.0], 110: [8.0, 10.0, 9.0]},
    "hold": {10: [3.0, 2.0, 9.0], 110: [5.0, 7.0, 9.0]},
    "net": {10: [2.0, 3.0, 9.0], 110: [4.0, 6.0, 9.0]},
}
IDEAL = {10: [2.0, 2.0], 110: [3.0, 5.0]}  # of the first two jobsets of each load
BEST = {10: "sjf", 110: "hold"}


def table() -> pd.DataFrame:
    found = hindsight_table("online", results(SCORES), solved(IDEAL), BEST, SETTINGS, seed=1)
    return HINDSIGHT_SUMMARY.validate(found)


def test_closes_is_the_gain_on_the_best_heuristic_over_its_distance_to_hindsight() -> None:
    rows = table().set_index(["load", "policy"])
    net = rows.loc[("110", "net")]
    assert (net["n"], net["slowdown"], net["best_heuristic"], net["hindsight"]) == (2, 5.0, 6.0, 4.0)
    assert net[["closes", "closes_low", "closes_high"]].tolist() == [0.5, 0.5, 0.5]  # each jobset tells the same
    assert rows.loc[("110", "hold"), "closes"] == 0
    assert rows.loc[("110", "sjf"), "closes"] == (6 - 9) / 2
    assert net["optimal"] == 0.5


def test_nothing_is_closed_where_there_is_no_distance() -> None:
    low = table().query("load == '010'")
    assert low[["closes", "closes_low", "closes_high"]].isna().all(axis=None)
    assert np.isnan(closes(np.array([0.5]), np.array([1e-12]))).all()


def test_nothing_is_said_to_be_closed_where_best_heuristic_and_hindsight_do_not_differ_clearly() -> None:
    """One jobset of three has a distance, and three resamples in ten leave it out: the interval holds 0."""
    scores = {"sjf": {10: [2.0, 2.0, 3.0]}, "net": {10: [2.0, 2.0, 2.0]}}
    found = hindsight_table("online", results(scores), solved({10: [2.0, 2.0, 2.0]}), {10: "sjf"}, SETTINGS, seed=1)
    assert found[["closes", "closes_low", "closes_high"]].isna().all(axis=None)
    lines = hindsight_markdown(HINDSIGHT_SUMMARY.validate(found)).splitlines()
    assert "-: the two do not differ clearly" in lines[0]
    assert lines[-2:] == ["| net | - |", "| sjf | - |"]
    # Where every jobset has one, it is told.
    clear = hindsight_table("online", results(scores), solved({10: [1.5, 1.5, 1.5]}), {10: "sjf"}, SETTINGS, seed=1)
    assert clear.set_index("policy").loc["net", "closes"].tolist() == pytest.approx([0.4, 0.4])


def test_over_all_loads_it_is_the_ratio_of_means_over_loads() -> None:
    rows = table().query("load == 'all'").set_index("policy")
    # net: loses 0.5 at load 10 and gains 1 at 110, of 0 and 2.
    assert rows.loc["net", "closes"] == 0.25
    assert (rows.loc["net", "closes_low"], rows.loc["net", "closes_high"]) == (0.0, 0.5)  # which jobsets of load 10
    assert (rows.loc["net", "n"], rows.loc["net", "best_heuristic"]) == (4, 4.0)


def test_a_policy_without_scores_on_a_solved_jobset_is_refused() -> None:
    frame = results(SCORES)
    missing = frame[(frame["policy"] != "net") | (frame["load"] != 110) | (frame["jobset"] != 1)]
    with pytest.raises(ValueError, match="policy 'net' was not scored on jobset 1 of load 110"):
        hindsight_table("online", missing, solved(IDEAL), BEST, SETTINGS, seed=1)
    with pytest.raises(ValueError, match="is policy 'lpt' at load 110, which has no scores"):
        hindsight_table("online", frame, solved(IDEAL), {10: "sjf", 110: "lpt"}, SETTINGS, seed=1)


def test_the_markdown_ranks_policies_by_what_they_close() -> None:
    lines = hindsight_markdown(table()).splitlines()
    assert lines[0].startswith("**online**: percent of the distance from the best heuristic to hindsight")
    assert lines[2:] == [
        "| policy | 10 | 110 | all |",
        "| --- | ---: | ---: | ---: |",
        "| *best heuristic*: mean slowdown | 2.00 | 6.00 | 4.00 |",
        "| *hindsight*: mean slowdown | 2.00 | 4.00 | 3.00 |",
        "| *bound*: mean slowdown | 1.00 | 1.00 | 1.00 |",
        "| *proved optimal* | 50 % | 50 % | 50 % |",
        "| net | - | 50 % (50 to 50) | 25 % (0 to 50) |",
        "| hold | - | 0 % (0 to 0) | -25 % (-50 to 0) |",
        "| sjf | - | -150 % (-150 to -150) | -150 % (-150 to -150) |",
    ]
