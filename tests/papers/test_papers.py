"""Every claim of the papers, judged on tables whose answer is known: it holds, it does not, it cannot be told."""

from typing import Any

import pytest
from papers_evidence import agent, curve, evidence, rising

from pipeline.papers import durations, learning, loads, objectives, withheld
from pipeline.papers.evidence import Evidence
from pipeline.papers.verdicts import CANNOT, NO, PARTLY, YES, Claim, Verdict, judged

LOADS = (70, 90, 110, 130)
TIME = {"shallow_time": agent("mlp", "completion_time"), "deep_time": agent("cnn", "completion_time")}
BOTH = {"shallow": agent(), "deep": agent("cnn", cloned=True), **TIME}
OFF = {"off": agent("cnn", cloned=True)}


def verdict(claims: Any, words: str, *given: object) -> Verdict:
    """Judge the one claim whose text has those words."""
    (claim,) = [claim for claim in claims if words in claim.text]
    assert isinstance(claim, Claim)
    ((_, found),) = judged([claim], *given)
    return found


def line(*means: float) -> dict[int, float]:
    return dict(zip(LOADS, means, strict=True))


# Slowdown against load


@pytest.mark.parametrize(
    ("words", "changed", "word"),
    [
        ("rises with load", {}, YES),
        ("rises with load", {"sjf": line(2, 3, 2.5, 4)}, PARTLY),
        ("lower slowdown than Packer", {}, YES),
        ("lower slowdown than Packer", {"packer": line(2.7, 2.9, 2.0, 8)}, PARTLY),
        ("lower slowdown than Packer", {"packer": 1.95}, NO),
        ("lower slowdown than Packer", {"packer": 2.0}, CANNOT),
        ("than both SJF and Packer", {}, YES),
        ("than both SJF and Packer", {"tetris": 3.0}, PARTLY),
        ("than both SJF and Packer", {"tetris": 4.5}, NO),
        ("comparable to SJF, Packer and Tetris", {}, YES),
        (
            "comparable to SJF, Packer and Tetris",
            {"shallow": line(2.5, 2.7, 3, 3.1), "tetris": line(2.5, 2.7, 3, 3.2)},
            YES,
        ),
        ("comparable to SJF, Packer and Tetris", {"shallow": line(2.5, 2.6, 2.7, 3.3)}, YES),
        ("comparable to SJF, Packer and Tetris", {"shallow": line(2.5, 2.6, 2.7, 3.6)}, PARTLY),
        ("comparable to SJF, Packer and Tetris", {"shallow": 2.4}, PARTLY),
        ("comparable to SJF, Packer and Tetris", {"shallow": 9.0}, NO),
        ("than Tetris at higher loads", {}, YES),
        ("than Tetris at higher loads", {"shallow": line(9, 9, 2, 2)}, YES),
        ("than Tetris at higher loads", {"shallow": line(2, 2, 2, 9)}, PARTLY),
        ("than Tetris at higher loads", {"shallow": line(2, 2, 9, 9)}, NO),
        ("DeepRM2 is below DeepRM", {"deep": 1.4}, YES),
        ("DeepRM2 is below DeepRM", {"deep": 1.6}, PARTLY),
        ("DeepRM2 is below DeepRM", {"deep": 4.0, "shallow": 3.0}, NO),
        ("DeepRM2 is below DeepRM", {"deep": 1.5}, PARTLY),
        ("below Tetris and Random", {"tetris": 4.0}, YES),
        ("below Tetris and Random", {}, PARTLY),
        ("below Tetris and Random", {"random": 1.9}, NO),
        ("under 90 %, and above", {"tetris": line(3, 5, 7, 9), "random": line(4, 5, 6, 7)}, YES),
        ("under 90 %, and above", {}, PARTLY),
        ("under 90 %, and above", {"tetris": line(4, 5, 6, 7), "random": line(3, 5, 7, 9)}, NO),
    ],
)
def test_claims_about_load(words: str, changed: dict[str, Any], word: str) -> None:
    found = verdict(loads.CLAIMS, words, evidence(slowdown=changed))
    assert found.agrees == word, found.found


def test_what_is_found_over_loads_names_the_loads_and_the_best_heuristic() -> None:
    made = evidence(slowdown={"hold": line(1.2, 1.3, 2.9, 9.0)})
    found = verdict(loads.CLAIMS, "comparable to", made).found
    assert "shallow below sjf at 4 of 4 loads, above at 0; widest at load 70, 2.20 to 2.70: 18.5 % below" in found
    assert "against the best of all our heuristics (by validation) below at 2 of 4, above at 2" in found
    assert found.endswith("Ours: recipe ours, 400 updates on loads 110 to 130 together")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("rises with load", "there is one load only, 99"),
        ("under 90 %, and above", "there are no loads on both sides of 90 %; above 90 %: at load 99 random 5.99"),
    ],
)
def test_one_load_leaves_claims_about_loads_open(words: str, why: str) -> None:
    found = verdict(loads.CLAIMS, words, evidence(loads=[99]))
    assert found.agrees == CANNOT
    assert found.found.startswith(why)


