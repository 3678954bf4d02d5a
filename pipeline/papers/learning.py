"""Learning curves with returns and slowdown: DeepRM's Figure 6, DeepRM2's Figure 5, DeepRM_Off's Figure 7.

Returns and the slowdown while training are of sampled play on the jobsets of each update; validation is of the recipe's
play on validation jobsets of the same loads.
"""

from typing import TYPE_CHECKING

import pandas as pd

from pipeline.comparing import plots
from pipeline.papers.curves import ends, first_near_best, points, rank_correlation, tenths, validated
from pipeline.papers.durations import pretrained
from pipeline.papers.evidence import Evidence, nearest
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

METRIC = "mean_slowdown"
LOAD = {"DeepRM": 70, "DeepRM2": 100}  # percent: what the papers train at
AFTER = 200  # updates
CLOSED = 0.5  # of the first gap between best and mean return: less is closed
LEVELS = ("sjf", "packer", "tetris", "random")
SHORT_OF = 0.05  # of the way from the start: nearer to the best tenth than this is at it
FAINT = 0.45
LOG_ABOVE = 2.0  # the heuristics lie close together below, and far apart above


def shown(evidence: Evidence) -> list[Shown]:
    """Return a figure for each agent of a scenario."""
    found = []
    for agent, row in evidence.roles.agents.items():
        title = f"{agent} while learning"
        drawing = _draw(evidence, agent)
        paper = evidence.roles.paper(agent)
        asked = evidence.roles.of("slowdown")
        if paper in LOAD:
            asked = evidence.roles.about("slowdown", row.network.name, LOAD[paper])
        claims = CLAIMS[paper] if agent in asked else ANY[paper]
        found.append(Shown(f"learning_{agent}", title, drawing, judged(claims, evidence, agent)))
    return found


def _draw(evidence: Evidence, agent: str) -> "Figure":
    from matplotlib.ticker import MaxNLocator

    curve, row = evidence.curves[agent], evidence.roles.agents[agent]
    plain = row.objective == "slowdown"
    titles = [
        f"{agent} while learning: total return of an episode",
        "Mean slowdown (dashed: heuristics, on validation)",
    ]
    titles += [] if plain else [f"Mean {row.objective.replace('_', ' ')} on validation jobsets"]
    figure, axes = plots.panels(titles, 3.2 * len(titles))
    look = plots.looks(evidence.policies, evidence.roles.agents)[agent]
    _returns(axes[0], curve, look)
    _slowdown(axes[1], evidence, agent, look)
    if not plain:
        judgements = points(curve, "validation")
        plots.line(axes[2], "validation", judgements["update"], judgements["value"], look)
    for panel in axes:
        panel.set_xlim(-0.03 * curve["update"].max(), 1.03 * curve["update"].max())
        panel.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    _levels(axes[1], evidence, agent)
    axes[-1].set_xlabel("Update")
    return figure


def _returns(axes: "Axes", curve: pd.DataFrame, look: plots.Look) -> None:
    best, mean = points(curve, "best_return"), points(curve, "mean_return")
    axes.plot(best["update"], best["value"], color=look.colour, alpha=FAINT, label="best of a jobset's episodes")
    axes.plot(mean["update"], mean["value"], color=look.colour, label="mean")
    if len(mean):
        axes.legend(loc="best")


def _slowdown(axes: "Axes", evidence: Evidence, agent: str, look: plots.Look) -> None:
    curve = evidence.curves[agent]
    training = points(curve, "slowdown")
    axes.plot(training["update"], training["value"], color=look.colour, alpha=FAINT, label="training, sampled play")
    values = [*training["value"], *_shown_levels(evidence, agent).values()]
    if evidence.roles.agents[agent].objective == "slowdown":
        judgements = points(curve, "validation")
        plots.line(axes, "validation", judgements["update"], judgements["value"], look)
        values += list(judgements["value"])
    plots.scale(axes, values, LOG_ABOVE)
    axes.legend(loc="best")


