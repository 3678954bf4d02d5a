"""The words of a verdict, by hand."""

import pytest

from pipeline.papers.evidence import Gap
from pipeline.papers.verdicts import (
    CANNOT,
    NO,
    PARTLY,
    YES,
    CannotTellError,
    Claim,
    Verdict,
    at_load,
    every,
    judged,
    often,
    over_loads,
    side,
    together,
)


def gap(low: float, high: float, load: int = 70, unfinished: int = 0) -> Gap:
    middle = (low + high) / 2
    return Gap("net", "sjf", load, 200, 4 * (1 + middle), 4.0, middle, low, high, unfinished)


BELOW, ABOVE, EITHER, EQUAL = gap(-0.3, -0.2), gap(0.1, 0.2), gap(-0.1, 0.1), gap(0.0, 0.0)


@pytest.mark.parametrize(
    ("gaps", "at_every_load", "often_below"),
    [
        ([BELOW, BELOW], YES, YES),
        ([BELOW, EITHER], PARTLY, YES),
        ([BELOW, EQUAL], PARTLY, YES),
        ([BELOW, ABOVE], PARTLY, PARTLY),
        ([ABOVE, EITHER], NO, NO),
        ([EITHER, EQUAL], CANNOT, CANNOT),
        ([BELOW], YES, YES),
        ([ABOVE], NO, NO),
        ([EITHER], CANNOT, CANNOT),
    ],
)
def test_a_comparison_over_loads_is_judged_by_whole_intervals(
    gaps: list[Gap], at_every_load: str, often_below: str
) -> None:
    assert every(gaps) == at_every_load
    assert often(gaps) == often_below


def test_a_comparable_policy_may_be_a_little_above() -> None:
    assert often([BELOW, ABOVE], slack=0.1) == YES  # above by 10 to 20 %
    assert often([BELOW, ABOVE], slack=0.05) == PARTLY
    assert often([ABOVE, EITHER], slack=0.1) == CANNOT


@pytest.mark.parametrize(
    ("words", "word"),
    [
        ([YES, YES], YES),
        ([NO, NO], NO),
        ([YES, NO], PARTLY),
        ([YES, PARTLY], PARTLY),
        ([YES, CANNOT], PARTLY),
        ([NO, CANNOT], NO),
        ([CANNOT, CANNOT], CANNOT),
    ],
)
def test_a_claim_of_two_parts_holds_if_both_do(words: list[str], word: str) -> None:
    assert together(words) == word


def test_a_gap_is_told_with_both_means_its_interval_and_n() -> None:
    assert at_load(gap(-0.3, -0.2), 0.95) == (
        "at load 70 net 3.00, sjf 4.00: 25.0 % below (95 % interval 20.0 to 30.0, n = 200 jobsets)"
    )
    assert at_load(gap(-0.1, 0.3, unfinished=7), 0.9) == (
        "at load 70 net 4.40, sjf 4.00: 10.0 % above "
        "(90 % interval 10.0 below to 30.0 above, n = 200 jobsets; 7 jobs unfinished, so at least this slow)"
    )


def test_many_loads_are_counted_and_the_widest_is_told() -> None:
    gaps = [gap(-0.3, -0.2, 70), gap(-0.6, -0.4, 110), gap(0.1, 0.2, 130), gap(-0.1, 0.1, 150)]
    assert over_loads(gaps, 0.95) == (
        "net below sjf at 2 of 4 loads, above at 1; widest at load 110, 2.00 to 4.00: "
        "50.0 % below (95 % interval 40.0 to 60.0, n = 200 jobsets)"
    )
    assert over_loads(gaps[:1], 0.95) == at_load(gaps[0], 0.95)


def test_equal_means_are_equal() -> None:
    assert side(0.0) == "equal"


def test_a_claim_that_is_open_says_why() -> None:
    def judge(name: str) -> Verdict:
        raise CannotTellError(f"no {name}")

    claim = Claim("DeepRM, Figure 4", "It rises", judge)
    assert judged([claim], "agent") == [(claim, Verdict("no agent", CANNOT))]