# Both objectives


@pytest.mark.parametrize(
    ("words", "slowdown", "completion", "word"),
    [
        ("Tetris is before", {}, {}, YES),
        ("Tetris is before", {}, {"tetris": line(9, 9, 9, 99)}, PARTLY),
        ("Tetris is before", {"tetris": 9.0}, {"tetris": line(9, 9, 9, 99)}, NO),
        ("DeepRM trained for slowdown", {"shallow_time": 1.7}, {}, YES),
        ("DeepRM trained for slowdown", {"shallow_time": 1.4}, {}, PARTLY),
        ("DeepRM trained for slowdown", {"shallow": 9.0}, {}, NO),
        ("DeepRM trained for completion", {}, {"shallow_time": line(9, 9, 9, 2)}, YES),
        ("DeepRM trained for completion", {}, {"shallow_time": line(9, 9, 9, 10)}, PARTLY),
        ("DeepRM trained for completion", {}, {"shallow_time": line(9, 9, 9, 99)}, NO),
    ],
)
def test_claims_about_both_objectives_at_130(words: str, slowdown: Any, completion: Any, word: str) -> None:
    made = evidence(BOTH, slowdown=slowdown, completion=completion)
    found = verdict(objectives.CLAIMS[130], words, made, 130)
    assert found.agrees == word, found.found


@pytest.mark.parametrize(
    ("words", "slowdown", "completion", "word"),
    [
        ("lower slowdown than DeepRM", {"deep": 1.4}, {}, YES),
        ("lower slowdown than DeepRM", {"deep": 1.5}, {}, CANNOT),
        ("lower slowdown than DeepRM", {"deep": 1.6}, {}, NO),
        ("lower one than DeepRM trained for it", {}, {"deep_time": line(2, 9, 9, 9)}, YES),
        ("lower one than DeepRM trained for it", {}, {"deep_time": line(99, 9, 9, 9)}, NO),
    ],
)
def test_claims_about_both_objectives_at_70(words: str, slowdown: Any, completion: Any, word: str) -> None:
    made = evidence(BOTH, slowdown=slowdown, completion=completion)
    found = verdict(objectives.CLAIMS[70], words, made, 70)
    assert found.agrees == word, found.found


@pytest.mark.parametrize(
    ("load", "words", "lacks"),
    [(130, "DeepRM trained for completion", "mlp"), (70, "lower one than DeepRM trained for it", "cnn")],
)
def test_without_an_agent_for_completion_time_its_claims_are_open(load: int, words: str, lacks: str) -> None:
    found = verdict(objectives.CLAIMS[load], words, evidence(), load)
    why = f"no agent of scenario made has network {lacks} and objective completion_time"
    assert found == Verdict(why, CANNOT)


# Learning


def shallow(**curves: Any) -> Evidence:
    return evidence(curves={"shallow": curve(**curves)})


@pytest.mark.parametrize(
    ("start", "word"), [({}, YES), ({"shallow_pretrained": 5.0}, YES), ({"shallow_pretrained": 4.5}, NO)]
)
def test_before_training_it_is_no_better_than_random(start: dict[str, float], word: str) -> None:
    assert verdict(learning.CLAIMS["DeepRM"], "Before training", evidence(slowdown=start), "shallow").agrees == word


def test_a_clone_is_no_untrained_start() -> None:
    made = evidence({"shallow": agent(cloned=True)})
    found = verdict(learning.CLAIMS["DeepRM"], "Before training", made, "shallow")
    assert found == Verdict("shallow starts from a clone, not from untrained weights", CANNOT)


@pytest.mark.parametrize(
    ("validation", "word", "said"),
    [
        (
            {0: 9.0, 100: 3.5, 200: 3.0, 300: 4.0},
            YES,
            "after update 200: shallow 3.00, tetris 3.10; first below after update 200",
        ),
        ({0: 9.0, 150: 3.0, 250: 3.2}, NO, "after update 250: shallow 3.20, tetris 3.10; first below after update 150"),
        ({0: 9.0, 50: 3.0}, YES, "update 50 (200 updates were not run)"),
        ({0: 9.0, 200: 8.0}, NO, "never below"),
    ],
)
def test_after_200_updates_it_is_better_than_tetris(validation: dict[int, float], word: str, said: str) -> None:
    found = verdict(learning.CLAIMS["DeepRM"], "After 200", shallow(validation=validation), "shallow")
    assert found.agrees == word
    assert said in found.found


