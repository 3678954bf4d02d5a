"""Where gains come from: which jobs are withheld, and who pays. DeepRM's Figure 7 (110 %)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from pipeline.comparing import plots
from pipeline.papers.evidence import Evidence, groups, nearest, slowdown_of
from pipeline.papers.verdicts import CannotTellError, Claim, Shown, Verdict, at_load, decided, every, judged

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LOAD = 110  # percent
SHARE = 0.234  # of the steps, in which the paper's DeepRM did not conserve work
ABOUT = 0.25  # of that share: nearer than this is the same
ALMOST_ALL = 0.9  # of the withheld jobs
RIVAL = "tetris"
PLAIN = "#BBBBBB"
ROOM = 1.25  # above the bars, for the legend


def shown(evidence: Evidence) -> list[Shown]:
    """Return a figure for each agent with DeepRM's network that was trained for slowdown; for any if none has it."""
    load, found = nearest(evidence.loads, LOAD), []
    for agent in evidence.roles.about("slowdown", "mlp", LOAD) or evidence.roles.of("slowdown"):
        title = f"Withheld jobs at load {load}: {agent} against {RIVAL}"
        drawing = _draw(evidence, load, agent, title)
        found.append(Shown(f"withheld_{agent}", title, drawing, judged(CLAIMS, evidence, load, agent)))
    return found or [Shown("withheld", "Withheld jobs", None, judged(CLAIMS, evidence, load, None))]


def _draw(evidence: Evidence, load: int, agent: str, title: str) -> "Figure":
    lengths = groups(evidence.lengths(load))
    share = evidence.mean("not_work_conserving", load, agent)
    held = f"Lengths of withheld jobs (work is not conserved in {100 * share.value:.1f} % of steps)"
    figure, (above, below) = plots.panels([held, "Mean slowdown by length"], 7.0)
    figure.suptitle(title, x=0.01, ha="left")
    colour = plots.looks(evidence.policies, evidence.roles.agents)[agent].colour
    _lengths(above, evidence, load, agent, lengths, colour)
    _slowdowns(below, evidence, load, agent, lengths, colour)
    for axes in (above, below):
        axes.set_xticks(range(len(lengths)), list(lengths))
        axes.legend(loc="best")
    below.set_xlabel("Job length (steps)")
    return figure


def _lengths(
    axes: "Axes", evidence: Evidence, load: int, agent: str, lengths: dict[str, list[int]], colour: str
) -> None:
    jobs = evidence.jobs_of(load, agent)
    each = pd.Series(1, index=jobs.index)
    kinds = {
        "all jobs": (each, PLAIN, 1.0),
        f"jobs that {agent} withholds": (each.where(jobs["withheld"] > 0, 0), colour, 0.45),
        "steps that it withholds them": (jobs["withheld"], colour, 1.0),
    }
    for k, (name, (weight, fill, strength)) in enumerate(kinds.items()):
        total = int(weight.sum())
        share = [100 * weight[jobs["duration"].isin(steps)].sum() / max(total, 1) for steps in lengths.values()]
        place = np.arange(len(lengths)) + 0.27 * (k - 1)
        axes.bar(place, share, 0.26, color=fill, alpha=strength, label=f"{name} ({total})")
    axes.set_ylabel("Percent of them")
    axes.set_ylim(0, ROOM * axes.get_ylim()[1])


def _slowdowns(
    axes: "Axes", evidence: Evidence, load: int, agent: str, lengths: dict[str, list[int]], colour: str
) -> None:
    for k, (policy, fill) in enumerate({RIVAL: PLAIN, agent: colour}.items()):
        means = [evidence.mean(slowdown_of(steps), load, policy) for steps in lengths.values()]
        whiskers = [[mean.value - mean.low for mean in means], [mean.high - mean.value for mean in means]]
        place = np.arange(len(lengths)) + 0.4 * k - 0.2
        values = [mean.value for mean in means]
        axes.bar(place, values, 0.38, yerr=whiskers, color=fill, label=policy, error_kw={"elinewidth": 1.0})
    axes.set_ylabel("Mean slowdown")
    axes.set_ylim(0, ROOM * axes.get_ylim()[1])


