"""Slowdown, completion time and makespan on many machines: Deepk8s's Figures 4 and 5 and Table 1.

Judged at every load of the scenario, where the paper has one log of unknown load. Differences are relative to the other
policy, and on the same jobsets. Deepk8s is Zhao and Sun 2021; see docs/systems/deepk8s.md.
"""

from collections.abc import Sequence
from itertools import combinations
from math import inf
from typing import TYPE_CHECKING

import pandas as pd

from pipeline.comparing import plots
from pipeline.papers.evidence import Evidence, Gap, Metric, OfJobs
from pipeline.papers.roles import Roles
from pipeline.papers.verdicts import (
    CANNOT,
    NEARLY,
    NO,
    PARTLY,
    YES,
    Claim,
    Shown,
    Verdict,
    at_load,
    below_by,
    below_by_at_most,
    every,
    judged,
    nearly,
    over_loads,
    side,
    span,
    together,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

HEURISTICS = ("fcfs", "random", "sjf", "tetris")  # the paper's
SLOWDOWN, COMPLETION, MAKESPAN = "mean_slowdown", "completion_time", "makespan"
LEAST, MOST = 0.075, 0.135  # shares: how far PPO is below the heuristics
BELOW_SJF = 0.002  # a share, in completion time
AUTHORS_SLOWDOWN, AUTHORS_COMPLETION = 1.325, 94.116
ROOM = 1.12  # beside the bars, for their numbers


def compared(roles: Roles) -> list[str]:
    """Return the policies whose single tasks are looked at: the paper's heuristics, and agents for slowdown."""
    return [*HEURISTICS, *roles.of("slowdown")]


def among(policies: Sequence[str], roles: Roles) -> list[str]:
    """Return those of the policies that are compared."""
    return [policy for policy in policies if policy in compared(roles)]


def with_completion_time(jobs: pd.DataFrame) -> pd.DataFrame:
    """Return what figures show of single tasks: their run time, and the time from arrival to completion."""
    return jobs[["policy", "load", "jobset", "duration"]].assign(**{COMPLETION: jobs["finish"] - jobs["arrival"]})


def short(evidence: Evidence) -> OfJobs:
    """Return the mean completion time of tasks that run for at most the mean."""
    return OfJobs(COMPLETION, 0, evidence.long, f"short tasks (they are told apart at {evidence.long:.4g})")


def long(evidence: Evidence) -> OfJobs:
    """Return the mean completion time of tasks that run for more."""
    return OfJobs(COMPLETION, evidence.long, inf, f"long tasks (they are told apart at {evidence.long:.4g})")


def shown(evidence: Evidence) -> list[Shown]:
    """Return the figures of mean slowdown and of completion time, with what Table 1 says of them."""
    name = evidence.roles.scenario
    slow, took = f"Mean slowdown of tasks, scenario {name}", f"Mean completion time of tasks, scenario {name}"
    return [
        Shown(f"deepk8s_slowdown_{name}", slow, _slowdown(evidence, slow), judged(OF_SLOWDOWN, evidence)),
        Shown(f"deepk8s_completion_{name}", took, _completion(evidence, took), judged(OF_COMPLETION, evidence)),
    ]


def _slowdown(evidence: Evidence, title: str) -> "Figure":
    loads, policies = evidence.loads, evidence.policies
    titles = [f"Load {load}" for load in loads]
    figure, panels = plots.panels(titles, 0.7 + (0.9 + 0.26 * len(policies)) * len(loads))
    figure.suptitle(title, x=0.01, ha="left")
    looks = plots.looks(policies, evidence.roles.agents)
    for axes, load in zip(panels, loads, strict=True):
        for place, policy in enumerate(policies):
            mean = evidence.mean(SLOWDOWN, load, policy)
            whisker = [[mean.value - mean.low], [mean.high - mean.value]]
            # From 1: nothing can be faster, and it is what is above that policies differ in.
            axes.barh(place, mean.value - 1, left=1, xerr=whisker, color=looks[policy].colour, height=0.7)
            axes.annotate(f"{mean.value:.3f}", (mean.high, place), (4, 0), textcoords="offset points", va="center")
        axes.set_yticks(range(len(policies)), policies)
        axes.invert_yaxis()
        axes.set_xlim(1, 1 + ROOM * (axes.get_xlim()[1] - 1))
        axes.grid(visible=False, axis="y")
    panels[-1].set_xlabel("Mean slowdown, from 1 on (whisker: its interval)")
    return figure


def _completion(evidence: Evidence, title: str) -> "Figure":
    kinds: dict[Metric, str] = {
        short(evidence): f"Short tasks (at most {evidence.long:.4g})",
        long(evidence): "Long tasks",
        COMPLETION: "All tasks",
    }
    there = {metric: label for metric, label in kinds.items() if evidence.has(metric)}
    figure, panels = plots.panels(list(there.values()), 1.0 + 2.2 * len(there))
    figure.suptitle(title, x=0.01, ha="left")
    for axes, metric in zip(panels, there, strict=True):
        _bars(axes, evidence, metric)
        axes.set_ylabel("Time")
    panels[-1].set_xlabel("Load (percent of all machines); whisker: interval")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right upper")
    return figure


def _bars(axes: "Axes", evidence: Evidence, metric: Metric) -> None:
    """Draw the means of a metric, the policies side by side at every load."""
    width = 0.8 / len(evidence.policies)
    for k, (policy, look) in enumerate(plots.looks(evidence.policies, evidence.roles.agents).items()):
        means = [evidence.mean(metric, load, policy) for load in evidence.loads]
        whiskers = [[mean.value - mean.low for mean in means], [mean.high - mean.value for mean in means]]
        place = [at + (k + 0.5) * width - 0.4 for at in range(len(means))]
        values = [mean.value for mean in means]
        axes.bar(place, values, 0.9 * width, yerr=whiskers, color=look.colour, label=policy)
    axes.set_xticks(range(len(evidence.loads)), [str(load) for load in evidence.loads])


def _against(evidence: Evidence, metric: Metric) -> list[list[Gap]]:
    """Compare PPO with each heuristic at every load."""
    agent = evidence.roles.lead_by("ppo")
    return [evidence.gaps(metric, agent, other) for other in HEURISTICS]


def _protocol(evidence: Evidence, *algorithms: str) -> str:
    """Return how the agents that stand for algorithms were trained."""
    agents = [evidence.roles.lead_by(algorithm) for algorithm in algorithms]
    return "Ours: " + "; ".join(f"{agent}: {evidence.roles.protocol(agent)}" for agent in agents)


def _order(evidence: Evidence) -> Verdict:
    pairs = [evidence.gaps(SLOWDOWN, *pair) for pair in (("random", "fcfs"), ("sjf", "random"), ("tetris", "random"))]
    text = "; ".join(over_loads(found, evidence.confidence) for found in pairs)
    return Verdict(f"{text}. Our tetris's weights are tuned on validation jobsets", together(map(every, pairs)))


def _at_least(evidence: Evidence) -> Verdict:
    found = _against(evidence, SLOWDOWN)
    words = [below_by(gaps, LEAST) for gaps in found]
    return Verdict(f"{_sizes(evidence, found)}{_others(evidence)}. {_protocol(evidence, 'ppo')}", together(words))


def _at_most(evidence: Evidence) -> Verdict:
    found = _against(evidence, SLOWDOWN)
    widest = min((gap for gaps in found for gap in gaps), key=lambda gap: gap.difference)
    text = f"farthest below: {at_load(widest, evidence.confidence)}"
    return Verdict(text, together(below_by_at_most(gaps, MOST) for gaps in found))


def _sizes(evidence: Evidence, found: Sequence[Sequence[Gap]]) -> str:
    """Return all differences from the heuristics, and their mean, load by load."""
    lines = []
    for gaps in zip(*found, strict=True):
        each = ", ".join(f"{gap.against} {side(gap.difference)} ({span(gap.low, gap.high)})" for gap in gaps)
        mean = sum(gap.difference for gap in gaps) / len(gaps)
        lines.append(f"at load {gaps[0].load} {each}, on average {side(mean)} (n = {gaps[0].n} jobsets)")
    agent = found[0][0].policy
    return f"{agent} against {'; '.join(lines)}; in brackets {100 * evidence.confidence:g} % intervals, in percent"


def _others(evidence: Evidence) -> str:
    """Return how other agents of the same kind do; the first of params.yaml is the one that is judged."""
    text = ""
    for name in evidence.roles.learned_by("ppo")[1:]:
        pairs = [evidence.gaps(SLOWDOWN, name, other) for other in HEURISTICS]
        reached = sum(gap.high < -LEAST for gaps in pairs for gap in gaps)
        text += f"; also trained by ppo, {name}: so far below in {reached} of these {sum(map(len, pairs))}"
    return text


def _like_a3c(evidence: Evidence) -> Verdict:
    found = evidence.gaps(SLOWDOWN, evidence.roles.lead_by("ppo"), evidence.roles.lead_by("a3c"))
    text = f"{over_loads(found, evidence.confidence)}; nearly equal means within {100 * NEARLY:g} %"
    return Verdict(f"{text}. {_protocol(evidence, 'ppo', 'a3c')}", nearly(found))


def _fastest(evidence: Evidence) -> Verdict:
    found = _against(evidence, COMPLETION)
    return Verdict("; ".join(over_loads(gaps, evidence.confidence) for gaps in found), together(map(every, found)))


def _just_below_sjf(evidence: Evidence) -> Verdict:
    found = evidence.gaps(COMPLETION, evidence.roles.lead_by("ppo"), "sjf")
    sizes = ", ".join(f"{100 * gap.difference:+.2f} % at load {gap.load}" for gap in found)
    note = "yes means below by half to twice as much as the paper's, partly by more or less"
    return Verdict(f"{over_loads(found, evidence.confidence)}; {sizes}; {note}", together(map(_as_far, found)))


def _as_far(gap: Gap) -> str:
    """Return whether a policy is about as far below another as PPO is below SJF in the paper."""
    if gap.side >= 0:
        return NO if gap.side else CANNOT
    return YES if BELOW_SJF / 2 <= -gap.difference <= 2 * BELOW_SJF else PARTLY


def _short_gain(evidence: Evidence) -> Verdict:
    found = _against(evidence, short(evidence))
    text = "; ".join(over_loads(gaps, evidence.confidence) for gaps in found)
    return Verdict(f"tasks of at most {evidence.long:.4g} (the mean): {text}", together(map(every, found)))


def _long_pay(evidence: Evidence) -> Verdict:
    found, agent = _against(evidence, long(evidence)), evidence.roles.lead_by("ppo")
    turned = [evidence.gaps(long(evidence), other, agent) for other in HEURISTICS]
    text = "; ".join(over_loads(gaps, evidence.confidence) for gaps in found)
    return Verdict(f"tasks of more than {evidence.long:.4g}: {text}", together(map(every, turned)))


def _same_makespan(evidence: Evidence) -> Verdict:
    policies = [*HEURISTICS, evidence.roles.lead_by("ppo")]
    found = [gap for pair in combinations(policies, 2) for gap in evidence.gaps(MAKESPAN, *pair)]
    widest = max(found, key=lambda gap: abs(gap.difference))
    text = f"the largest of {len(found)} differences, {at_load(widest, evidence.confidence)}"
    return Verdict(f"{text}; nearly equal means within {100 * NEARLY:g} %", nearly(found))


def _their_slowdown(evidence: Evidence) -> Verdict:
    return _beside(evidence, SLOWDOWN, AUTHORS_SLOWDOWN, 3)


def _their_completion(evidence: Evidence) -> Verdict:
    return _beside(evidence, COMPLETION, AUTHORS_COMPLETION, 1)


def _beside(evidence: Evidence, metric: str, theirs: float, digits: int) -> Verdict:
    """Return our value beside the authors', which is of a log that they do not name."""
    agent, text = evidence.roles.lead_by("ppo"), []
    for load in evidence.loads:
        mean = evidence.mean(metric, load, agent)
        text.append(f"{mean.value:.{digits}f} ({mean.low:.{digits}f} to {mean.high:.{digits}f}) at load {load}")
    found = f"{agent}: {', '.join(text)}; theirs, {theirs}, is of a log that they do not name"
    return Verdict(found, CANNOT)


FOUR, FIVE, TABLE = "Deepk8s, Figure 4", "Deepk8s, Figure 5", "Deepk8s, Table 1"
OF_SLOWDOWN = (
    Claim(FOUR, "FCFS has the highest mean slowdown, then Random, then SJF and Tetris", _order),
    Claim(FOUR, "PPO's mean slowdown is at least 7.5 % below each heuristic's (abstract: on average)", _at_least),
    Claim(FOUR, "PPO's mean slowdown is at most 13.5 % below each heuristic's", _at_most),
    Claim(FOUR, "PPO and A3C are nearly equal in result", _like_a3c),
    Claim(TABLE, f"PPO's mean slowdown is {AUTHORS_SLOWDOWN}", _their_slowdown),
)
OF_COMPLETION = (
    Claim(TABLE, "PPO has the lowest mean completion time", _fastest),
    Claim(TABLE, "PPO's mean completion time is 0.2 % below SJF's", _just_below_sjf),
    Claim(TABLE, f"PPO's mean completion time is {AUTHORS_COMPLETION}", _their_completion),
    Claim(FIVE, "Short tasks are faster under PPO than under every heuristic", _short_gain),
    Claim(FIVE, "Long tasks are slower under PPO than under every heuristic", _long_pay),
    Claim(TABLE, "The makespan is nearly equal under all policies", _same_makespan),
)
