"""The page of advice: one answer for each site, its evidence, the losers, and what would change it."""

from collections.abc import Sequence

from pipeline.comparing.advice import LEAST_BLOCKS, OWN_LOAD, Advice, Change
from pipeline.comparing.resampling import FEW
from pipeline.comparing.words import percent, span
from pipeline.report.templating import template

FIGURES = (
    ("mean bounded slowdown", "mean", 2),
    ("99th percentile of bounded slowdown", "p99", 1),
    ("mean wait, s", "wait", 0),
    ("99th percentile of wait, s", "p99_wait", 0),
)
MOST_LOSERS = 8
NO_LIMITS = (
    "the log has no run-time limits (estimates): the replay gives every policy, also the one that the site runs today, "
    "exact run times, which no scheduler has"
)
SCHEDULE = "python -m pipeline schedule LOG --out plan.csv"


def page(found: Sequence[Advice], confidence: float) -> str:
    """Return the page."""
    sites = [
        {
            "it": one,
            "sentence": sentence(one),
            "figures": [(what, *_cells(getattr(one, name), digits)) for what, name, digits in FIGURES],
            "spread": "range over blocks" if one.blocks < FEW else f"{100 * confidence:g} % interval",
            "losers": one.losers[:MOST_LOSERS],
            "more": len(one.losers) - MOST_LOSERS,
            "changes": changes(one),
            "command": f"{SCHEDULE} --scenario {one.scenario} --policy {policy}",
            "know": one.policy.partition("+")[2] or one.needs,
            "warning": "" if one.limits else NO_LIMITS,
        }
        for one in found
        # `schedule` takes the knowledge of run times from the scenario's row.
        for policy in [f"models/{one.policy}/policy" if one.learned else one.policy.partition("+")[0]]
    ]
    return template("advice.html").render(sites=sites, percent=percent)


def sentence(found: Advice) -> str:
    """Return the advice in a sentence: no change if blocks are too few or the interval is not wholly below 0."""
    if found.blocks < LEAST_BLOCKS:
        return f"cannot tell: {found.blocks} blocks of three days in the test period, {LEAST_BLOCKS} are the least"
    change = f"{percent(found.mean.change)} ({span(found.mean.low, found.mean.high)}) in mean bounded slowdown"
    if found.clear:
        learned = ", a learned policy" if found.learned else ""
        against = f"against {found.today}, which the site runs today"
        return f"use {found.policy}{learned}: {change} {against}, n = {found.blocks} blocks of three days"
    if found.candidate == found.today:
        return f"stay with {found.today}: validation found no heuristic that is better"
    more = "" if found.more_days is None else f"; about {found.more_days} more days of log would tell"
    n = f"n = {found.blocks} blocks of three days"
    return f"cannot tell, so stay with {found.today}: {found.candidate} has {change}, {n}{more}"


def changes(found: Advice) -> list[str]:
    """Return what would change the advice."""
    said = []
    for load, best in found.elsewhere.items():
        more = f"at {100 * abs(load - OWN_LOAD):.0f} % {'more' if load > OWN_LOAD else 'less'} load"
        same = "stays the best heuristic" if best == found.best_heuristic else "would be the best heuristic"
        said.append(f"{more}, {best} {same} (on the validation period)")
    name, change = found.agent
    verdict = "clearly better than" if change.high < 0 else "not clearly better than"
    gap = f"{percent(change.change)}, {span(change.low, change.high)}"
    said.append(f"the learned {name} is {verdict} {found.best_heuristic} on the test period ({gap})")
    if not found.clear and found.more_days is not None:
        said.append(f"about {found.more_days} more days of log, if the difference does not change")
    return said


def _cells(change: Change, digits: int) -> tuple[str, str, str, str]:
    return (
        f"{change.today:,.{digits}f}",
        f"{change.value:,.{digits}f}",
        percent(change.change),
        span(change.low, change.high),
    )
