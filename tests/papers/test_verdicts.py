"""The words of a verdict, by hand."""

from dataclasses import replace

import pytest
from papers_evidence import agent, evidence

from pipeline.papers.evidence import versus
from pipeline.papers.rules import (
    ABOVE,
    BELOW,
    NO,
    NOT_ABOVE,
    NOT_BELOW,
    OFTEN_BELOW,
    PARTLY,
    UNDECIDED,
    YES,
    CannotTellError,
    Gap,
    Rule,
    at_least,
    at_most,
    below_by,
    together,
    within,
)
from pipeline.papers.verdicts import Finding, Part, claims_of, compared, judged, over_loads


def gap(low: float, high: float, load: int = 70, unfinished: int = 0) -> Gap:
    middle = (low + high) / 2
    return Gap("net", "sjf", load, 200, 4 * (1 + middle), 4.0, middle, low, high, unfinished)


AS_GOOD = within(0.05, "as a paper says")
TOLD = (NOT_ABOVE, NOT_BELOW, AS_GOOD)
UNDER, OVER, EITHER, EQUAL = gap(-0.3, -0.2), gap(0.1, 0.2), gap(-0.1, 0.1), gap(0.0, 0.0)


@pytest.mark.parametrize(
    ("gaps", "below", "not_above", "often", "equal"),
    [
        ([UNDER, UNDER], YES, YES, YES, NO),
        ([UNDER, EITHER], PARTLY, PARTLY, UNDECIDED, NO),
        ([UNDER, UNDER, EQUAL], PARTLY, YES, YES, NO),
        ([UNDER, UNDER, OVER], NO, NO, YES, NO),
        ([UNDER, OVER], NO, NO, NO, NO),
        ([OVER, EITHER], NO, NO, NO, NO),
        ([EITHER, EQUAL], UNDECIDED, PARTLY, UNDECIDED, PARTLY),
        ([UNDER], YES, YES, YES, NO),
        ([OVER], NO, NO, NO, NO),
        ([EITHER], UNDECIDED, UNDECIDED, UNDECIDED, UNDECIDED),
    ],
)
def test_a_comparison_over_loads_is_judged_by_whole_intervals_and_one_load_refutes(
    gaps: list[Gap], below: str, not_above: str, often: str, equal: str
) -> None:
    rules = (BELOW, NOT_ABOVE, OFTEN_BELOW, AS_GOOD)
    assert [rule.decide(gaps) for rule in rules] == [below, not_above, often, equal]
    turned = [one._replace(difference=-one.difference, low=-one.high, high=-one.low) for one in gaps]
    assert [rule.decide(turned) for rule in (ABOVE, NOT_BELOW)] == [below, not_above]


@pytest.mark.parametrize(
    ("rule", "span", "word"),
    [
        (at_least(0.075), (-0.12, -0.08), YES),
        (at_least(0.075), (-0.06, -0.02), NO),
        (at_least(0.075), (-0.1, -0.05), UNDECIDED),
        (at_least(0.075), (0.1, 0.2), NO),
        (at_most(0.135), (-0.12, -0.08), YES),
        (at_most(0.135), (-0.2, -0.15), NO),
        (at_most(0.135), (-0.2, -0.1), UNDECIDED),
        (below_by(0.002), (-0.003, -0.001), YES),
        (below_by(0.002), (-0.004, -0.003), NO),
        (below_by(0.002), (-0.001, 0.1), NO),
        (below_by(0.002), (-0.003, 0.001), UNDECIDED),
        (AS_GOOD, (0.0001, 0.0021), YES),  # sure to differ, and by next to nothing
        (AS_GOOD, (-0.049, 0.049), YES),
        (AS_GOOD, (-0.246, 0.02), UNDECIDED),  # what may be anything is not shown to be equal
        (AS_GOOD, (0.012, 0.054), UNDECIDED),
        (AS_GOOD, (0.052, 0.11), NO),
        (AS_GOOD, (-0.11, -0.052), NO),
        (NOT_ABOVE, (0.0001, 0.0021), NO),
        (NOT_ABOVE, (-0.3, 0.0), YES),
        (NOT_ABOVE, (-0.3, 0.04), UNDECIDED),
        (NOT_BELOW, (0.0, 0.3), YES),
        (NOT_BELOW, (-0.04, 0.3), UNDECIDED),
        (NOT_BELOW, (-0.2, -0.06), NO),
    ],
)
def test_how_far_below_is_judged_by_the_whole_interval(rule: Rule, span: tuple[float, float], word: str) -> None:
    assert rule.decide([gap(*span)]) == word
    assert rule.decide([gap(*span)._replace(few=True)]) == UNDECIDED  # for such an interval was stretched to 0


