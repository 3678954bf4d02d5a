"""Means, gaps and groups of jobs, by hand; intervals are those of the comparison."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from papers_evidence import OURS, agent, evidence, job_table, jobset_table

from pipeline.comparing.statistics import comparison
from pipeline.core.config import PoolLog
from pipeline.papers.evidence import groups, nearest, slowdown_of
from pipeline.papers.figures import jobs_needed, long_from
from pipeline.papers.roles import Roles, roles_of
from pipeline.papers.rules import CannotTellError


def test_a_gap_is_relative_and_its_interval_is_the_comparisons() -> None:
    means = {"sjf": {70: 2.0, 90: 3.0, 110: 4.0, 130: 5.0}, "packer": {70: 4.0, 90: 6.0, 110: 8.0, 130: 9.0}}
    made = evidence(slowdown=means)
    found = made.gap("mean_slowdown", 130, "sjf", "packer")
    assert (found.policy, found.against, found.load, found.n, found.unfinished) == ("sjf", "packer", 130, 12, 0)
    assert (found.mean, found.mean_against) == pytest.approx((5.0, 9.0))
    assert found.difference == pytest.approx(-4 / 9)
    references = {"packer": dict.fromkeys((70, 90, 110, 130), "packer")}
    results = jobset_table(means, {}, {})
    table = comparison(results, "made", references, OURS.evaluation, np.random.default_rng(OURS.seed))
    row = table[(table["load"] == "130") & (table["policy"] == "sjf")].iloc[0]
    assert (found.low, found.high) == pytest.approx((row["difference_low"], row["difference_high"]))
    mean = made.mean("mean_slowdown", 130, "sjf")
    assert (mean.value, mean.low, mean.high) == pytest.approx((row["mean"], row["low"], row["high"]))


def test_equal_scores_are_equal_whatever_the_resample() -> None:
    made = evidence(slowdown={"sjf": 2.0, "packer": 2.0})
    found = made.gap("mean_slowdown", 70, "sjf", "packer")
    assert (found.difference, found.low, found.high, found.side) == (0.0, 0.0, 0.0, 0)


def test_other_metrics_are_compared_by_the_same_resamples() -> None:
    made = evidence(
        completion={
            "sjf": dict.fromkeys((70, 90, 110, 130), 6.0),
            "packer": dict.fromkeys((70, 90, 110, 130), 8.0),
        }
    )
    found = made.gap("completion_time", 70, "sjf", "packer")
    assert (found.mean, found.difference) == pytest.approx((6.0, -0.25))
    assert found.side == -1


def test_jobs_of_some_lengths_count_each_once() -> None:
    lengths = {"sjf": {1: (2.0, 0), 3: (4.0, 0), 10: (5.0, 0)}, "packer": {1: (5.0, 0), 3: (7.0, 0), 10: (2.5, 0)}}
    made = evidence(by_length=lengths)
    assert made.mean(slowdown_of([1, 3]), 70, "sjf").value == pytest.approx(3.0)
    short, long = (made.gap(slowdown_of(some), 70, "sjf", "packer") for some in ([1, 3], [10]))
    assert (short.mean, short.mean_against, short.difference) == pytest.approx((3.0, 6.0, -0.5))
    assert (long.difference, long.side) == (pytest.approx(1.0), 1)


def test_resamples_without_such_jobs_are_passed_over() -> None:
    made = evidence()
    once = replace(made, jobs=made.jobs[(made.jobs["duration"] < 10) | (made.jobs["jobset"] == 0)])
    found = once.mean(slowdown_of([10]), 70, "sjf")
    assert (found.value, found.low, found.high) == pytest.approx((1.9, 1.9, 1.9))
    with pytest.raises(CannotTellError, match="at load 70 there are no jobs of length 99"):
        once.mean(slowdown_of([99]), 70, "sjf")


def test_a_share_of_a_column_is_that_of_jobs_of_some_lengths() -> None:
    made = evidence(by_length={"sjf": {1: (2.0, 1), 3: (2.0, 0), 10: (2.0, 3)}})
    found = made.share(70, "sjf", "withheld", [10])
    assert (found.value, found.low, found.high, found.n) == (0.75, 0.75, 0.75, 12)
    assert made.share(70, "sjf", "held", [10]).value == 0.5


def test_a_policy_that_was_not_scored_leaves_a_claim_open() -> None:
    with pytest.raises(CannotTellError, match="policy fcfs was not scored in scenario made"):
        evidence().gap("mean_slowdown", 70, "sjf", "fcfs")


def test_short_and_long_jobs_are_told_apart_by_the_workload() -> None:
    made = evidence()
    assert made.long == 4  # params.yaml: short jobs run 1 to 3 steps
    assert made.split(70) == ([1, 3], [10, 15])
    with pytest.raises(CannotTellError, match="not both jobs below 4 steps and longer ones"):
        replace(made, jobs=made.jobs[made.jobs["duration"] < 4]).split(70)


def test_in_a_log_jobs_above_the_mean_are_long() -> None:
    log = OURS.model_copy(update={"workload": PoolLog(name="swf", path="some.swf")})
    assert long_from(log, pd.Series([1, 2, 2, 9])) == 4.0  # the mean is 3.5
    assert long_from(log, pd.Series([], dtype="int64")) == 1.0


@pytest.mark.parametrize(("loads", "asked", "found"), [([99], 130, 99), ([90, 110], 100, 110), ([70, 130], 110, 130)])
def test_the_nearest_load_is_taken(loads: list[int], asked: int, found: int) -> None:
    assert nearest(loads, asked) == found


def test_many_lengths_are_put_between_powers_of_two() -> None:
    assert groups([1, 5]) == {"1": [1], "5": [5]}
    assert groups(list(range(1, 21))) == {
        "1": [1],
        "2-3": [2, 3],
        "4-7": [4, 5, 6, 7],
        "8-15": list(range(8, 16)),
        "16-20": [16, 17, 18, 19, 20],
    }


def test_agents_have_roles_by_network_and_objective() -> None:
    agents = {"a": agent("cnn"), "b": agent(), "c": agent(), "d": agent("mlp", "completion_time")}
    roles = Roles("made", "online", agents)
    assert roles.lead("slowdown", "mlp") == "b"
    assert roles.of("slowdown") == ["a", "b", "c"]
    assert [roles.paper(name) for name in "ab"] == ["DeepRM2", "DeepRM"]
    assert roles._replace(setting="offline").paper("a") == "DeepRM_Off"
    assert roles.protocol("b") == "recipe ours, 400 updates on loads 110 to 130 together"
    with pytest.raises(
        CannotTellError, match="no agent of scenario made has network cnn and objective completion_time"
    ):
        roles.lead("completion_time", "cnn")


def test_scenarios_with_agents_of_the_papers_have_roles_and_streams_have_none() -> None:
    found = {roles.scenario: roles for roles in roles_of(OURS)}
    assert list(found) == ["online", "offline", "machines"]
    mine = ["deeprm", "deeprm2", "deeprm_off"]
    assert [*found["online"].agents, *found["offline"].agents] == mine
    assert {name: roles.setting for name, roles in found.items()} == {name: name for name in found}


def test_single_jobs_are_asked_for_of_few_policies_at_few_loads() -> None:
    roles = Roles("made", "online", {"a": agent("cnn"), "d": agent("mlp", "makespan")})
    assert jobs_needed(roles, [70, 90, 130]) == (["random", "tetris", "a", "a_pretrained"], [90, 130])
    assert jobs_needed(roles, [99])[1] == [99]


def test_the_builder_makes_one_job_of_each_length_in_a_jobset() -> None:
    assert len(job_table(["sjf"], [70], {})) == 48