def _levels(axes: "Axes", evidence: Evidence, agent: str) -> None:
    """Draw the heuristics, once the limits are settled."""
    levels, grey = _shown_levels(evidence, agent), plots.Look(plots.GREY, "", 1.0, "normal")
    for level in levels.values():
        axes.axhline(level, color=plots.GREY, linewidth=1, linestyle="--", zorder=1)
    right = axes.get_xlim()[1]
    plots.write_beside(axes, [plots.Label(name, right, level, grey) for name, level in levels.items()], 0.09)


def _shown_levels(evidence: Evidence, agent: str) -> dict[str, float]:
    return {name: level for name, level in evidence.levels[agent].items() if name in LEVELS}


def _start_like_random(evidence: Evidence, agent: str) -> Verdict:
    start = evidence.roles.agents[agent].pretrain
    if start.name != "none":
        raise CannotTellError(f"{agent} starts from a clone, not from untrained weights")
    gap = evidence.gap(METRIC, nearest(evidence.loads, LOAD["DeepRM"]), pretrained(agent), "random")
    word = decided(gap.side >= 0)
    return Verdict(f"test jobsets, before training: {at_load(gap, evidence.confidence)}", word)


def _below_tetris_in_time(evidence: Evidence, agent: str) -> Verdict:
    judgements = validated(evidence.curves[agent], agent)
    level = evidence.levels[agent]["tetris"]
    after = next((update for update in judgements if update >= AFTER), max(judgements))
    below = next((update for update, value in judgements.items() if value < level), None)
    since = "never below" if below is None else f"first below after update {below}"
    found = f"validation after update {after}: {agent} {judgements[after]:.2f}, tetris {level:.2f}; {since}"
    short = "" if after >= AFTER else f" ({AFTER} updates were not run)"
    note = f"No interval: validation is kept as one mean. Ours: {evidence.roles.protocol(agent)}"
    return Verdict(f"{found}{short}. {note}", decided(judgements[after] < level))


def _returns_rise(evidence: Evidence, agent: str) -> Verdict:
    curve = evidence.curves[agent]
    found = {metric: ends(curve, metric, agent) for metric in ("mean_return", "best_return", "slowdown")}
    text = ", ".join(f"{metric.replace('_', ' ')} {first:.4g} to {last:.4g}" for metric, (first, last) in found.items())
    related = rank_correlation(curve, "mean_return", "slowdown")
    moved = [last - first for first, last in found.values()]
    good = [moved[0] > 0, moved[1] > 0, moved[2] < 0]
    note = "" if related is None else f"; rank correlation of mean return and slowdown over updates {related:.2f}"
    return Verdict(
        f"first tenth of updates to last: {text}{note}. Ours: {evidence.roles.protocol(agent)}",
        decided(all(good), any(good)),
    )


def _gap_closes(evidence: Evidence, agent: str) -> Verdict:
    curve = evidence.curves[agent]
    mean, best = ends(curve, "mean_return", agent), ends(curve, "best_return", agent)
    first, last = best[0] - mean[0], best[1] - mean[1]
    found = f"gap between best and mean return: {first:.4g} in the first tenth of updates, {last:.4g} in the last"
    return Verdict(f"{found}. Ours: {evidence.roles.protocol(agent)}", decided(last < CLOSED * first, last < first))


def _second_ends_better(evidence: Evidence, agent: str) -> Verdict:
    other = evidence.roles.rival(agent)
    gap = evidence.gap(METRIC, nearest(evidence.loads, LOAD["DeepRM2"]), agent, other)
    returns = {name: ends(evidence.curves[name], "mean_return", name)[1] for name in (agent, other)}
    rows = evidence.roles.agents
    alike = set(rows[agent].finetune.loads) == set(rows[other].finetune.loads)
    text = f"mean return in the last tenth of updates: {agent} {returns[agent]:.4g}, {other} {returns[other]:.4g}"
    words = [every([gap])] + ([decided(returns[agent] > returns[other])] if alike else [])
    budgets = f"{agent}: {evidence.roles.protocol(agent)}; {other}: {evidence.roles.protocol(other)}"
    return Verdict(f"test jobsets: {at_load(gap, evidence.confidence)}; {text}. Ours, {budgets}", together(words))


