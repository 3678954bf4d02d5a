"""Learning curves with returns and slowdown: DeepRM's Figure 6, DeepRM2's Figure 5, DeepRM_Off's Figure 7.

Returns and slowdown while training come from sampled actions on the jobsets of each update. Validation values come from
the recipe's policy on validation jobsets of the same loads.
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from pipeline.comparing import plots
from pipeline.papers.curves import change, difference_interval, points, races, tenths, update_size, with_interval
from pipeline.papers.evidence import Evidence, rival, versus
from pipeline.papers.job_lengths import pretrained
from pipeline.papers.roles import NAMES
from pipeline.papers.rules import BELOW, NO, NOT_BELOW, UNDECIDED, YES, CannotTellError, Gap, above, below
from pipeline.papers.verdicts import WHOLE, Finding, Judge, Part, Shown, claims_of, compared, judged
from pipeline.problems.parts import validation_label

LOAD = {"DeepRM": 70, "DeepRM2": 100}  # percent: what the papers train at
AFTER, ITERATION = 200, 100 * 20  # iterations, and the episodes of one: DeepRM section 4.1
LEVELS = ("sjf", "tetris", "random")  # with two curves, as many lines as are readable
SAMPLED = plots.Look(plots.GREY, "x", 0.8, "normal")  # while training
LOG_ABOVE = 2.0  # lower than in other figures: good heuristics are close together, others far apart


def shown(evidence: Evidence) -> list[Shown]:
    """Return a figure for each agent of a scenario."""
    found = []
    for agent, row in evidence.roles.agents.items():
        paper = evidence.roles.paper(agent)
        about = evidence.roles.of("slowdown")
        if paper in LOAD:
            about = evidence.roles.about("slowdown", row.network.name, LOAD[paper])
        claims = CLAIMS[paper] if agent in about else ANY[paper]
        drawing = _draw(evidence, agent)
        found.append(Shown(f"learning_{agent}", f"{agent} while learning", drawing, judged(claims, evidence, agent)))
    return found


def _draw(evidence: Evidence, agent: str) -> Figure:
    curve, objective = evidence.curves[agent], evidence.roles.agents[agent].objective
    titles = [
        f"{agent} while learning: total return of an episode",
        "Mean slowdown (horizontal lines: heuristics, on validation)",
    ]
    titles += [] if objective == "slowdown" else ["Objective"]
    figure, axes = plots.panels(titles, 3.2 * len(titles))
    levels = {name: level for name, level in evidence.levels[agent].items() if name in LEVELS}
    looks = plots.looks([agent, *levels], [agent])
    look = looks[agent]
    _draw_returns(axes[0], curve, look)
    _draw_slowdown(axes[1], curve, levels, look, validated=objective == "slowdown")
    if objective != "slowdown":
        judgements = points(curve, "validation")
        plots.line(axes[2], "validation", judgements["update"], judgements["value"], look)
        axes[2].set_ylabel(validation_label(objective, "steps"))
    for panel in axes:
        panel.set_xlim(-0.03 * curve["update"].max(), 1.03 * curve["update"].max())
        panel.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    plots.levels(axes[1], levels, looks, 0.09)  # once the limits are final
    axes[-1].set_xlabel("Update (number)")
    return figure


def _draw_returns(axes: Axes, curve: pd.DataFrame, look: plots.Look) -> None:
    best, mean = points(curve, "best_return"), points(curve, "mean_return")
    plots.line(axes, "mean", mean["update"], mean["value"], look._replace(width=1.5))
    plots.line(axes, "best of a jobset's episodes", best["update"], best["value"], SAMPLED)
    axes.set_ylabel("Return (reward)")
    if len(mean):
        axes.legend(loc="best")


def _draw_slowdown(
    axes: Axes, curve: pd.DataFrame, levels: Mapping[str, float], look: plots.Look, validated: bool
) -> None:
    training, judgements = points(curve, "slowdown"), points(curve, "validation")
    values = [*training["value"], *levels.values()]
    if validated:
        plots.line(axes, "validation", judgements["update"], judgements["value"], look)
        values += list(judgements["value"])
    plots.line(axes, "training, sampled play", training["update"], training["value"], SAMPLED)
    axes.set_ylabel("Mean slowdown (ratio)")
    plots.scale(axes, values, LOG_ABOVE)
    axes.legend(loc="best")


def _start_against_random(evidence: Evidence, agent: str) -> list[Gap]:
    if evidence.roles.agents[agent].pretrain.name != "none":
        raise CannotTellError(f"{agent} starts from a clone, not from untrained weights")
    return versus(pretrained(agent), "random", load=LOAD["DeepRM"])(evidence, agent)


def _below_tetris_after(by_episodes: bool) -> Judge:
    """Return the judge of an agent's validation after as many updates, or episodes, as the paper's 200 iterations."""

    def judge(evidence: Evidence, agent: str) -> Finding:
        validation, level = points(evidence.curves[agent], "validation"), evidence.levels[agent]["tetris"]
        if validation.empty:
            raise CannotTellError(f"the curve of {agent} has no judgement on validation jobsets")
        judgements = dict(zip(validation["update"].astype(int), validation["value"].astype(float), strict=True))
        size = update_size(evidence, agent)
        wanted = -(-AFTER * ITERATION // size) if by_episodes else AFTER
        after = next((update for update in judgements if update >= wanted), max(judgements))
        under = next((update for update, value in judgements.items() if value < level), None)
        since = "never below" if under is None else f"first below after update {under}"
        played = f"{after * size} episodes"
        found = f"validation after update {after} ({played}): {agent} {judgements[after]:.2f}, tetris {level:.2f}"
        short = "" if after >= wanted else f"; update {wanted} was not reached"
        note = "No interval: validation is kept as one mean"
        word = YES if judgements[after] < level else NO if after >= wanted else UNDECIDED
        return Finding(f"{found}; {since}{short}. {note}", word, [agent])

    return judge


def _moves(metric: str, up: bool, to_its_best: bool = False) -> Part:
    """Return the part of a claim that a metric rises, or falls, from the first tenth of updates to the last.

    The metric is at its best in the last tenth if no other tenth is clearly better.
    """
    name, sign = metric.replace("_", " "), -1 if up else 1

    def judge(evidence: Evidence, agent: str) -> Finding:
        parts = tenths(evidence.curves[agent], metric, agent)
        found, *span = change(parts, name, evidence.confidence)
        last = sign * parts[-1]
        better = sum(difference_interval(sign * part, last, evidence.confidence)[1] < 0 for part in parts)
        word = NO if to_its_best and better else (above if up else below)(*span)
        return Finding(found + (f"; {better} other tenths beat the last" if to_its_best else ""), word, [agent])

    way, back = ("rises", "falls") if up else ("falls", "rises")
    best, more = (" to its best", ", or another tenth is clearly better") if to_its_best else ("", "")
    return Part(f"{name} {way}{best}", f"it clearly {back}{more}", judge)


def _gap_narrows(evidence: Evidence, agent: str) -> Finding:
    best, mean = (tenths(evidence.curves[agent], metric, agent) for metric in ("best_return", "mean_return"))
    gaps = [np.subtract(one, other) for one, other in zip(best, mean, strict=True)]
    found, *span = change(gaps, "gap between best and mean return", evidence.confidence)
    return Finding(found, below(*span), [agent])


def _second_above(evidence: Evidence, agent: str) -> Finding:
    other, rows = evidence.roles.rival(agent), evidence.roles.agents
    if set(rows[agent].finetune.loads) != set(rows[other].finetune.loads):
        raise CannotTellError(f"{agent} and {other} were trained at other loads")
    ours, theirs = (tenths(evidence.curves[name], "mean_return", name)[-1] for name in (agent, other))
    low, high = difference_interval(ours, theirs, evidence.confidence)
    means = f"mean return in the last tenth of updates: {agent} {ours.mean():.4g}, {other} {theirs.mean():.4g}"
    return Finding(with_interval(means, low, high, evidence.confidence), above(low, high), [agent, other])


def _itself(evidence: Evidence, agent: str) -> str:
    return agent


RISE = "Mean and best return rise with training, and slowdown falls with them"
MOVES = (_moves("mean_return", up=True), _moves("best_return", up=True), _moves("slowdown", up=False))
STILL_ABOVE = "its validation mean is not below Tetris's then"
CLAIMS = {
    "DeepRM": claims_of(
        "DeepRM, Figure 6",
        {
            "Before training, DeepRM is no better than random": [compared(WHOLE, NOT_BELOW, _start_against_random)],
            "After 200 iterations DeepRM is better than Tetris": [
                Part("after as many updates", STILL_ABOVE, _below_tetris_after(by_episodes=False)),
                Part("after as many episodes (2,000 an iteration)", STILL_ABOVE, _below_tetris_after(by_episodes=True)),
            ],
            RISE: MOVES,
            "The gap between best and mean return narrows with training": [
                Part(WHOLE, "it clearly widens", _gap_narrows)
            ],
        },
    ),
    "DeepRM2": claims_of(
        "DeepRM2, Figure 5",
        {
            RISE: MOVES,
            "DeepRM2 ends with a higher return and a lower slowdown than DeepRM": [
                Part("a higher return", "it is clearly lower", _second_above),
                compared("a lower slowdown", BELOW, versus(_itself, rival, load=LOAD["DeepRM2"])),
            ],
            "DeepRM2 converges in fewer epochs than DeepRM": races("sooner", _itself, rival),
        },
    ),
    "DeepRM_Off": claims_of(
        "DeepRM_Off, Figure 7",
        {
            "The return rises to its maximum and slowdown falls to its minimum": [
                _moves("mean_return", up=True, to_its_best=True),
                _moves("slowdown", up=False, to_its_best=True),
            ],
            "DeepRM_Off ends below SJF, Tetris and Random in slowdown": [
                compared(f"below {NAMES[name]}", BELOW, versus(_itself, name)) for name in ("sjf", "tetris", "random")
            ],
        },
    ),
}
ANY = {  # claims about agents whose training is not the papers'
    "DeepRM": CLAIMS["DeepRM"][2:],
    "DeepRM2": CLAIMS["DeepRM2"][:1],
    "DeepRM_Off": claims_of("DeepRM_Off, Figure 7", {RISE: MOVES}),
}
