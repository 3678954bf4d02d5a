"""Slowdown by job length before and after training, as box plots: DeepRM2's Figure 6."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from pipeline.comparing import plots
from pipeline.papers.evidence import Evidence, Mean, groups, nearest, slowdown_of
from pipeline.papers.verdicts import (
    CannotTellError,
    Claim,
    Shown,
    Verdict,
    at_load,
    decided,
    every,
    judged,
    over_loads,
    together,
)

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
        verdicts = judged(_claims(evidence, agent), evidence, load, agent)
        found.append(Shown(f"durations_{agent}", title, drawing, verdicts))
    if not found:
        title = "Slowdown by job length, before and after training"
        found = [Shown("durations", title, None, judged(CLAIMS, evidence, load, None))]
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


def _random_is_unfair(evidence: Evidence, load: int, agent: str) -> Verdict:
    short, long = evidence.split(load)
    few, many = evidence.mean(slowdown_of(short), load, "random"), evidence.mean(slowdown_of(long), load, "random")
    found = f"random at load {load}: short jobs {_mean(few)}, long jobs {_mean(many)} (n = {few.n} jobsets)"
    return Verdict(found, decided(few.low > many.high, few.value > many.value))


def _training_helps_short_jobs(evidence: Evidence, load: int, agent: str | None) -> Verdict:
    name = _known(evidence, agent)
    short, _ = evidence.split(load)
    gaps = [evidence.gap(slowdown_of(short), load, name, other) for other in ("random", pretrained(name))]
    text = "; ".join(over_loads([gap], evidence.confidence) for gap in gaps)
    return Verdict(f"short jobs: {text}. Paper's before is random", every(gaps[:1]))


def _not_every_short_job_goes_first(evidence: Evidence, load: int, agent: str | None) -> Verdict:
    name = _known(evidence, agent)
    short, long = evidence.split(load)
    jobs = evidence.jobs_of(load, name)
    held = [float((jobs.loc[jobs["duration"].isin(some), "withheld"] > 0).mean()) for some in (short, long)]
    found = f"{name} at load {load} lets {100 * held[0]:.1f} % of short jobs wait though they would fit"
    first, not_every = held[0] < held[1] / 2, held[0] > 0
    text = f"{found}, and {100 * held[1]:.1f} % of long ones; yes means less than half as many, yet some"
    return Verdict(text, decided(first and not_every, first or not_every))


def _second_below_first(evidence: Evidence, load: int, agent: str | None) -> Verdict:
    second = _known(evidence, agent)
    first = evidence.roles.rival(second)
    short, long = evidence.split(load)
    gaps = [evidence.gap(slowdown_of(some), load, second, first) for some in (short, long)]
    text = [at_load(gap, evidence.confidence) for gap in gaps]
    return Verdict(f"short jobs: {text[0]}; long jobs: {text[1]}", together(every([gap]) for gap in gaps))


def _known(evidence: Evidence, agent: str | None) -> str:
    if agent is None:
        raise CannotTellError(f"no agent of scenario {evidence.roles.scenario} is trained for slowdown")
    return agent


def _mean(mean: Mean) -> str:
    return f"{mean.value:.2f} ({mean.low:.2f} to {mean.high:.2f})"


def _claims(evidence: Evidence, agent: str) -> Sequence[Claim]:
    return CLAIMS if evidence.roles.agents[agent].network.name == "cnn" else CLAIMS[:-1]


SIX = "DeepRM2, Figure 6"
CLAIMS = (
    Claim(SIX, "Under random scheduling short jobs have a large slowdown and long jobs a small one", _random_is_unfair),
    Claim(SIX, "After training, short jobs have a far lower slowdown than before", _training_helps_short_jobs),
    Claim(SIX, "Short jobs tend to go first, but not every one of them does", _not_every_short_job_goes_first),
    Claim(SIX, "DeepRM2 is better than DeepRM for short and for long jobs", _second_below_first),
)
