"""Results by job length: box plots around training (DeepRM2's Figure 6) and withheld jobs (DeepRM's Figure 7)."""

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pipeline.comparing import plots
from pipeline.papers.evidence import Evidence, Mean, OfJobs, groups, nearest, rival, slowdown_of, versus, whiskers
from pipeline.papers.rules import ABOVE, BELOW, NO, YES, CannotTellError, above, below
from pipeline.papers.verdicts import WHOLE, Finding, Part, Shown, claims_of, compared, judged

DURATIONS_LOAD = 100  # percent: DeepRM2 trains at it for Figure 5, and names none for Figure 6
BEFORE = ("#BBBBBB", "#EFD9A7")  # random, pretrained
ENDS = (5, 95)  # percentiles, where the whiskers end
WITHHELD_LOAD = 110  # percent
SHARE = 0.234  # of the steps, in which the paper's DeepRM did not conserve work
ALMOST_ALL = 0.9  # of the withheld jobs: our reading of "almost only", which the paper draws without a number
RIVAL = "tetris"
PLAIN = "#BBBBBB"
ROOM = 1.25  # above the bars, for the legend


def pretrained(agent: str) -> str:
    """Return the name of an agent's starting weights in the tables."""
    return f"{agent}_pretrained"


def durations(evidence: Evidence) -> list[Shown]:
    """Return box plots for DeepRM2's agents trained at the load and their rivals, or for all trained for slowdown."""
    load, roles, found = nearest(evidence.loads, DURATIONS_LOAD), evidence.roles, []
    pairs = [name for second in roles.at("slowdown", "cnn", DURATIONS_LOAD) for name in (roles.rival(second), second)]
    for agent in pairs or roles.of("slowdown"):
        title = f"Slowdown by job length at load {load}, before and after training: {agent}"
        claims = DURATIONS if roles.agents[agent].network.name == "cnn" else DURATIONS[:-1]
        drawing = _draw_boxes(evidence, load, agent, title)
        found.append(Shown(f"durations_{agent}", title, drawing, judged(claims, evidence, agent)))
    title = "Slowdown by job length, before and after training"
    return found or [Shown("durations", title, None, judged(DURATIONS, evidence))]


def box(slowdown: pd.Series) -> dict[str, object]:
    """Return a box: quartiles, median, mean, and whiskers that leave 5 % outside at each end."""
    low, first, middle, third, high = np.percentile(slowdown, [ENDS[0], 25, 50, 75, ENDS[1]])
    box = {"whislo": low, "q1": first, "med": middle, "mean": slowdown.mean(), "q3": third, "whishi": high}
    return {**box, "fliers": []}


def _draw_boxes(evidence: Evidence, load: int, agent: str, title: str) -> Figure:
    figure, axes = plots.canvas(title)
    look = plots.looks(evidence.policies, evidence.roles.agents)[agent]
    lengths = groups(evidence.lengths(load))
    colours = dict(zip(("random", pretrained(agent), agent), (*BEFORE, look.colour), strict=True))
    for k, (policy, colour) in enumerate(colours.items()):
        jobs = evidence.jobs_of(load, policy)
        boxes = [box(jobs.loc[jobs["duration"].isin(some), "slowdown"]) for some in lengths.values()]
        axes.bxp(
            boxes,
            label=policy,
            positions=[place + 0.27 * (k - 1) for place in range(len(boxes))],
            widths=0.22,
            showmeans=True,
            showfliers=False,
            patch_artist=True,
            manage_ticks=False,
            boxprops={"facecolor": colour, "linewidth": 0.7, "hatch": plots.HATCHES[k]},
            medianprops={"color": "black", "linewidth": 1.6, "gid": plots.REFERENCE},
            whiskerprops={"linewidth": 0.8, "gid": plots.REFERENCE},
            capprops={"linewidth": 0.8, "gid": plots.REFERENCE},
            meanprops={"marker": "D", "markersize": 4, "markerfacecolor": "white", "markeredgecolor": "black"},
        )
    axes.set_xticks(range(len(lengths)), list(lengths))
    axes.set_xlabel("Job length (steps)")
    axes.set_ylabel("Slowdown (ratio; whiskers: 5 to 95 %; diamond: mean)")
    jobs = evidence.jobs[evidence.jobs["policy"].isin(list(colours))]
    plots.scale(axes, [1.0, float(np.percentile(jobs["slowdown"], ENDS[1]))])
    axes.legend(loc="best")
    return figure


