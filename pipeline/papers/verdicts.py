"""What the papers claim, and what our results say to it: sentences and one of four words."""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from pipeline.papers.evidence import Gap

YES, NO, PARTLY, CANNOT = "yes", "no", "partly", "cannot be told"
NEARLY = 0.05  # a share: policies that differ by less are nearly equal


class CannotTellError(Exception):
    """The results leave a claim open; says why."""


class Verdict(NamedTuple):
    """What our run shows, and whether the claim holds in it."""

    found: str
    agrees: str


class Claim(NamedTuple):
    """One statement of a paper, in our words."""

    paper: str  # and its figure
    text: str
    judge: Callable[..., Verdict]


class Shown(NamedTuple):
    """A figure of the papers from our results, and what it says to their claims."""

    figure: str  # stem of its file
    title: str
    drawing: "Figure | None"  # None: there is nothing to draw
    verdicts: list[tuple[Claim, Verdict]]


def judged(claims: Iterable[Claim], *given: object) -> list[tuple[Claim, Verdict]]:
    """Judge claims by the same evidence; what cannot be told says why."""
    return [(claim, _judged(claim, given)) for claim in claims]


def _judged(claim: Claim, given: Sequence[object]) -> Verdict:
    try:
        return claim.judge(*given)
    except CannotTellError as reason:
        return Verdict(str(reason), CANNOT)


def every(gaps: Sequence["Gap"]) -> str:
    """Return whether a policy is below another at every load: the whole interval must be."""
    if not any(gap.side for gap in gaps):
        return CANNOT
    below = sum(gap.side < 0 for gap in gaps)
    return {len(gaps): YES, 0: NO}.get(below, PARTLY)


def often(gaps: Sequence["Gap"], slack: float = 0.0) -> str:
    """Return whether a policy is below another somewhere, and nowhere above it by more than `slack` (a share)."""
    below, above = any(gap.side < 0 for gap in gaps), any(gap.low > slack for gap in gaps)
    if not below and not above:
        return CANNOT
    return decided(below and not above, below)


def nearly(gaps: Sequence["Gap"]) -> str:
    """Return whether policies are nearly equal everywhere: the whole interval must be within the bound."""
    within = sum(gap.low > -NEARLY and gap.high < NEARLY for gap in gaps)
    beyond = sum(gap.low > NEARLY or gap.high < -NEARLY for gap in gaps)
    if not within and not beyond:
        return CANNOT
    return {len(gaps): YES, 0: NO}.get(within, PARTLY)


def below_by(gaps: Sequence["Gap"], share: float) -> str:
    """Return whether a policy is below another by at least a share everywhere: the whole interval must be."""
    return every([gap._replace(low=gap.low + share, high=gap.high + share) for gap in gaps])


def below_by_at_most(gaps: Sequence["Gap"], share: float) -> str:
    """Return whether a policy is nowhere below another by more than a share: the whole interval must be nearer."""
    return every([gap._replace(low=-gap.high - share, high=-gap.low - share) for gap in gaps])


def together(words: Iterable[str]) -> str:
    """Return whether a claim of several parts holds.

    >>> together(["yes", "cannot be told"]), together(["no", "cannot be told"]), together(["yes", "no"])
    ('partly', 'no', 'partly')
    """
    found = set(words)
    if len(found) == 1:
        return found.pop()
    return NO if found == {NO, CANNOT} else PARTLY


def decided(holds: bool, in_part: bool = False) -> str:
    """Return the word for a claim that holds, or in part, or not."""
    return YES if holds else PARTLY if in_part else NO


def at_load(gap: "Gap", confidence: float) -> str:
    """Return a comparison at one load as a sentence."""
    means = f"{gap.policy} {gap.mean:.2f}, {gap.against} {gap.mean_against:.2f}"
    return f"at load {gap.load} {means}: {_sure(gap, confidence)}"


def over_loads(gaps: Sequence["Gap"], confidence: float) -> str:
    """Return a comparison at several loads as a sentence: how often which side, and the load that differs most."""
    widest = max(gaps, key=lambda gap: abs(gap.difference))
    if len(gaps) == 1:
        return at_load(widest, confidence)
    below, above = (sum(gap.side == way for gap in gaps) for way in (-1, 1))
    counted = f"{gaps[0].policy} below {gaps[0].against} at {below} of {len(gaps)} loads, above at {above}"
    most = f"widest at load {widest.load}, {widest.mean:.2f} to {widest.mean_against:.2f}"
    return f"{counted}; {most}: {_sure(widest, confidence)}"


def _sure(gap: "Gap", confidence: float) -> str:
    cut = f"; {gap.unfinished} jobs unfinished, so at least this slow" if gap.unfinished else ""
    return (
        f"{side(gap.difference)} ({100 * confidence:g} % interval {span(gap.low, gap.high)}, n = {gap.n} jobsets{cut})"
    )


def side(difference: float) -> str:
    """Return a relative difference in words.

    >>> side(-0.271)
    '27.1 % below'
    """
    return _side(difference, " %") if difference else "equal"


def span(low: float, high: float) -> str:
    """Return an interval of relative differences in words.

    >>> span(-0.31, -0.25), span(-0.01, 0.02)
    ('25.0 to 31.0', '1.0 below to 2.0 above')
    """
    if low < 0 < high:
        return f"{_side(low)} to {_side(high)}"
    return " to ".join(f"{100 * end:.1f}" for end in sorted((abs(low), abs(high))))


def _side(difference: float, unit: str = "") -> str:
    return f"{100 * abs(difference):.1f}{unit} {'below' if difference < 0 else 'above'}"