def _share_of_steps(evidence: Evidence, load: int, agent: str | None) -> Verdict:
    name = _known(evidence, agent)
    share, rival = (evidence.mean("not_work_conserving", load, policy) for policy in (name, RIVAL))
    found = (
        f"{name} at load {load}: {100 * share.value:.1f} % of steps ({100 * evidence.confidence:g} % interval "
        f"{100 * share.low:.1f} to {100 * share.high:.1f}; n = {share.n} jobsets); {RIVAL} {100 * rival.value:.1f} %"
    )
    about = abs(share.value - SHARE) <= ABOUT * SHARE
    note = f"yes means within {100 * ABOUT:g} % of the paper's share, partly within a factor of 2"
    word = decided(about, SHARE / 2 <= share.value <= 2 * SHARE)
    return Verdict(f"{found}; {note}. Ours: {evidence.roles.protocol(name)}", word)


def _only_long_jobs(evidence: Evidence, load: int, agent: str | None) -> Verdict:
    name = _known(evidence, agent)
    _, long = evidence.split(load)
    jobs = evidence.jobs_of(load, name)
    held = jobs[jobs["withheld"] > 0]
    if held.empty:
        raise CannotTellError(f"{name} withholds no job at load {load}")
    among, of_all = (float(some["duration"].isin(long).mean()) for some in (held, jobs))
    steps = float(held.loc[held["duration"].isin(long), "withheld"].sum() / held["withheld"].sum())
    found = (
        f"of {len(held)} jobs that {name} withholds at load {load}, {100 * among:.1f} % are of {long[0]} steps or more"
    )
    more = f"(of all {len(jobs)} jobs {100 * of_all:.1f} %), of the steps that it withholds them {100 * steps:.1f} %"
    note = f"yes means that both shares are {100 * ALMOST_ALL:g} % or more, partly over half"
    return Verdict(f"{found} {more}; {note}", decided(min(among, steps) >= ALMOST_ALL, min(among, steps) > 0.5))


def _short_jobs_gain(evidence: Evidence, load: int, agent: str | None) -> Verdict:
    short, _ = evidence.split(load)
    gap = evidence.gap(slowdown_of(short), load, _known(evidence, agent), RIVAL)
    return Verdict(f"{_of(short)}: {at_load(gap, evidence.confidence)}", every([gap]))


def _long_jobs_pay(evidence: Evidence, load: int, agent: str | None) -> Verdict:
    _, long = evidence.split(load)
    name = _known(evidence, agent)
    gap, turned = (evidence.gap(slowdown_of(long), load, *pair) for pair in ((name, RIVAL), (RIVAL, name)))
    return Verdict(f"{_of(long)}: {at_load(gap, evidence.confidence)}", every([turned]))


def _of(lengths: Sequence[int]) -> str:
    if len(lengths) == 1:
        return f"jobs of {lengths[0]} step" + ("s" if lengths[0] > 1 else "")
    return f"jobs of {lengths[0]} to {lengths[-1]} steps"


def _known(evidence: Evidence, agent: str | None) -> str:
    if agent is None:
        raise CannotTellError(f"no agent of scenario {evidence.roles.scenario} is trained for slowdown")
    return agent


SEVEN = "DeepRM, Figure 7"
CLAIMS = (
    Claim(SEVEN, "At 110 % DeepRM does not conserve work in 23.4 % of the steps", _share_of_steps),
    Claim(SEVEN, "DeepRM withholds almost only long jobs", _only_long_jobs),
    Claim(SEVEN, "Short jobs have a far lower slowdown under DeepRM than under Tetris", _short_jobs_gain),
    Claim(SEVEN, "Long jobs have a higher slowdown under DeepRM than under Tetris", _long_jobs_pay),
)