def withheld(evidence: Evidence) -> list[Shown]:
    """Return a figure for each agent trained for slowdown: only those with DeepRM's network, if there are any."""
    load, found = nearest(evidence.loads, WITHHELD_LOAD), []
    for agent in evidence.roles.about("slowdown", "mlp", WITHHELD_LOAD) or evidence.roles.of("slowdown"):
        title = f"Withheld jobs at load {load}: {agent} against {RIVAL}"
        drawing = _draw_withheld(evidence, load, agent, title)
        found.append(Shown(f"withheld_{agent}", title, drawing, judged(WITHHELD, evidence, agent)))
    return found or [Shown("withheld", "Withheld jobs", None, judged(WITHHELD, evidence))]


def _draw_withheld(evidence: Evidence, load: int, agent: str, title: str) -> Figure:
    lengths = groups(evidence.lengths(load))
    share = evidence.mean("not_work_conserving", load, agent)
    held = f"Lengths of withheld jobs (work is not conserved in {100 * share.value:.1f} % of steps)"
    figure, (above, below) = plots.panels([held, "Mean slowdown by length"], 7.0)
    figure.suptitle(title, x=0.01, ha="left")
    colour = plots.looks(evidence.policies, evidence.roles.agents)[agent].colour
    _draw_lengths(above, evidence.jobs_of(load, agent), agent, list(lengths.values()), colour)
    for k, (policy, fill) in enumerate({RIVAL: PLAIN, agent: colour}.items()):
        means = [evidence.mean(slowdown_of(steps), load, policy) for steps in lengths.values()]
        place, values = np.arange(len(lengths)) + 0.4 * k - 0.2, [mean.value for mean in means]
        bars = below.bar(
            place, values, 0.38, yerr=whiskers(means), color=fill, label=policy, error_kw={"elinewidth": 1.0}
        )
        plots.hatch(bars, k)
    below.set_ylabel("Mean slowdown (ratio)")
    for axes in (above, below):
        axes.set_ylim(0, ROOM * axes.get_ylim()[1])
        axes.set_xticks(range(len(lengths)), list(lengths))
        axes.legend(loc="best")
    below.set_xlabel("Job length (steps)")
    return figure


def _draw_lengths(axes: Axes, jobs: pd.DataFrame, agent: str, lengths: Sequence[list[int]], colour: str) -> None:
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
        plots.hatch(axes.bar(place, share, 0.26, color=fill, alpha=strength, label=f"{name} ({total})"), k)
    axes.set_ylabel("Share of them (%)")


def _required(evidence: Evidence, agent: str) -> str:
    if not agent:
        raise CannotTellError(f"no agent of scenario {evidence.roles.scenario} is trained for slowdown")
    return agent


def _jobs(kind: int) -> Callable[[Evidence, int], OfJobs]:
    """Return the mean slowdown of short (0) or of long (1) jobs at a load."""
    return lambda evidence, load: slowdown_of(evidence.split(load)[kind])


