"""Controllers on the same jobsets: what is told of jobs, groups and intervals, by hand."""

import numpy as np
import pandas as pd
import pytest
from group_rows import cluster, group_jobs, shared

from pipeline.core.types import FloatArray
from pipeline.problems.groups.env.evaluation import play
from pipeline.problems.groups.env.evaluation.play import SHOWN, Expectation, Player, controlled
from pipeline.problems.groups.env.nouns import Jobs, Observation, Setting
from pipeline.problems.groups.env.tables import TABLES
from pipeline.problems.groups.env.teachers import equal
from pipeline.problems.groups.env.workload.source import cluster_of, draw_jobs
from pipeline.problems.groups.heuristics.tuning import HEURISTICS
from pipeline.simulation.results import Results, mean_cost

SEED = 3
EQUAL = Player(controlled(equal(cluster(), 0)))

# Two units, an equal share one. Of group 0, job 0 runs from 0 to 10 and job 1 waits for it; group 1 never waits, though
# its job 2 ends at 5 and leaves its unit idle. At 10 job 1 starts, at 12 job 3 comes and starts: two intervals in all.
FOUR = group_jobs((0, 10, 1, 0), (0, 5, 1, 0), (0, 5, 1, 1), (12, 1, 1, 1))
# Three jobs of group 0, ten each, one after the other: 20, 10 and 0 units of waiting in the intervals.
THREE = group_jobs((0, 10, 1, 0), (0, 10, 1, 0), (0, 10, 1, 0))


def score(player: Player, *jobsets: Jobs, load: int = 50) -> Results:
    return play.score({"it": player}, {load: list(jobsets)}, cluster(), SEED)["it"]


def always(*share: int) -> Player:
    """Gives each group the same in every interval."""

    def control(view: Observation, draws: FloatArray) -> Setting:
        return Setting(np.tile(np.array(share)[:, None], (len(view.now), 1, 1)), np.zeros_like(view.order))

    return Player(controlled(control))


def dicing(view: Observation, draws: FloatArray) -> Setting:
    """Gives one of the groups everything, by its draw."""
    first = np.where(draws < 0.5, 2, 0)
    return Setting(np.stack([first, 2 - first], axis=1)[:, :, None], np.zeros_like(view.order))


def test_jobs_jobsets_and_groups_fare_as_worked_by_hand() -> None:
    found = score(EQUAL, FOUR)
    assert found.jobs["start"].tolist() == [0, 10, 0, 12]
    assert found.jobs["finish"].tolist() == [10, 15, 5, 13]
    (row,) = found.jobsets.to_dict("records")
    assert (row["mean_wait"], row["longest_wait"], row["makespan"]) == (10 / 4, 10, 15)
    assert row["mean_slowdown"] == (1 + 15 / 5 + 1 + 1) / 4
    assert row["utilisation"] == pytest.approx((10 + 5 + 5 + 1) / 2 / 15)
    assert row["jain_wait"] == 1 / 2  # of mean waits 5 and 0
    assert found.others["groups"][["jobs", "mean_wait", "mean_slowdown"]].to_numpy().tolist() == [[2, 5, 2], [2, 0, 1]]
    assert (mean_cost(found, "delay"), mean_cost(found, "slowdown")) == (2.5, 1.5)


def test_every_interval_is_told_a_row_a_group() -> None:
    rows = score(EQUAL, FOUR).others["intervals"]
    assert rows[["interval", "group"]].to_numpy().tolist() == [[0, 0], [0, 1], [1, 0], [1, 1]]
    assert rows["share"].tolist() == [0.5] * 4
    assert rows["waiting"].tolist() == [2, 1, 1, 0]  # before anything is started
    assert rows["cost"].tolist() == [10, 0, 0, 0]
    assert rows["used"].tolist() == [0, 0, 0, 0]  # at 10 both jobs that ran have ended
    assert rows[["q", "realised"]].isna().all(axis=None)