@pytest.mark.parametrize(
    ("curves", "word"),
    [
        (rising(), YES),
        (rising(first=-40, last=-100), PARTLY),
        (curve(mean_return={1: 3, 2: 2}, best_return={1: 4, 2: 3}, slowdown={1: 2, 2: 3}), NO),
        (curve(mean_return={1: 3, 2: 2}, best_return={1: 4, 2: 3}), CANNOT),
        (curve(mean_return={1: 3}, best_return={1: 4}, slowdown={1: 2}), CANNOT),
    ],
)
def test_returns_rise_and_slowdown_falls(curves: Any, word: str) -> None:
    made = evidence(curves={"shallow": curves})
    assert verdict(learning.CLAIMS["DeepRM"], "Mean and best return rise", made, "shallow").agrees == word


def test_the_rank_correlation_of_return_and_slowdown_is_told() -> None:
    found = verdict(learning.CLAIMS["DeepRM"], "Mean and best return rise", evidence(), "shallow")
    assert "slowdown 5.895 to 2.105; rank correlation of mean return and slowdown over updates -1.00" in found.found


@pytest.mark.parametrize(("last", "word"), [(-1, YES), (-5, YES), (-7, PARTLY), (-12, NO)])
def test_the_gap_between_best_and_mean_return_closes(last: float, word: str) -> None:
    made = shallow(mean_return={1: -20, 2: last * 2}, best_return={1: -8, 2: last})  # gaps: 12, then -last
    assert verdict(learning.CLAIMS["DeepRM"], "gap between best", made, "shallow").agrees == word


@pytest.mark.parametrize(
    ("slowdown", "last", "word"), [(1.4, -30, YES), (1.4, -50, PARTLY), (1.6, -30, PARTLY), (1.6, -50, NO)]
)
def test_the_second_ends_better(slowdown: float, last: float, word: str) -> None:
    made = evidence(slowdown={"deep": slowdown}, curves={"deep": rising(last=last)})  # shallow's ends at -40
    found = verdict(learning.CLAIMS["DeepRM2"], "ends with a higher return", made, "deep")
    assert found.agrees == word, found.found


@pytest.mark.parametrize(("deep", "word"), [({0: 6, 10: 2.0, 20: 1.95}, YES), ({0: 6, 10: 3, 30: 1.9}, NO)])
def test_the_second_converges_sooner(deep: dict[int, float], word: str) -> None:
    made = evidence(curves={"deep": curve(validation=deep)})  # shallow is near its best after update 20
    assert verdict(learning.CLAIMS["DeepRM2"], "fewer epochs", made, "deep").agrees == word


def test_without_the_first_the_second_is_compared_with_nothing() -> None:
    made = evidence({"deep": agent("cnn")})
    for words in ("ends with a higher return", "fewer epochs"):
        assert verdict(learning.CLAIMS["DeepRM2"], words, made, "deep").agrees == CANNOT
    assert verdict(loads.CLAIMS, "comparable to", made).agrees == CANNOT


@pytest.mark.parametrize(
    ("returns", "slowdown", "word"),
    [
        ({1: -9, 2: -5, 3: -2}, {1: 5, 2: 3, 3: 2}, YES),
        ({1: -9, 2: -2, 3: -5}, {1: 5, 2: 2, 3: 3}, PARTLY),
        ({1: -2, 2: -5, 3: -9}, {1: 2, 2: 3, 3: 5}, NO),
    ],
)
def test_offline_the_return_rises_to_its_maximum(returns: Any, slowdown: Any, word: str) -> None:
    made = evidence(OFF, setting="offline", curves={"off": curve(mean_return=returns, slowdown=slowdown)})
    found = verdict(learning.CLAIMS["DeepRM_Off"], "rises to its maximum", made, "off")
    assert found.agrees == word, found.found


@pytest.mark.parametrize(("mean", "word"), [(1.5, YES), (1.95, PARTLY), (5.5, NO)])
def test_offline_it_ends_below_the_others(mean: float, word: str) -> None:
    made = evidence(OFF, loads=[100], setting="offline", slowdown={"off": mean})
    assert verdict(learning.CLAIMS["DeepRM_Off"], "ends below", made, "off").agrees == word


# Job lengths


