"""The paired bootstrap on tables with a known answer."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.comparing.resampling import FEW, interval, resample, windows
from pipeline.comparing.statistics import comparison, summary
from pipeline.core.config import Evaluation
from pipeline.core.schemas import COMPARISON, SUMMARY
from pipeline.core.types import FloatArray
from pipeline.problems.pool.env.tables import JOBSET_RESULTS

SETTINGS = Evaluation(resamples=400, confidence=0.95)
Scores = dict[str, dict[int, list[float]]]

# policy -> load -> mean slowdown of each jobset
SCORES: Scores = {
    "sjf": {10: [2, 4], 110: [4, 6]},
    "tetris": {10: [1, 2], 110: [6, 8]},
    "net": {10: [1.5, 3], 110: [3, 5]},
}
SJF = {10: "sjf", 110: "sjf"}
LEVELS = {"sjf": 3.0, "net": 1.0}
BEST = {10: "tetris", 110: "sjf"}


def results(scores: Scores) -> pd.DataFrame:
    """Return JobsetResults with these mean slowdowns; the worst job is twice as slow, the rest is constant."""
    rows = [(policy, load, k, mean) for policy, of in scores.items() for load in of for k, mean in enumerate(of[load])]
    frame = pd.DataFrame(rows, columns=["policy", "load", "jobset", "mean_slowdown"])
    frame["mean_slowdown"] = frame["mean_slowdown"].astype(float)
    frame.insert(3, "jobs", 7)
    for name, factor in {"p50_slowdown": 1, "p99_slowdown": 1.5, "worst_slowdown": 2, "completion_time": 4}.items():
        frame[name] = factor * frame["mean_slowdown"]
    frame.insert(8, "longest_wait", 9)
    return frame.assign(makespan=80, utilisation=0.5, not_work_conserving=0.25, unfinished=0)


def shown(frame: pd.DataFrame) -> pd.DataFrame:
    """The same with unbounded slowdown beside it, as a summary takes it."""
    return frame.assign(unbounded_slowdown=3 * frame["mean_slowdown"])


def compare(
    frame: pd.DataFrame, references: dict[str, dict[int, str]], settings: Evaluation = SETTINGS, seed: int = 1
) -> pd.DataFrame:
    return comparison(frame, "online", references, settings, np.random.default_rng(seed))


def row(table: pd.DataFrame, policy: str, load: str, against: str) -> pd.Series:
    found = table[(table["policy"] == policy) & (table["load"] == load) & (table["against"] == against)]
    assert len(found) == 1
    return found.iloc[0]


def test_means_and_differences_at_one_load() -> None:
    table = COMPARISON.validate(compare(JOBSET_RESULTS.validate(results(SCORES)), {"sjf": SJF}))
    found = row(table, "net", "010", "sjf")
    assert (found["mean"], found["mean_against"], found["n"]) == (2.25, 3.0, 2)
    assert found["difference"] == pytest.approx(2.25 / 3 - 1)


def test_all_is_the_mean_over_loads_of_the_means() -> None:
    found = row(compare(results(SCORES), {"sjf": SJF}), "net", "all", "sjf")
    assert (found["mean"], found["mean_against"], found["n"]) == (3.125, 4.0, 4)
    assert found["difference"] == pytest.approx(3.125 / 4 - 1)


def test_a_load_with_more_jobsets_weighs_no_more() -> None:
    scores: Scores = {"sjf": {10: [2], 110: [4, 4, 4]}, "net": {10: [1], 110: [4, 4, 4]}}
    found = row(compare(results(scores), {"sjf": SJF}), "net", "all", "sjf")
    assert (found["mean"], found["mean_against"], found["n"]) == (2.5, 3.0, 4)


def test_a_reference_may_be_another_policy_at_each_load() -> None:
    found = row(compare(results(SCORES), {"best_heuristic": BEST}), "net", "all", "best_heuristic")
    assert found["mean_against"] == (1.5 + 5) / 2
    assert found["difference"] == pytest.approx(3.125 / 3.25 - 1)


def test_a_policy_is_not_compared_with_itself() -> None:
    table = compare(results(SCORES), {"sjf": SJF, "best_heuristic": BEST})
    compared = table.groupby(["against", "load"])["policy"].agg(set).to_dict()
    assert compared == {
        ("sjf", "010"): {"tetris", "net"},
        ("sjf", "110"): {"tetris", "net"},
        ("sjf", "all"): {"tetris", "net"},
        ("best_heuristic", "010"): {"sjf", "net"},
        ("best_heuristic", "110"): {"tetris", "net"},
        ("best_heuristic", "all"): {"sjf", "tetris", "net"},
    }


def test_pairing_leaves_no_doubt_where_every_jobset_tells_the_same() -> None:
    hard = np.random.default_rng(0).uniform(1, 50, size=30)
    scores: Scores = {"sjf": {10: list(hard)}, "net": {10: list(hard * 1.5)}}
    found = row(compare(results(scores), {"sjf": {10: "sjf"}}), "net", "010", "sjf")
    assert found["high"] - found["low"] > 5
    assert found[["difference_low", "difference_high"]].tolist() == pytest.approx([0.5, 0.5])


def test_jobsets_are_resampled_within_their_load() -> None:
    scores: Scores = {"sjf": {10: [2] * 12, 110: [10] * 12}, "net": {10: [1] * 12, 110: [8] * 12}}
    found = row(compare(results(scores), {"sjf": SJF}), "net", "all", "sjf")
    assert (found["low"], found["high"]) == (4.5, 4.5)
    assert (found["difference_low"], found["difference_high"]) == (-0.25, -0.25)


def test_the_interval_of_few_jobsets_is_their_range() -> None:
    scores: Scores = {"sjf": {10: [2, 4, 5, 4, 2, 2, 4, 5]}, "net": {10: [1, 3, 4, 2, 1, 1, 2, 4]}}
    found = row(compare(results(scores), {"sjf": {10: "sjf"}}), "net", "010", "sjf")
    assert found[["low", "high", "difference_low", "difference_high"]].tolist() == pytest.approx([1, 4, -0.5, -0.2])


def test_five_jobsets_that_all_say_the_same_tell_no_difference() -> None:
    five, six = (
        row(
            compare(results({"sjf": {10: [2.0] * n}, "net": {10: [1.0] * n}}), {"sjf": {10: "sjf"}}),
            "net",
            "010",
            "sjf",
        )
        for n in (5, 6)
    )
    assert five[["difference", "difference_low", "difference_high"]].tolist() == [-0.5, -0.5, 0]
    assert six[["difference", "difference_low", "difference_high"]].tolist() == [-0.5, -0.5, -0.5]


def test_loads_that_share_windows_have_as_many_units_as_windows() -> None:
    scores: Scores = {name: {60: [level] * 16, 90: [level] * 8, 120: [level] * 8} for name, level in LEVELS.items()}
    found = compare(windows(results(scores)), {"sjf": dict.fromkeys((60, 90, 120), "sjf")})
    assert found["n"].tolist() == [8] * 4
    assert compare(results(scores), {"sjf": dict.fromkeys((60, 90, 120), "sjf")})["n"].tolist() == [16, 8, 8, 32]


def test_what_is_gained_at_one_load_and_lost_at_another_of_the_same_windows_is_certain() -> None:
    change = list(np.linspace(-1, 1, 12))
    scores: Scores = {"sjf": {60: [4] * 12, 90: [4] * 12}}
    scores["net"] = {60: [3 + one for one in change], 90: [3 - one for one in change]}
    alone, together = (
        compare(frame, {"sjf": {60: "sjf", 90: "sjf"}}) for frame in (results(scores), windows(results(scores)))
    )
    assert row(together, "net", "all", "sjf")[["low", "high"]].tolist() == pytest.approx([3, 3])
    assert np.ptp(row(alone, "net", "all", "sjf")[["low", "high"]].tolist()) > 0.3


# How often intervals hold the truth


def held(truth: float, table: pd.DataFrame, policies: Sequence[str]) -> float:
    """The share of policies, each of a world of its own, whose interval over all loads holds the true difference."""
    rows = table[(table["load"] == "all") & table["policy"].isin(policies)]
    assert len(rows) == len(policies)
    return float(((rows["difference_low"] <= truth) & (truth <= rows["difference_high"])).mean())


def test_an_interval_over_loads_of_the_same_windows_holds_the_truth_only_if_they_are_drawn_together() -> None:
    rng, loads, worlds = np.random.default_rng(3), (60, 90, 120), [f"net_{k}" for k in range(300)]
    scores: Scores = {"sjf": dict.fromkeys(loads, [10.0] * 40)}
    for world in worlds:
        hard = 11 + 0.5 * rng.standard_normal(40)  # windows, alike at all loads
        scores[world] = {load: list(hard + 0.2 * rng.standard_normal(40)) for load in loads}
    references = {"sjf": dict.fromkeys(loads, "sjf")}
    together, alone = (compare(cut(results(scores)), references) for cut in (windows, pd.DataFrame))
    assert held(0.1, together, worlds) > 0.9
    assert held(0.1, alone, worlds) < 0.8


@pytest.mark.parametrize("seeds", [2, 3, 5])
def test_an_interval_over_seeds_holds_the_truth_of_all_seeds_and_one_over_jobsets_alone_does_not(seeds: int) -> None:
    rng, scores, trainings = np.random.default_rng(4), Scores(sjf={10: [10.0] * 30}), dict[str, list[str]]()
    for world in range(100):
        luck, hard = 0.05 * rng.standard_normal(seeds), 11 + 0.5 * rng.standard_normal(30)
        names = trainings[f"all_{world}"] = [f"net_{world}_{seed}" for seed in range(seeds)]
        scores |= {name: {10: list(hard + 10 * one)} for name, one in zip(names, luck, strict=True)}
        scores[f"mean_{world}"] = {10: list(hard + 10 * luck.mean())}
    draws = np.random.default_rng(1)
    table = comparison(results(scores), "online", {"sjf": {10: "sjf"}}, SETTINGS, draws, trainings)
    assert held(0.1, table, list(trainings)) > 0.9
    assert held(0.1, table, [f"mean_{world}" for world in range(100)]) < 0.6


def test_of_eight_jobsets_the_range_holds_the_truth_and_percentiles_of_resamples_do_not() -> None:
    rng, worlds = np.random.default_rng(5), 400
    value = np.exp(rng.standard_normal((8, worlds)))  # a few jobsets decide, as in logs
    truth, counts = np.exp(0.5), rng.multinomial(8, np.full(8, 1 / 8), size=400)
    ranges, percentiles = (
        interval((resample(8, 400, rng) @ value / 8)[1:], 0.95, 8),
        interval(counts @ value / 8, 0.95, FEW),
    )
    told, untold = (((low <= truth) & (truth <= high)).mean() for low, high in (ranges, percentiles))
    assert told > 0.95
    assert untold < 0.88


def test_trainings_are_one_policy_of_which_each_counts_alike() -> None:
    scores: Scores = {name: {10: [level] * 12, 110: [2 * level] * 12} for name, level in LEVELS.items()}
    frame = results(scores | {"net_2": {10: [2.0] * 12, 110: [4.0] * 12}})
    frame.loc[frame["policy"].isin(["net", "net_2"]) & (frame["jobset"] == 0), "unfinished"] = 1
    table = comparison(
        *(frame, "online", {"sjf": SJF}, SETTINGS, np.random.default_rng(1), {"net of 2 seeds": ["net", "net_2"]})
    )
    found = COMPARISON.validate(table).set_index(["policy", "load"]).loc["net of 2 seeds"]
    wide = 0.5 * 12.706 / 1.96  # Student's t of one degree of freedom over that of many
    expected = [1.5, 0, 1.5 + wide, 12, 2]  # no slowdown is below 0
    assert found.loc["010", ["mean", "low", "high", "n", "unfinished"]].tolist() == pytest.approx(expected, rel=1e-4)
    expected = [-0.5, -1, wide / 3 - 0.5]
    told = found.loc["all", ["difference", "difference_low", "difference_high"]].tolist()
    assert told == pytest.approx(expected, rel=1e-4)
    without = compare(frame, {"sjf": SJF})
    pd.testing.assert_frame_equal(table[table["policy"] != "net of 2 seeds"].reset_index(drop=True), without)


def test_the_interval_holds_the_truth_as_often_as_it_says() -> None:
    rng = np.random.default_rng(7)
    worlds, jobsets = 300, 40
    hard, luck = rng.exponential(size=(2, worlds, jobsets))
    truth = 1.8 / 2 - 1

    def by_load(score: FloatArray) -> dict[int, list[float]]:
        return {world + 1: list(score[world]) for world in range(worlds)}

    frame = results({"sjf": by_load(1 + hard), "net": by_load(1 + 0.6 * hard + 0.2 * luck)})
    table = compare(frame, {"sjf": dict.fromkeys(range(1, worlds + 1), "sjf")})
    table = table[table["load"] != "all"]
    held = ((table["difference_low"] <= truth) & (truth <= table["difference_high"])).mean()
    assert len(table) == worlds
    assert 0.91 < held < 0.98


@settings(max_examples=30)
@given(st.lists(st.floats(1, 1e3), min_size=1, max_size=20), st.integers(0, 5))
def test_equal_policies_differ_by_exactly_nothing(slowdown: list[float], others: int) -> None:
    filler: Scores = {f"other{k}": {10: [1.0 + k] * len(slowdown)} for k in range(others)}
    frame = results({"sjf": {10: slowdown}, **filler, "double": {10: slowdown}})
    table = compare(frame, {"sjf": {10: "sjf"}}, Evaluation(resamples=100, confidence=0.9))
    double = table[table["policy"] == "double"]
    assert (double[["difference", "difference_low", "difference_high"]] == 0).all(axis=None)


def test_a_policy_scored_on_fewer_jobsets_is_refused() -> None:
    frame = results(SCORES)
    missing = frame[(frame["policy"] != "net") | (frame["load"] != 110) | (frame["jobset"] != 1)]
    with pytest.raises(ValueError, match="policy 'net' was not scored on jobset 1 of load 110"):
        compare(missing, {"sjf": SJF})


def test_a_policy_scored_on_other_jobsets_is_refused() -> None:
    frame = results(SCORES)
    frame.loc[(frame["policy"] == "net") & (frame["load"] == 10), "jobset"] += 1
    with pytest.raises(ValueError, match="policy 'net' was not scored on jobset 0 of load 10"):
        summary(shown(frame), "online", SETTINGS, np.random.default_rng(1))


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        ({10: "sjf"}, "names no policy for load 110"),
        ({10: "sjf", 110: "lpt"}, "'lpt' at load 110, which has no scores"),
    ],
)
def test_a_reference_without_scores_is_refused(choice: dict[int, str], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        compare(results(SCORES), {"sjf": choice})


def test_unfinished_jobs_of_the_policy_are_counted() -> None:
    frame = results(SCORES)
    frame.loc[(frame["policy"] == "net") & (frame["jobset"] == 1), "unfinished"] = 3
    table = compare(frame, {"sjf": SJF})
    assert [row(table, "net", load, "sjf")["unfinished"] for load in ("010", "110", "all")] == [3, 3, 6]
    assert row(table, "tetris", "all", "sjf")["unfinished"] == 0
    net = summary(shown(frame), "online", SETTINGS, np.random.default_rng(1)).query("policy == 'net'")
    assert net["unfinished"].tolist() == [3, 3]


def test_the_same_seed_gives_the_same_table_and_another_one_does_not() -> None:
    scores: Scores = {name: {10: list(np.linspace(1, 9 + k, 20))} for k, name in enumerate(["sjf", "net"])}
    one, again, other = (compare(results(scores), {"sjf": {10: "sjf"}}, seed=seed) for seed in (1, 1, 2))
    pd.testing.assert_frame_equal(one, again, check_exact=True)
    assert not one.equals(other)


def test_the_order_of_rows_does_not_matter() -> None:
    frame = results(SCORES)
    within = frame.sort_values(["jobset", "load"], kind="stable")
    pd.testing.assert_frame_equal(compare(frame, {"sjf": SJF}), compare(within, {"sjf": SJF}), check_exact=True)


def test_summary_means_each_metric_and_keeps_the_worst() -> None:
    table = SUMMARY.validate(summary(shown(results(SCORES)), "online", SETTINGS, np.random.default_rng(1)))
    assert table[["load", "policy"]].to_numpy().tolist() == [[load, name] for load in (10, 110) for name in SCORES]
    net = table.query("policy == 'net' and load == 110").iloc[0]
    assert (net["n"], net["jobs"]) == (2, 14)
    assert (net["slowdown"], net["unbounded_slowdown"]) == (4.0, 12.0)
    assert net["p99_slowdown"] == 6.0
    assert net["worst_slowdown"] == 10.0
    assert net["completion_time"] == 16.0
    assert (net["makespan"], net["utilisation"], net["not_work_conserving"]) == (80.0, 0.5, 0.25)


def test_summary_and_comparison_tell_the_same_interval() -> None:
    scores: Scores = {name: {10: list(np.linspace(1, 9 + k, 20))} for k, name in enumerate(["sjf", "net"])}
    told = (
        summary(shown(results(scores)), "online", SETTINGS, np.random.default_rng(1)).query("policy == 'net'").iloc[0]
    )
    found = row(compare(results(scores), {"sjf": {10: "sjf"}}), "net", "010", "sjf")
    expected = found[["mean", "low", "high"]].tolist()
    assert told[["slowdown", "slowdown_low", "slowdown_high"]].tolist() == expected
