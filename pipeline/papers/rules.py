"""Rules by which our results decide a part of a claim: by whole intervals, at one load or at several.

An interval wholly on the other side refutes a part ("no"); of several loads, one suffices. A part that holds at some
loads, is undecided at others, and is refuted at none is "partly" true. In messages, "clearly" means by whole intervals.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

YES, NO, PARTLY, UNDECIDED = "yes", "no", "partly", "undecided"


class CannotTellError(Exception):
    """The reason why the results leave a claim open."""


class Gap(NamedTuple):
    """Relative difference of a policy's mean from another's on the same jobsets."""

    policy: str
    against: str
    load: int
    n: int  # jobsets
    mean: float
    mean_against: float
    difference: float
    low: float
    high: float
    unfinished: int  # jobs of both
    of: str = ""  # which jobs, if not all
    few: bool = False  # too few jobsets: all could lie on one side by luck

    @property
    def side(self) -> int:
        """Return -1 or 1 where the whole interval is below or above, else 0."""
        return int(self.low > 0) - int(self.high < 0)


class Rule(NamedTuple):
    """A rule that decides by comparisons at one or several loads."""

    decide: Callable[[Sequence[Gap]], str]
    no_if: str
    # Of many loads, the one at which this is largest is reported.
    extreme: tuple[str, Callable[[Gap], float]] = ("widest", lambda gap: abs(gap.difference))


def together(words: Iterable[str]) -> str:
    """Return the verdict on something that holds only if all of its parts do.

    >>> together(["yes", "no"]), together(["yes", "undecided"]), together(["no", "undecided"])
    ('no', 'partly', 'no')
    """
    found = set(words)
    if NO in found:
        return NO
    return found.pop() if len(found) == 1 else PARTLY


def below(low: float, high: float) -> str:
    """Return whether an interval is below 0: all of it must be, and an interval above 0 refutes it.

    >>> below(-2, -1), below(1, 2), below(-1, 1)
    ('yes', 'no', 'undecided')
    """
    return YES if high < 0 else NO if low > 0 else UNDECIDED


def above(low: float, high: float) -> str:
    """Return whether an interval is above 0."""
    return below(-high, -low)


def _at_each(judge: Callable[[float, float], str]) -> Callable[[Sequence[Gap]], str]:
    """Return the decision on something that must hold at every load; few jobsets decide nothing."""
    return lambda gaps: together(UNDECIDED if gap.few else judge(gap.low, gap.high) for gap in gaps)


def _often(gaps: Sequence[Gap]) -> str:
    under, over = sum(gap.high < 0 for gap in gaps), sum(gap.low > 0 for gap in gaps)
    return YES if 2 * under > len(gaps) else NO if 2 * over >= len(gaps) else UNDECIDED


def _not_above(low: float, high: float) -> str:
    return NO if low > 0 else YES if high <= 0 else UNDECIDED


BELOW = Rule(_at_each(below), "it is clearly above at a load")
ABOVE = Rule(_at_each(above), "it is clearly below at a load")
NOT_ABOVE = Rule(
    _at_each(_not_above),
    "it is clearly above at a load (yes: at no load does the interval reach above 0)",
    ("highest", lambda gap: gap.high),
)
NOT_BELOW = Rule(
    _at_each(lambda low, high: _not_above(-high, -low)),
    "it is clearly below at a load (yes: at no load does the interval reach below 0)",
    ("lowest", lambda gap: -gap.low),
)
OFTEN_BELOW = Rule(_often, "it is clearly above at half of the loads (yes: clearly below at more than half)")


def within(share: float, source: str) -> Rule:
    """Return the rule for a policy that is as good as another, up to a share of its mean given in the paper."""

    def word(low: float, high: float) -> str:
        return YES if max(-low, high) < share else NO if max(low, -high) > share else UNDECIDED

    no_if = f"the whole interval is farther than {100 * share:g} %, {source}, at a load (yes: all of it is nearer)"
    return Rule(_at_each(word), no_if, ("farthest", lambda gap: max(-gap.low, gap.high)))


def at_least(share: float) -> Rule:
    """Return the rule for a policy that is below another by a share of its mean, or by more."""
    no_if = f"the whole interval is nearer than {100 * share:g} % below, or above, at a load"
    return Rule(_at_each(lambda low, high: below(low + share, high + share)), no_if)


def at_most(share: float) -> Rule:
    """Return the rule for a policy that is below another by a share of its mean, or by less."""
    no_if = f"the whole interval is farther than {100 * share:g} % below at a load"
    return Rule(_at_each(lambda low, high: above(low + share, high + share)), no_if)


def below_by(share: float) -> Rule:
    """Return the rule for a policy that is below another by exactly `share` of the other's mean."""

    def word(low: float, high: float) -> str:
        return NO if not low <= -share <= high else YES if high < 0 else UNDECIDED

    no_if = f"the interval leaves out {100 * share:g} % below at a load (yes: it holds that and not 0)"
    return Rule(_at_each(word), no_if)