UNFAIR = {1: (9.0, 0), 3: (7.0, 0), 10: (2.0, 0), 15: (2.0, 0)}
FAIR = {1: (2.0, 0), 3: (2.0, 0), 10: (3.0, 2), 15: (4.0, 2)}
ALL_WAIT = {1: (9.0, 1), 3: (7.0, 1), 10: (2.0, 0), 15: (2.0, 0)}


@pytest.mark.parametrize(
    ("words", "lengths", "word"),
    [
        ("Under random", {"random": UNFAIR}, YES),
        ("Under random", {"random": FAIR}, NO),
        ("After training", {"random": UNFAIR, "deep": FAIR}, YES),
        ("After training", {"random": FAIR, "deep": UNFAIR}, NO),
        ("After training", {}, CANNOT),
        ("Short jobs tend", {"deep": {**FAIR, 2: (2.0, 0), 3: (2.0, 1)}}, YES),
        ("Short jobs tend", {"deep": FAIR}, PARTLY),
        ("Short jobs tend", {"deep": UNFAIR}, NO),
        ("Short jobs tend", {"deep": ALL_WAIT}, PARTLY),
        ("DeepRM2 is better", {"shallow": UNFAIR, "deep": {**FAIR, 10: (1.5, 0), 15: (1.5, 0)}}, YES),
        ("DeepRM2 is better", {"shallow": UNFAIR, "deep": FAIR}, PARTLY),
        ("DeepRM2 is better", {"shallow": {1: (1.5, 0), 3: (1.5, 0), 10: (1.5, 0), 15: (1.5, 0)}}, NO),
    ],
)
def test_claims_about_job_lengths(words: str, lengths: Any, word: str) -> None:
    found = verdict(durations.CLAIMS, words, evidence(by_length=lengths), 110, "deep")
    assert found.agrees == word, found.found


def test_jobs_of_one_kind_only_leave_claims_about_lengths_open() -> None:
    made = evidence()
    made = made._replace(jobs=made.jobs[made.jobs["duration"] < 4])
    assert {found.agrees for _, found in judged(durations.CLAIMS, made, 110, "deep")} == {CANNOT}


# Withheld jobs


@pytest.mark.parametrize(
    ("share", "word"), [(0.234, YES), (0.19, YES), (0.30, PARTLY), (0.12, PARTLY), (0.05, NO), (0.0, NO)]
)
def test_the_share_of_steps_not_work_conserving(share: float, word: str) -> None:
    made = evidence(withheld={"shallow": share} if share else {})
    found = verdict(withheld.CLAIMS, "23.4 %", made, 110, "shallow")
    assert found.agrees == word, found.found
    assert f"shallow at load 110: {100 * share:.1f} % of steps" in found.found
    assert "tetris 0.0 %" in found.found


@pytest.mark.parametrize(
    ("lengths", "word", "said"),
    [
        (
            FAIR,
            YES,
            "of 8 jobs that shallow withholds at load 110, 100.0 % are of 10 steps or more (of all 16 jobs 50.0 %)",
        ),
        (
            {**FAIR, 3: (2.0, 1)},
            PARTLY,
            "66.7 % are of 10 steps or more (of all 16 jobs 50.0 %), of the steps that it withholds them 80.0 %",
        ),
        (ALL_WAIT, NO, "of 8 jobs that shallow withholds at load 110, 0.0 %"),
        (UNFAIR, CANNOT, "shallow withholds no job at load 110"),
    ],
)
def test_almost_only_long_jobs_are_withheld(lengths: Any, word: str, said: str) -> None:
    found = verdict(withheld.CLAIMS, "almost only long", evidence(by_length={"shallow": lengths}), 110, "shallow")
    assert found.agrees == word
    assert said in found.found


@pytest.mark.parametrize(
    ("words", "lengths", "word"),
    [
        ("Short jobs", {"tetris": UNFAIR, "shallow": FAIR}, YES),
        ("Short jobs", {"tetris": FAIR, "shallow": UNFAIR}, NO),
        ("Short jobs", {}, CANNOT),
        ("Long jobs", {"tetris": UNFAIR, "shallow": FAIR}, YES),
        ("Long jobs", {"tetris": FAIR, "shallow": UNFAIR}, NO),
    ],
)
def test_who_gains_and_who_pays(words: str, lengths: Any, word: str) -> None:
    found = verdict(withheld.CLAIMS, words, evidence(by_length=lengths), 110, "shallow")
    assert found.agrees == word, found.found


def test_without_an_agent_for_slowdown_claims_about_jobs_are_open() -> None:
    made = evidence({"hasty": agent("mlp", "makespan")})
    for claims in (durations.CLAIMS[1:], withheld.CLAIMS):
        assert {found.agrees for _, found in judged(claims, made, 110, None)} == {CANNOT}
