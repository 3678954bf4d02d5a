"""What is read off learning curves: intervals over updates, and when an agent has converged."""

from math import inf

import numpy as np
import pytest
from papers_cases import SMALL
from papers_evidence import agent, curve, evidence, falling

from pipeline.papers.curves import PARTS, Convergence, convergence, difference_interval, sooner, tenths
from pipeline.papers.evidence import Evidence
from pipeline.papers.learning import CLAIMS
from pipeline.papers.rules import NO, UNDECIDED, YES, CannotTellError
from pipeline.papers.verdicts import judged


def test_means_of_draws_are_apart_by_welchs_error() -> None:
    low, high = difference_interval(np.array([1.0, 3.0]), np.array([0.0, 0.0]), 0.95)
    assert (low, high) == pytest.approx((2 - 1.959964, 2 + 1.959964))


@pytest.mark.parametrize(
    ("until", "after", "by"),
    [(10, 10, 20), (40, 40, 50), (45, 50, 60), (100, 90, inf)],
)
def test_an_agent_has_converged_in_the_first_tenth_that_is_not_clearly_above_the_last(
    until: int, after: int, by: float
) -> None:
    made = evidence({"net": agent(**SMALL)}, curves={"net": curve(slowdown=falling(until, 100))})
    assert convergence(made, "net") == Convergence("net", after, by, 100, 20)


def test_an_agent_that_learned_nothing_has_not_converged() -> None:
    made = evidence({"net": agent(**SMALL)}, curves={"net": curve(slowdown={k: 2 + (-1) ** k for k in range(1, 101)})})
    with pytest.raises(CannotTellError, match="the cost of net did not fall clearly while it learned"):
        convergence(made, "net")


def test_a_curve_of_less_than_two_updates_a_tenth_has_no_interval() -> None:
    with pytest.raises(CannotTellError, match="the curve of net has 19 updates with slowdown, 20 needed"):
        tenths(curve(slowdown=falling(5, 19)), "slowdown", "net")
    assert [len(part) for part in tenths(curve(slowdown=falling(5, 20)), "slowdown", "net")] == [2] * PARTS


@pytest.mark.parametrize(
    ("one", "other", "word"),
    [
        ((0, 10), (10, 20), YES),
        ((10, 20), (0, 10), NO),
        ((0, 10), (5, 15), UNDECIDED),
        ((0, 10), (90, inf), YES),  # the other was still falling at its end
        ((90, inf), (0, 10), NO),
        ((90, inf), (95, inf), UNDECIDED),
    ],
)
def test_the_sooner_of_two_is_told_where_their_tenths_do_not_overlap(
    one: tuple[int, float], other: tuple[int, float], word: str
) -> None:
    first, second = Convergence("one", *one, 100, 1), Convergence("other", *other, 100, 1)
    assert sooner(first, second, by_episodes=False).word == word


def raced(deep: int, episodes: int) -> Evidence:
    """DeepRM converges after 60 updates of 20 episodes, DeepRM2 after others."""
    agents = {"shallow": agent(**SMALL), "deep": agent("cnn", jobsets=5, episodes=episodes)}
    return evidence(
        agents, curves={"shallow": curve(slowdown=falling(60, 100)), "deep": curve(slowdown=falling(deep, 100))}
    )


def test_fewer_updates_of_more_episodes_are_sooner_by_updates_alone() -> None:
    claim = next(claim for claim in CLAIMS["DeepRM2"] if "fewer epochs" in claim.text)
    by_updates, by_episodes = (verdict for *_, verdict in judged([claim], raced(deep=20, episodes=40), "deep"))
    assert (by_updates.word, by_episodes.word) == (YES, NO)
    assert "deep in updates 21 to 30 of 100 (of 200 episodes each), shallow in updates 61 to 70" in by_updates.found


def test_better_than_tetris_after_200_updates_of_few_episodes_is_open_by_episodes_unless_it_is_below() -> None:
    claim = next(claim for claim in CLAIMS["DeepRM"] if "After 200" in claim.text)

    def words(value: float) -> list[str]:
        made = evidence({"shallow": agent(**SMALL)}, curves={"shallow": curve(validation={0: 9.0, 200: value})})
        return [verdict.word for *_, verdict in judged([claim], made, "shallow")]

    assert words(8.0) == [NO, UNDECIDED]  # 4,000 episodes of the paper's 400,000
    assert words(3.0) == [YES, YES]