def test_units_in_use_are_those_when_an_interval_begins() -> None:
    rows = score(always(2, 0), group_jobs((0, 25, 1, 0), (1, 1, 1, 0), (15, 1, 1, 0))).others["intervals"]
    assert rows[rows["group"] == 0]["used"].tolist() == [0, 0.5]
    assert rows[rows["group"] == 0]["share"].tolist() == [1, 1]
    assert rows[rows["group"] == 1]["share"].tolist() == [0, 0]


def test_a_decision_is_worth_what_it_saves_against_the_configuration_before() -> None:
    rows = score(always(2, 0), FOUR).others["intervals"]
    # First against equal shares: group 0 saves the 10 of its job 1, group 1 waits for 10. From then on nothing changes,
    # while job 2 waits, and job 3 from 12 on, until the episode is cut: the reward is 0 against the same again.
    assert rows[rows["interval"] == 0]["reward"].tolist() == [10, -10]
    assert rows[rows["interval"] > 0]["reward"].eq(0).all()
    assert rows[rows["interval"] == 1]["cost"].tolist() == [0, 10 + 8]


def test_the_reward_of_a_jobset_is_the_mean_over_its_intervals() -> None:
    found = score(Player(controlled(_first_to_the_first)), FOUR, THREE)
    # Of the first: +10 - 10 at 0. At 10, 10 of job 2 and 8 of job 3 are saved, but for 3 until job 2 ends at 15.
    # Of the second: all of 20 is saved but for the third job's 10; at 10 it starts, which (2, 0) would have done, too.
    assert found.jobsets["reward"].tolist() == [(0 + 15) / 2, (10 + 0) / 2]


def _first_to_the_first(view: Observation, draws: FloatArray) -> Setting:
    share = np.where(view.now[:, None] == 0, [2, 0], [1, 1])
    return Setting(share[:, :, None], np.zeros_like(view.order))


def test_jobs_that_are_cut_off_are_flagged() -> None:
    found = play.score({"it": always(2, 0)}, {50: [FOUR]}, cluster(time_limit=30), SEED)["it"]
    assert found.jobs["unfinished"].tolist() == [False, False, True, True]
    assert found.jobs["wait"].tolist() == [0, 0, 30, 18]
    assert found.others["groups"]["unfinished"].tolist() == [0, 2]
    assert len(found.others["intervals"]) == 3 * 2


def test_jobs_and_intervals_of_the_first_few_jobsets_are_told_and_the_metrics_of_all() -> None:
    found = play.score({"it": EQUAL}, {50: [FOUR] * 5, 90: [THREE] * 4}, cluster(), SEED)["it"]
    assert SHOWN == 3
    for told in (found.jobs, found.others["intervals"]):
        assert told.groupby("load")["jobset"].unique().map(list).to_dict() == {50: [0, 1, 2], 90: [0, 1, 2]}
    for of_all in (found.jobsets, found.others["groups"]):
        assert of_all.groupby("load")["jobset"].nunique().to_dict() == {50: 5, 90: 4}
    assert len(found.others["groups"]) == 5 * 2 + 4  # group 1 has no jobs in the second


