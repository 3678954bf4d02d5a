"""How parts of claims are judged: by whole intervals, at one load or at several.

A whole interval on the other side refutes a part ("no"), at one load if the claim is about several. "Partly" is what
holds at some loads, cannot be told at others, and is refuted at none.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pipeline.papers.evidence import Gap

YES, NO, PARTLY, CANNOT = "yes", "no", "partly", "cannot be told"


class Told(NamedTuple):
    """Which load is told where there are many."""

    word: str
    most: Callable[["Gap"], float]  # of the load that has most of it


WIDEST = Told("widest", lambda gap: abs(gap.difference))


class Rule(NamedTuple):
    """How a comparison at one or several loads is judged."""

    word: Callable[[Sequence["Gap"]], str]
    no_if: str
    told: Told = WIDEST


def together(words: Iterable[str]) -> str:
    """Return the word for what holds only where all of it does: a refuted part refutes it.

    >>> together(["yes", "no"]), together(["yes", "cannot be told"]), together(["no", "cannot be told"])
    ('no', 'partly', 'no')
    """
    found = set(words)
    if NO in found:
        return NO
    return found.pop() if len(found) == 1 else PARTLY


def below(low: float, high: float) -> str:
    """Return whether an interval is below 0: all of it must be, and what is all above refutes it.

    >>> below(-2, -1), below(1, 2), below(-1, 1)
    ('yes', 'no', 'cannot be told')
    """
    return YES if high < 0 else NO if low > 0 else CANNOT


def above(low: float, high: float) -> str:
    """Return whether an interval is above 0."""
    return below(-high, -low)


def _each(judge: Callable[[float, float], str]) -> Callable[[Sequence["Gap"]], str]:
    """Return the rule for what must hold at every load; by few jobsets it can be told at none."""
    return lambda gaps: together(CANNOT if gap.few else judge(gap.low, gap.high) for gap in gaps)


def _often(gaps: Sequence["Gap"]) -> str:
    under, over = sum(gap.high < 0 for gap in gaps), sum(gap.low > 0 for gap in gaps)
    return YES if 2 * under > len(gaps) else NO if 2 * over >= len(gaps) else CANNOT


def _not_above(low: float, high: float) -> str:
    return NO if low > 0 else YES if high <= 0 else CANNOT


BELOW = Rule(_each(below), "it is above, by the whole interval, at a load")
ABOVE = Rule(_each(above), "it is below, by the whole interval, at a load")
NOT_ABOVE = Rule(
    _each(_not_above),
    "it is above, by the whole interval, at a load (yes: at no load does the interval reach above 0)",
    Told("highest", lambda gap: gap.high),
)
NOT_BELOW = Rule(
    _each(lambda low, high: _not_above(-high, -low)),
    "it is below, by the whole interval, at a load (yes: at no load does the interval reach below 0)",
    Told("lowest", lambda gap: -gap.low),
)
OFTEN_BELOW = Rule(_often, "it is above, by the whole interval, at half of the loads (yes: below at more than half)")


def within(share: float, source: str) -> Rule:
    """Return the rule for a policy that is as good as another, by a share of its mean that the paper's text gives."""

    def word(low: float, high: float) -> str:
        return YES if max(-low, high) < share else NO if max(low, -high) > share else CANNOT

    no_if = f"the whole interval is farther than {100 * share:g} %, {source}, at a load (yes: all of it is nearer)"
    return Rule(_each(word), no_if, Told("farthest", lambda gap: max(-gap.low, gap.high)))


def at_least(share: float) -> Rule:
    """Return the rule for a policy that is below another by a share of its mean, or by more."""
    rule = f"the whole interval is nearer than {100 * share:g} % below, or above, at a load"
    return Rule(_each(lambda low, high: below(low + share, high + share)), rule)


def at_most(share: float) -> Rule:
    """Return the rule for a policy that is below another by a share of its mean, or by less."""
    nearer = f"the whole interval is farther than {100 * share:g} % below at a load"
    return Rule(_each(lambda low, high: above(low + share, high + share)), nearer)


def below_by(share: float) -> Rule:
    """Return the rule for a policy that is below another by just that share of its mean."""

    def word(low: float, high: float) -> str:
        if not low <= -share <= high:
            return NO
        return YES if high < 0 else CANNOT

    left = f"the interval leaves out {100 * share:g} % below at a load (yes: it holds that and not 0)"
    return Rule(_each(word), left)