def _short_first(evidence: Evidence, agent: str) -> Finding:
    """Judge whether a smaller share of short jobs than of long ones is withheld."""
    name, load = _required(evidence, agent), nearest(evidence.loads, DURATIONS_LOAD)
    kinds = [OfJobs("held", some[0] - 1, some[-1]) for some in evidence.split(load)]
    short, long = (evidence.means(kind, load, name) for kind in kinds)
    low, high = evidence.span(short - long)
    few, many = (evidence.mean(kind, load, name) for kind in kinds)
    held = f"{100 * few.value:.1f} % of short jobs wait though they would fit, of long ones {100 * many.value:.1f} %"
    interval = f"{100 * evidence.confidence:g} % interval of the difference {100 * low:+.1f} to {100 * high:+.1f}"
    return Finding(f"{name} at load {load}: {held} ({interval})", below(low, high), [agent])


def _in_percent(evidence: Evidence, share: Mean) -> str:
    interval = f"{100 * evidence.confidence:g} % interval {100 * share.low:.1f} to {100 * share.high:.1f}"
    return f"{100 * share.value:.1f} % ({interval}; n = {share.n} jobsets)"


def _share_of_steps(evidence: Evidence, agent: str) -> Finding:
    name, load = _required(evidence, agent), nearest(evidence.loads, WITHHELD_LOAD)
    share, rival = (evidence.mean("not_work_conserving", load, policy) for policy in (name, RIVAL))
    found = f"{name} at load {load}: {_in_percent(evidence, share)} of steps; {RIVAL} {100 * rival.value:.1f} %"
    return Finding(found, YES if share.low <= SHARE <= share.high else NO, [name])


def _only_long_jobs(column: str, what: str) -> Part:
    """Return the part of a claim about the share of long jobs in the sum of a column."""

    def judge(evidence: Evidence, agent: str) -> Finding:
        name, load = _required(evidence, agent), nearest(evidence.loads, WITHHELD_LOAD)
        _, long = evidence.split(load)
        jobs = evidence.jobs_of(load, name)
        if not jobs[column].sum():
            raise CannotTellError(f"{name} withholds no job at load {load}")
        share = evidence.share(load, name, column, long)
        some = f"of {int(jobs[column].sum())} {what} that {name} withholds at load {load}"
        of_all = f"of all {len(jobs)} jobs {100 * jobs['duration'].isin(long).mean():.1f} % are"
        word = above(share.low - ALMOST_ALL, share.high - ALMOST_ALL)
        return Finding(f"{some}, {_in_percent(evidence, share)} are of {long[0]} steps or more; {of_all}", word, [name])

    no_if = f"the whole interval of this share is under {100 * ALMOST_ALL:g} % (yes: over it)"
    return Part(f"long jobs' share of withheld {what}", no_if, judge)


DURATIONS = claims_of(
    "DeepRM2, Figure 6",
    {
        "After training, short jobs have a far lower slowdown than before": [
            compared(
                "than under Random, the paper's before", BELOW, versus(_required, "random", _jobs(0), DURATIONS_LOAD)
            )
        ],
        "Short jobs tend to go first": [Part(WHOLE, "a clearly larger share of them is withheld", _short_first)],
        "DeepRM2 is better than DeepRM for short and for long jobs": [
            compared(f"{name} jobs", BELOW, versus(_required, rival, _jobs(kind), DURATIONS_LOAD))
            for kind, name in enumerate(("short", "long"))
        ],
    },
)
WITHHELD = claims_of(
    "DeepRM, Figure 7",
    {
        "At 110 % DeepRM does not conserve work in 23.4 % of the steps": [
            Part(WHOLE, "the interval leaves out 23.4 % (yes: it holds that)", _share_of_steps)
        ],
        "DeepRM withholds almost only long jobs": [
            _only_long_jobs("held", "jobs"),
            _only_long_jobs("withheld", "steps of waiting"),
        ],
        "Short jobs have a far lower slowdown under DeepRM than under Tetris": [
            compared(WHOLE, BELOW, versus(_required, RIVAL, _jobs(0), WITHHELD_LOAD))
        ],
        "Long jobs have a higher slowdown under DeepRM than under Tetris": [
            compared(WHOLE, ABOVE, versus(_required, RIVAL, _jobs(1), WITHHELD_LOAD))
        ],
    },
)
