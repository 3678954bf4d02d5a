"""Claims of the papers, part by part, and what our results say about each part."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from matplotlib.figure import Figure

from pipeline.papers.evidence import Evidence
from pipeline.papers.rules import BELOW, UNDECIDED, CannotTellError, Gap, Rule

WHOLE = "the whole of it"  # the part of a claim that has only one
FEW = 3  # loads that are reported one by one


class Finding(NamedTuple):
    """Our result for one part of a claim, and its verdict."""

    found: str
    word: str
    agents: Sequence[str] = ()  # whose training is described after the result


Judge = Callable[[Evidence, str], Finding]  # from the evidence and an agent ("" if the claim names none)
Find = Callable[[Evidence, str], Sequence[Gap]]


class Part(NamedTuple):
    """One statement of a claim, judged separately."""

    text: str
    no_if: str  # what refutes it
    judge: Judge


class Claim(NamedTuple):
    """One claim of a paper, in our words."""

    paper: str  # and its figure
    text: str
    parts: Sequence[Part]


class Shown(NamedTuple):
    """A figure of the papers from our results, and the verdicts on its claims."""

    figure: str  # stem of its file
    title: str
    drawing: Figure | None
    verdicts: list[tuple[Claim, Part, Finding]]


def claims_of(paper: str, parts: Mapping[str, Sequence[Part]]) -> list[Claim]:
    """Return claims; `paper` names paper and figure, and `parts` has each claim's parts, by its text."""
    return [Claim(paper, text, some) for text, some in parts.items()]


def judged(claims: Iterable[Claim], evidence: Evidence, agent: str = "") -> list[tuple[Claim, Part, Finding]]:
    """Judge all parts of claims from the same evidence; an undecided part states the reason."""
    return [(claim, part, _judged(part, evidence, agent)) for claim in claims for part in claim.parts]


def _judged(part: Part, evidence: Evidence, agent: str) -> Finding:
    try:
        finding = part.judge(evidence, agent)
    except CannotTellError as reason:
        return Finding(str(reason), UNDECIDED)
    trained = "; ".join(f"{name}: {evidence.roles.protocol(name)}" for name in finding.agents)
    return finding._replace(found=f"{finding.found}. Ours: {trained}") if trained else finding


def left_open(claims: Iterable[Claim], why: str) -> list[tuple[Claim, Part, Finding]]:
    """Return all parts of claims for which there are no results."""
    return [(claim, part, Finding(why, UNDECIDED)) for claim in claims for part in claim.parts]


def compared(text: str, rule: Rule, find: Find) -> Part:
    """Return a part that is judged by comparisons of policies."""

    def judge(evidence: Evidence, agent: str) -> Finding:
        gaps = find(evidence, agent)
        names = dict.fromkeys(name for gap in gaps for name in (gap.policy, gap.against))
        trained = [name for name in names if name in evidence.roles.agents]
        return Finding(over_loads(gaps, evidence.confidence, rule), rule.decide(gaps), trained)

    return Part(text, rule.no_if, judge)


def over_loads(gaps: Sequence[Gap], confidence: float, rule: Rule = BELOW) -> str:
    """Return a comparison as a sentence: load by load or, of many loads, the counts of each side and one load."""
    of = f"{gaps[0].of}: " if gaps[0].of else ""
    if len(gaps) <= FEW:
        each = (
            f"at load {gap.load} {gap.policy} {gap.mean:.2f}, {gap.against} {gap.mean_against:.2f}: "
            f"{_distance(gap, confidence)}"
            for gap in gaps
        )
        return of + "; ".join(each)
    extreme, size = rule.extreme
    one = max(gaps, key=size)
    under, over = (sum(gap.side == way for gap in gaps) for way in (-1, 1))
    policies = ", ".join(dict.fromkeys(gap.policy for gap in gaps))
    counted = f"{of}{policies} below {gaps[0].against} at {under} of {len(gaps)} loads, above at {over}"
    most = f"{extreme} at load {one.load}, {one.mean:.2f} against {one.mean_against:.2f}"
    return f"{counted}; {most}: {_distance(one, confidence)}"


def _distance(gap: Gap, confidence: float) -> str:
    """Return the difference as a share of the other's mean, with its interval."""
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
