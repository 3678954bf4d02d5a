"""Slowdown by job length before and after training, as box plots: DeepRM2's Figure 6."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from pipeline.comparing import plots
from pipeline.papers.evidence import Evidence, Gap, Mean, OfJobs, groups, nearest, slowdown_of
from pipeline.papers.rules import BELOW, below
from pipeline.papers.verdicts import WHOLE, CannotTellError, Find, Part, Shown, Source, Verdict, compared, judged

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LOAD = 100  # percent: DeepRM2 trains at it for Figure 5, and names none for Figure 6
BEFORE = ("#BBBBBB", "#EFD9A7")  # random, pretrained
ENDS = (5, 95)  # percentiles, where the whiskers end


def pretrained(agent: str) -> str:
    """Return the name that an agent's starting weights have in the tables."""
    return f"{agent}_pretrained"


def shown(evidence: Evidence) -> list[Shown]:
    """Return a figure for each agent trained for slowdown."""
    load, found = nearest(evidence.loads, LOAD), []
    for agent in _agents(evidence):
        title = f"Slowdown by job length at load {load}, before and after training: {agent}"
        drawing = _draw(evidence, load, agent, title)
        claims = CLAIMS if evidence.roles.agents[agent].network.name == "cnn" else CLAIMS[:-1]
        verdicts = judged(claims, evidence, agent)
        found.append(Shown(f"durations_{agent}", title, drawing, verdicts))
    if not found:
        title = "Slowdown by job length, before and after training"
        found = [Shown("durations", title, None, judged(CLAIMS, evidence))]
    return found


def _agents(evidence: Evidence) -> list[str]:
    """Return the agents to be shown: DeepRM2's trained at the load and DeepRM's beside it, or all for slowdown."""
    pairs = [
        name for second in evidence.roles.at("slowdown", "cnn", LOAD) for name in (evidence.roles.rival(second), second)
    ]
    return pairs or evidence.roles.of("slowdown")


def box(slowdown: pd.Series) -> dict[str, object]:
    """Return what a box shows: quartiles, median, mean, and whiskers that leave 5 % outside at each end."""
    low, first, middle, third, high = np.percentile(slowdown, [ENDS[0], 25, 50, 75, ENDS[1]])
    return {
        "whislo": low,
        "q1": first,
        "med": middle,
        "mean": slowdown.mean(),
        "q3": third,
        "whishi": high,
        "fliers": [],
    }


def _draw(evidence: Evidence, load: int, agent: str, title: str) -> "Figure":
    from matplotlib.patches import Patch

    figure, axes = plots.canvas(title)
    look = plots.looks(evidence.policies, evidence.roles.agents)[agent]
    lengths = groups(evidence.lengths(load))
    colours = dict(zip(("random", pretrained(agent), agent), (*BEFORE, look.colour), strict=True))
    for k, (policy, colour) in enumerate(colours.items()):
        jobs = evidence.jobs_of(load, policy)
        boxes = [box(jobs.loc[jobs["duration"].isin(some), "slowdown"]) for some in lengths.values()]
        _boxes(axes, boxes, 0.27 * (k - 1), colour)
    axes.set_xticks(range(len(lengths)), list(lengths))
    axes.set_xlabel("Job length (steps)")
    axes.set_ylabel("Slowdown (whiskers: 5 to 95 %; diamond: mean)")
    jobs = evidence.jobs[evidence.jobs["policy"].isin(list(colours))]
    plots.scale(axes, [1.0, float(np.percentile(jobs["slowdown"], ENDS[1]))])
    axes.legend(handles=[Patch(facecolor=c, edgecolor="black", label=p) for p, c in colours.items()], loc="best")
    return figure


def _boxes(axes: "Axes", boxes: Sequence[dict[str, object]], shift: float, colour: str) -> None:
    axes.bxp(
        boxes,
        positions=[place + shift for place in range(len(boxes))],
        widths=0.22,
        showmeans=True,
        showfliers=False,
        patch_artist=True,
        manage_ticks=False,
        boxprops={"facecolor": colour, "linewidth": 0.7},
        medianprops={"color": "black", "linewidth": 1.6},
        whiskerprops={"linewidth": 0.8},
        capprops={"linewidth": 0.8},
        meanprops={"marker": "D", "markersize": 4, "markerfacecolor": "white", "markeredgecolor": "black"},
    )


def known(evidence: Evidence, agent: str) -> str:
    """Return an agent that is there.

    Raises:
        CannotTellError: there is none.
    """
    if not agent:
        raise CannotTellError(f"no agent of scenario {evidence.roles.scenario} is trained for slowdown")
    return agent


def _apart(evidence: Evidence, policy: str, column: str) -> tuple[list[Mean], tuple[float, float]]:
    """Return a policy's means of a column over short and over long jobs, and the interval of their difference."""
    load = nearest(evidence.loads, LOAD)
    kinds = [OfJobs(column, some[0] - 1, some[-1]) for some in evidence.split(load)]
    short, long = (evidence.means(kind, load, policy) for kind in kinds)
    return [evidence.mean(kind, load, policy) for kind in kinds], evidence.span(short - long)


def against(kind: int, asked: int, other: Callable[[Evidence, str], str]) -> Find:
    """Return the comparison of an agent with another policy in the slowdown of short (0) or of long (1) jobs."""

    def find(evidence: Evidence, agent: str) -> list[Gap]:
        load = nearest(evidence.loads, asked)
        of = slowdown_of(evidence.split(load)[kind])
        return [evidence.gap(of, load, known(evidence, agent), other(evidence, agent))]

    return find


def _short_go_first(evidence: Evidence, agent: str) -> Verdict:
    """Judge whether a smaller share of short jobs than of long ones is withheld."""
    name, load = known(evidence, agent), nearest(evidence.loads, LOAD)
    (few, many), (low, high) = _apart(evidence, name, "held")
    held = f"{100 * few.value:.1f} % of short jobs wait though they would fit, of long ones {100 * many.value:.1f} %"
    sure = f"{100 * evidence.confidence:g} % interval of the difference {100 * low:+.1f} to {100 * high:+.1f}"
    return Verdict(f"{name} at load {load}: {held} ({sure})", below(low, high), [agent])


SIX = Source("DeepRM2, Figure 6")
CLAIMS = (
    SIX.claim(
        "After training, short jobs have a far lower slowdown than before",
        compared("than under Random, the paper's before", BELOW, against(0, LOAD, lambda *_: "random")),
    ),
    SIX.claim(
        "Short jobs tend to go first",
        Part(WHOLE, "a larger share of them is withheld, by the whole interval", _short_go_first),
    ),
    SIX.claim(
        "DeepRM2 is better than DeepRM for short and for long jobs",
        compared("short jobs", BELOW, against(0, LOAD, lambda made, agent: made.roles.rival(agent))),
        compared("long jobs", BELOW, against(1, LOAD, lambda made, agent: made.roles.rival(agent))),
    ),
)
