"""What the papers claim, part by part, and what our results say to each part: sentences and one of four words."""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from pipeline.papers.rules import CANNOT, WIDEST, Rule, Told

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from pipeline.papers.evidence import Evidence, Gap

WHOLE = "the whole of it"  # the part of a claim that has only one
FEW = 3  # loads that are told one by one


class CannotTellError(Exception):
    """The results leave a claim open; says why."""


class Verdict(NamedTuple):
    """What our run shows, and whether a part of a claim holds in it."""

    found: str
    word: str
    agents: Sequence[str] = ()  # that it is about: how they were trained stands below what is found


Judge = Callable[["Evidence", str], Verdict]  # by the evidence, of an agent ("" where the claim names none)
Find = Callable[["Evidence", str], Sequence["Gap"]]


class Part(NamedTuple):
    """One thing that a claim says, judged apart from the others."""

    text: str
    no_if: str  # what refutes it
    judge: Judge


class Claim(NamedTuple):
    """One statement of a paper, in our words."""

    paper: str  # and its figure
    text: str
    parts: tuple[Part, ...]


class Shown(NamedTuple):
    """A figure of the papers from our results, and what it says to their claims."""

    figure: str  # stem of its file
    title: str
    drawing: "Figure | None"  # None: there is nothing to draw
    verdicts: list[tuple[Claim, Part, Verdict]]


class Source(str):
    """A paper and its figure, in which claims are made."""

    __slots__ = ()

    def claim(self, text: str, *parts: Part) -> Claim:
        """Return a claim with its parts."""
        return Claim(self, text, parts)


def judged(claims: Iterable[Claim], evidence: "Evidence", agent: str = "") -> list[tuple[Claim, Part, Verdict]]:
    """Judge all parts of claims by the same evidence; what cannot be told says why."""
    return [(claim, part, _judged(part, evidence, agent)) for claim in claims for part in claim.parts]


def _judged(part: Part, evidence: "Evidence", agent: str) -> Verdict:
    try:
        verdict = part.judge(evidence, agent)
    except CannotTellError as reason:
        return Verdict(str(reason), CANNOT)
    trained = "; ".join(f"{name}: {evidence.roles.protocol(name)}" for name in verdict.agents)
    return verdict._replace(found=f"{verdict.found}. Ours: {trained}") if trained else verdict


def left_open(claims: Iterable[Claim], why: str) -> list[tuple[Claim, Part, Verdict]]:
    """Return all parts of claims that nothing answers to."""
    return [(claim, part, Verdict(why, CANNOT)) for claim in claims for part in claim.parts]


def compared(text: str, rule: Rule, find: Find) -> Part:
    """Return a part that is judged by comparisons of policies."""

    def judge(evidence: "Evidence", agent: str) -> Verdict:
        gaps = find(evidence, agent)
        names = dict.fromkeys(name for gap in gaps for name in (gap.policy, gap.against))
        trained = [name for name in names if name in evidence.roles.agents]
        return Verdict(over_loads(gaps, evidence.confidence, rule.told), rule.word(gaps), trained)

    return Part(text, rule.no_if, judge)


def at_load(gap: "Gap", confidence: float) -> str:
    """Return a comparison at one load as a sentence; the difference is a share of the other's mean, and says so."""
    means = f"{gap.policy} {gap.mean:.2f}, {gap.against} {gap.mean_against:.2f}"
    return f"at load {gap.load} {means}: {_sure(gap, confidence)}"


def over_loads(gaps: Sequence["Gap"], confidence: float, told: Told = WIDEST) -> str:
    """Return a comparison as a sentence: load by load, or how often which side, and one load of many."""
    of = f"{gaps[0].of}: " if gaps[0].of else ""
    if len(gaps) <= FEW:
        return of + "; ".join(at_load(gap, confidence) for gap in gaps)
    one = max(gaps, key=told.most)
    under, over = (sum(gap.side == way for gap in gaps) for way in (-1, 1))
    policies = ", ".join(dict.fromkeys(gap.policy for gap in gaps))
    counted = f"{of}{policies} below {gaps[0].against} at {under} of {len(gaps)} loads, above at {over}"
    most = f"{told.word} at load {one.load}, {one.mean:.2f} to {one.mean_against:.2f}"
    return f"{counted}; {most}: {_sure(one, confidence)}"


def _sure(gap: "Gap", confidence: float) -> str:
    cut = f"; {gap.unfinished} jobs unfinished, so at least this slow" if gap.unfinished else ""
    far = f"{_side(gap.difference, ' %')} {gap.against}" if gap.difference else "equal"
    return f"{far} ({100 * confidence:g} % interval {span(gap.low, gap.high)}, n = {gap.n} jobsets{cut})"


def span(low: float, high: float) -> str:
    """Return an interval of relative differences in words.

    >>> span(-0.31, -0.25), span(-0.01, 0.0025)
    ('25.0 to 31.0', '1.0 below to 0.25 above')
    """
    if low < 0 < high:
        return f"{_side(low)} to {_side(high)}"
    return " to ".join(_number(end) for end in sorted((abs(low), abs(high))))


def _side(difference: float, unit: str = "") -> str:
    return f"{_number(abs(difference))}{unit} {'below' if difference < 0 else 'above'}"


def _number(share: float) -> str:
    return f"{100 * share:.1f}" if share >= 0.01 else f"{100 * share:.2f}"