@pytest.mark.parametrize(
    ("words", "word"),
    [
        ([YES, YES], YES),
        ([YES, NO], NO),
        ([PARTLY, NO], NO),
        ([NO, UNDECIDED], NO),
        ([YES, PARTLY], PARTLY),
        ([YES, UNDECIDED], PARTLY),
        ([UNDECIDED, UNDECIDED], UNDECIDED),
    ],
)
def test_what_has_a_refuted_part_is_refuted(words: list[str], word: str) -> None:
    assert together(words) == word


def test_a_gap_is_told_with_both_means_its_base_its_interval_and_n() -> None:
    assert over_loads([gap(-0.3, -0.2)], 0.95) == (
        "at load 70 net 3.00, sjf 4.00: 25.0 % below sjf (95 % interval 20.0 to 30.0, n = 200 jobsets)"
    )
    assert over_loads([gap(-0.1, 0.3, unfinished=7)], 0.9) == (
        "at load 70 net 4.40, sjf 4.00: 10.0 % above sjf "
        "(90 % interval 10.0 below to 30.0 above, n = 200 jobsets; 7 jobs unfinished, so at least this slow)"
    )
    assert "equal (95 % interval 0.00 to 0.00" in over_loads([EQUAL], 0.95)


def test_many_loads_are_counted_and_the_widest_is_told_and_few_are_told_one_by_one() -> None:
    gaps = [gap(-0.3, -0.2, 70), gap(-0.6, -0.4, 110), gap(0.1, 0.2, 130), gap(-0.1, 0.1, 150)]
    assert over_loads(gaps, 0.95) == (
        "net below sjf at 2 of 4 loads, above at 1; widest at load 110, 2.00 against 4.00: "
        "50.0 % below sjf (95 % interval 40.0 to 60.0, n = 200 jobsets)"
    )
    assert over_loads(gaps[:2], 0.95) == f"{over_loads([gaps[0]], 0.95)}; {over_loads([gaps[1]], 0.95)}"
    assert over_loads([UNDER._replace(of="short jobs")], 0.95) == f"short jobs: {over_loads([UNDER], 0.95)}"


def test_of_many_loads_the_one_that_decides_is_told() -> None:
    gaps = [gap(-0.3, -0.2, 70), gap(-0.054, 0.08, 90), gap(-0.4, -0.3, 110), gap(-0.1, 0.02, 130)]
    told = [over_loads(gaps, 0.95, rule).split("; ")[1] for rule in TOLD]
    assert [text.split(",")[0] for text in told] == ["highest at load 90", "lowest at load 110", "farthest at load 110"]


def test_of_few_jobsets_nothing_is_told() -> None:
    made = evidence({"net": agent()}, loads=[70], slowdown={"net": 2.0, "sjf": 2.0})
    for confidence, word in ((0.9999, UNDECIDED), (0.95, YES)):  # twelve jobsets: one side by luck once in 2,048 times
        (found,) = versus("net", "sjf")(replace(made, confidence=confidence), "")
        assert [rule.decide([found]) for rule in TOLD] == [word] * 3


def test_a_part_that_is_open_says_why() -> None:
    def judge(made: object, name: str) -> Finding:
        raise CannotTellError(f"no {name}")

    (rises,) = claims_of("DeepRM, Figure 4", {"It rises": [Part("whole", "it falls", judge)]})
    assert judged([rises], evidence(), "agent") == [(rises, rises.parts[0], Finding("no agent", UNDECIDED))]


def test_parts_of_a_claim_are_judged_apart_and_tell_how_their_agents_were_trained() -> None:
    parts = [compared(f"below {name}", BELOW, versus("net", name)) for name in ("sjf", "packer")]
    made = evidence({"net": agent()}, loads=[70], slowdown={"net": 3.0})
    below_sjf, below_packer = (verdict for *_, verdict in judged(claims_of("paper", {"lowest": parts}), made))
    assert (below_sjf.word, below_packer.word) == (NO, YES)
    assert below_sjf.found.startswith("at load 70 net 3.70, sjf 2.70: 37.0 % above sjf (90 % interval ")
    assert below_sjf.found.endswith(". Ours: net: recipe ours, 400 updates on loads 110 to 130 together")
