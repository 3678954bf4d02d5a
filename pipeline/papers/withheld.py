"""Where gains come from: which jobs are withheld, and who pays. DeepRM's Figure 7 (110 %)."""

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from pipeline.comparing import plots
from pipeline.papers.durations import against, known
from pipeline.papers.evidence import Evidence, Mean, groups, nearest, slowdown_of
from pipeline.papers.rules import ABOVE, BELOW, NO, YES, above
from pipeline.papers.verdicts import WHOLE, CannotTellError, Part, Shown, Source, Verdict, compared, judged

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LOAD = 110  # percent
SHARE = 0.234  # of the steps, in which the paper's DeepRM did not conserve work
ALMOST_ALL = 0.9  # of what is withheld: how we read "almost only", for the paper draws it and gives no number
RIVAL = "tetris"
PLAIN = "#BBBBBB"
ROOM = 1.25  # above the bars, for the legend


def shown(evidence: Evidence) -> list[Shown]:
    """Return a figure for each agent with DeepRM's network that was trained for slowdown; for any if none has it."""
    load, found = nearest(evidence.loads, LOAD), []
    for agent in evidence.roles.about("slowdown", "mlp", LOAD) or evidence.roles.of("slowdown"):
        title = f"Withheld jobs at load {load}: {agent} against {RIVAL}"
        drawing = _draw(evidence, load, agent, title)
        found.append(Shown(f"withheld_{agent}", title, drawing, judged(CLAIMS, evidence, agent)))
    return found or [Shown("withheld", "Withheld jobs", None, judged(CLAIMS, evidence))]


def _draw(evidence: Evidence, load: int, agent: str, title: str) -> "Figure":
    lengths = groups(evidence.lengths(load))
    share = evidence.mean("not_work_conserving", load, agent)
    held = f"Lengths of withheld jobs (work is not conserved in {100 * share.value:.1f} % of steps)"
    figure, (above, below) = plots.panels([held, "Mean slowdown by length"], 7.0)
    figure.suptitle(title, x=0.01, ha="left")
    colour = plots.looks(evidence.policies, evidence.roles.agents)[agent].colour
    _lengths(above, evidence.jobs_of(load, agent), agent, list(lengths.values()), colour)
    for k, (policy, fill) in enumerate({RIVAL: PLAIN, agent: colour}.items()):
        means = [evidence.mean(slowdown_of(steps), load, policy) for steps in lengths.values()]
        whiskers = [[mean.value - mean.low for mean in means], [mean.high - mean.value for mean in means]]
        place = np.arange(len(lengths)) + 0.4 * k - 0.2
        values = [mean.value for mean in means]
        below.bar(place, values, 0.38, yerr=whiskers, color=fill, label=policy, error_kw={"elinewidth": 1.0})
    below.set_ylabel("Mean slowdown")
    for axes in (above, below):
        axes.set_ylim(0, ROOM * axes.get_ylim()[1])
        axes.set_xticks(range(len(lengths)), list(lengths))
        axes.legend(loc="best")
    below.set_xlabel("Job length (steps)")
    return figure


def _lengths(axes: "Axes", jobs: pd.DataFrame, agent: str, lengths: list[list[int]], colour: str) -> None:
    each = pd.Series(1, index=jobs.index)
    kinds = {
        "all jobs": (each, PLAIN, 1.0),
        f"jobs that {agent} withholds": (each.where(jobs["withheld"] > 0, 0), colour, 0.45),
        "steps that it withholds them": (jobs["withheld"], colour, 1.0),
    }
    for k, (name, (weight, fill, strength)) in enumerate(kinds.items()):
        total = int(weight.sum())
        share = [100 * weight[jobs["duration"].isin(steps)].sum() / max(total, 1) for steps in lengths]
        place = np.arange(len(lengths)) + 0.27 * (k - 1)
        axes.bar(place, share, 0.26, color=fill, alpha=strength, label=f"{name} ({total})")
    axes.set_ylabel("Percent of them")


def _in_percent(evidence: Evidence, share: Mean) -> str:
    sure = f"{100 * evidence.confidence:g} % interval {100 * share.low:.1f} to {100 * share.high:.1f}"
    return f"{100 * share.value:.1f} % ({sure}; n = {share.n} jobsets)"


def _share_of_steps(evidence: Evidence, agent: str) -> Verdict:
    name, load = known(evidence, agent), nearest(evidence.loads, LOAD)
    share, rival = (evidence.mean("not_work_conserving", load, policy) for policy in (name, RIVAL))
    found = f"{name} at load {load}: {_in_percent(evidence, share)} of steps; {RIVAL} {100 * rival.value:.1f} %"
    word = YES if share.low <= SHARE <= share.high else NO
    return Verdict(found, word, [name])


def _only_long_jobs(column: str, what: str) -> Part:
    """Return the part of a claim about the share of long jobs in the sum of a column."""

    def judge(evidence: Evidence, agent: str) -> Verdict:
        name, load = known(evidence, agent), nearest(evidence.loads, LOAD)
        _, long = evidence.split(load)
        jobs = evidence.jobs_of(load, name)
        if not jobs[column].sum():
            raise CannotTellError(f"{name} withholds no job at load {load}")
        share = evidence.share(load, name, column, long)
        some = f"of {int(jobs[column].sum())} {what} that {name} withholds at load {load}"
        of_all = f"of all {len(jobs)} jobs {100 * jobs['duration'].isin(long).mean():.1f} % are"
        word = above(share.low - ALMOST_ALL, share.high - ALMOST_ALL)
        return Verdict(f"{some}, {_in_percent(evidence, share)} are of {long[0]} steps or more; {of_all}", word, [name])

    least = f"the whole interval of the share of long ones is under {100 * ALMOST_ALL:g} % (yes: over it)"
    return Part(f"of the {what} it withholds", least, judge)


SEVEN = Source("DeepRM, Figure 7")
CLAIMS = (
    SEVEN.claim(
        "At 110 % DeepRM does not conserve work in 23.4 % of the steps",
        Part(WHOLE, "the interval leaves out 23.4 % (yes: it holds that)", _share_of_steps),
    ),
    SEVEN.claim(
        "DeepRM withholds almost only long jobs",
        _only_long_jobs("held", "jobs"),
        _only_long_jobs("withheld", "steps of waiting"),
    ),
    SEVEN.claim(
        "Short jobs have a far lower slowdown under DeepRM than under Tetris",
        compared(WHOLE, BELOW, against(0, LOAD, lambda *_: RIVAL)),
    ),
    SEVEN.claim(
        "Long jobs have a higher slowdown under DeepRM than under Tetris",
        compared(WHOLE, ABOVE, against(1, LOAD, lambda *_: RIVAL)),
    ),
)