def test_episodes_end_at_their_own_time() -> None:
    rows = score(EQUAL, FOUR, THREE, FOUR).others["intervals"]
    assert rows.groupby("jobset")["interval"].nunique().tolist() == [2, 3, 2]
    assert (rows["group"].to_numpy() == np.tile([0, 1], len(rows) // 2)).all()


# What is expected


def by_the_clock(view: Observation) -> FloatArray:
    return view.now[:, None] + [0.0, 1.0]


@pytest.mark.parametrize(("objective", "weight"), [("delay", 1), ("slowdown", 1 / 10)])
def test_what_was_expected_stands_beside_the_discounted_rewards_that_came(objective: str, weight: float) -> None:
    player = EQUAL._replace(expectation=Expectation(by_the_clock, objective, "zero", gamma=0.5))
    rows = score(player, THREE).others["intervals"]
    assert rows["q"].tolist() == [0, 1, 10, 11, 20, 21]
    # Rewards are -20, -10 and 0: from the first interval on -20 + 0.5 * -10.
    assert rows["realised"].tolist() == pytest.approx(np.array([-25, 0, -10, 0, 0, 0]) * weight)
    assert rows["reward"].eq(0).all()  # of all policies alike: against equal shares, which these are


def test_expectations_of_jobsets_that_end_at_different_times_stay_with_theirs() -> None:
    player = EQUAL._replace(expectation=Expectation(by_the_clock, "delay", "zero", gamma=0.5))
    rows = score(player, FOUR, THREE, FOUR, THREE).others["intervals"]
    assert rows["q"].tolist() == (10 * rows["interval"] + rows["group"]).tolist()
    first = rows[(rows["group"] == 0)].set_index(["jobset", "interval"])["realised"]
    assert first.to_dict() == {(0, 0): -10, (0, 1): 0, (2, 0): -10, (2, 1): 0, (1, 0): -25, (1, 1): -10, (1, 2): 0}


def test_what_came_is_of_the_very_decisions_that_were_told() -> None:
    dicer = Player(controlled(dicing), Expectation(by_the_clock, "delay", "present", gamma=0.0))
    rows = score(dicer, FOUR, THREE, FOUR).others["intervals"]
    assert rows["reward"].ne(0).any()
    assert rows["realised"].tolist() == rows["reward"].tolist()


# All together

PARAMS = shared()
ROW = PARAMS.groups_scenario("shared")
DRAWN = {
    load: [draw_jobs(ROW.workload, ROW, load, np.random.default_rng([load, k])) for k in range(4)]  # type: ignore[arg-type]
    for load in ROW.loads
}


def thrown(view: Observation, draws: FloatArray) -> Setting:
    """Gives one of the groups everything, by its draw, in any order of the queues."""
    share = np.zeros_like(view.share)
    share[np.arange(len(draws)), (draws < 0.5).astype(np.int64)] = [8, 6]
    return Setting(share, np.repeat((draws * 10 % 1 < 0.5).astype(np.int64)[:, None], 2, axis=1))


def players() -> dict[str, Player]:
    area = cluster_of(ROW)
    rules = {name: Player(controlled(make(area, 0))) for name, make in HEURISTICS.items()}
    return {"thrown": Player(controlled(thrown))} | rules


def same(one: Results, other: Results) -> None:
    for mine, theirs in zip((*one[:2], *one.others.values()), (*other[:2], *other.others.values()), strict=True):
        pd.testing.assert_frame_equal(mine, theirs, check_exact=True)


def test_all_tables_pass_their_schemas() -> None:
    for found in play.score(players(), DRAWN, cluster_of(ROW), SEED).values():
        TABLES.jobs.validate(found.jobs)
        TABLES.jobsets.validate(found.jobsets)
        assert set(found.others) == {"groups", "intervals"}
        for name, frame in found.others.items():
            TABLES.also[name].validate(frame)


def test_company_changes_nothing() -> None:
    together = play.score(players(), DRAWN, cluster_of(ROW), SEED)
    assert list(together) == list(players())
    for name in ("thrown", "drf"):
        same(play.score({name: players()[name]}, DRAWN, cluster_of(ROW), SEED)[name], together[name])
    alone = play.score({"thrown": players()["thrown"]}, {120: DRAWN[120]}, cluster_of(ROW), SEED)["thrown"]
    whole = together["thrown"].jobsets
    pd.testing.assert_frame_equal(alone.jobsets, whole[whole["load"] == 120].reset_index(drop=True), check_exact=True)


def test_draws_depend_on_the_seed_and_the_jobset() -> None:
    one, again, other = (play.score(players(), DRAWN, cluster_of(ROW), seed)["thrown"] for seed in (1, 1, 2))
    same(one, again)
    assert (one.jobsets["mean_wait"] != other.jobsets["mean_wait"]).any()
    twice = play.score({"it": Player(controlled(thrown))}, {60: DRAWN[60][:1] * 2}, cluster_of(ROW), SEED)["it"]
    given = [rows["share"].tolist() for _, rows in twice.others["intervals"].groupby("jobset")]
    assert given[0] != given[1]


def test_play_tells_how_far_it_is() -> None:
    on_progress: list[float] = []
    play.score(dict.fromkeys("abcd", EQUAL), {50: [FOUR]}, cluster(), SEED, on_progress.append)
    assert on_progress == [0.25, 0.5, 0.75, 1.0]