def _second_converges_sooner(evidence: Evidence, agent: str) -> Verdict:
    other = evidence.roles.rival(agent)
    took = {name: first_near_best(evidence.curves[name], name) for name in (agent, other)}
    text = ", ".join(f"{name} after update {update}" for name, update in took.items())
    sizes = {name: _size(evidence, name) for name in took}
    if len({*sizes.values()}) == 1:
        updates = f"updates of {sizes[agent]} episodes each"
    else:
        updates = f"updates of other sizes: {agent} {sizes[agent]}, {other} {sizes[other]} episodes"
    return Verdict(
        f"within 5 % of its own best validation: {text} ({updates})",
        decided(took[agent] < took[other]),
    )


def _size(evidence: Evidence, agent: str) -> int:
    part = evidence.roles.agents[agent].finetune
    return part.jobsets * getattr(part, "episodes", 1)


def _offline_reaches_its_best(evidence: Evidence, agent: str) -> Verdict:
    curve = evidence.curves[agent]
    returns, slowdown = tenths(curve, "mean_return", agent), tenths(curve, "slowdown", agent)
    text = f"mean return {returns[0]:.4g} to {returns[-1]:.4g} (best tenth {returns.max():.4g})"
    more = f"slowdown {slowdown[0]:.4g} to {slowdown[-1]:.4g} (best tenth {slowdown.min():.4g})"
    at_best = returns.max() - returns[-1] <= SHORT_OF * (returns.max() - returns[0])
    lowest = slowdown[-1] - slowdown.min() <= SHORT_OF * (slowdown[0] - slowdown.min())
    better = returns[-1] > returns[0] and slowdown[-1] < slowdown[0]
    word = decided(bool(at_best and lowest and better), bool(better))
    rule = f"at its best: within {SHORT_OF:.0%} of the way there"
    return Verdict(
        f"first tenth of updates to last: {text}, {more} ({rule}). Ours: {evidence.roles.protocol(agent)}", word
    )


def _offline_below_the_others(evidence: Evidence, agent: str) -> Verdict:
    pairs = [
        [evidence.gap(METRIC, load, agent, other) for load in evidence.loads] for other in ("sjf", "tetris", "random")
    ]
    return Verdict("; ".join(over_loads(found, evidence.confidence) for found in pairs), together(map(every, pairs)))


SIX, FIVE, SEVEN = "DeepRM, Figure 6", "DeepRM2, Figure 5", "DeepRM_Off, Figure 7"
RISE = "Mean and best return rise with training, and slowdown falls with them"
ANY = {
    "DeepRM": (
        Claim(SIX, RISE, _returns_rise),
        Claim(SIX, "The gap between best and mean return closes, as training converges", _gap_closes),
    ),
    "DeepRM2": (Claim(FIVE, RISE, _returns_rise),),
    "DeepRM_Off": (Claim(SEVEN, RISE, _returns_rise),),
}
CLAIMS = {
    "DeepRM": (
        Claim(SIX, "Before training, DeepRM is no better than random", _start_like_random),
        Claim(SIX, "After 200 iterations DeepRM is better than Tetris", _below_tetris_in_time),
        *ANY["DeepRM"],
    ),
    "DeepRM2": (
        *ANY["DeepRM2"],
        Claim(FIVE, "DeepRM2 ends with a higher return and a lower slowdown than DeepRM", _second_ends_better),
        Claim(FIVE, "DeepRM2 converges in fewer epochs than DeepRM", _second_converges_sooner),
    ),
    "DeepRM_Off": (
        Claim(SEVEN, "The return rises to its maximum and slowdown falls to its minimum", _offline_reaches_its_best),
        Claim(SEVEN, "DeepRM_Off ends below SJF, Tetris and Random in slowdown", _offline_below_the_others),
    ),
}
