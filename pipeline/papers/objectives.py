"""Both objectives at one load, agents trained for each: DeepRM's Figure 5 (130 %) and DeepRM2's Figure 4 (70 %).

Completion time is the mean over jobs of the time from arrival to completion, which both papers' reward of minus the
number of jobs in the system minimises; DeepRM2's text calls the end of the last job so.
"""

from typing import TYPE_CHECKING

from pipeline.comparing import plots
from pipeline.papers.evidence import Evidence, nearest
from pipeline.papers.roles import HEURISTICS
from pipeline.papers.verdicts import Claim, Shown, Verdict, every, judged, often, over_loads, together

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

OBJECTIVES = {"slowdown": "mean_slowdown", "completion_time": "completion_time"}
WORDS = {"slowdown": "Mean slowdown", "completion_time": "Mean completion time (steps)"}
PLAIN = "#BBBBBB"


def shown(evidence: Evidence) -> list[Shown]:
    """Return the figures of a scenario with arrivals over time: one for each paper's load."""
    name = evidence.roles.scenario
    found: dict[int, Shown] = {}
    for asked, claims in CLAIMS.items():
        load = nearest(evidence.loads, asked)
        title = f"Both objectives at load {load}, scenario {name}"
        earlier = found[load].verdicts if load in found else []
        verdicts = [*earlier, *judged(claims, evidence, load)]
        found[load] = Shown(f"objectives_{name}_{load}", title, _draw(evidence, load, title), verdicts)
    return list(found.values())


def _schemes(evidence: Evidence, load: int) -> list[str]:
    """Return the papers' heuristics, our best one, and agents trained for one of the two; worst slowdown first."""
    agents = [name for goal in OBJECTIVES for name in evidence.roles.of(goal)]
    here = [name for name in agents if evidence.roles.agents[name].finetune.loads == (load,)]
    wanted = {*HEURISTICS, evidence.best[load], *(here or agents)}
    return sorted(wanted, key=lambda name: (-evidence.mean("mean_slowdown", load, name).value, name))


def _draw(evidence: Evidence, load: int, title: str) -> "Figure":
    schemes = _schemes(evidence, load)
    figure, axes = plots.panels(list(WORDS.values()), 1.6 + 0.34 * len(schemes), across=True)
    figure.suptitle(title, x=0.01, ha="left")
    for panel, objective in zip(axes, OBJECTIVES, strict=True):
        _bars(panel, evidence, load, objective, schemes)
    axes[1].set_yticklabels([])
    if any(evidence.roles.of(goal) for goal in OBJECTIVES):
        figure.supxlabel("Full colour: trained for this objective. Whiskers: intervals.", fontsize=10)
    return figure


def _bars(axes: "Axes", evidence: Evidence, load: int, objective: str, schemes: list[str]) -> None:
    """Draw one objective; agents trained for it in full colour, those trained for the other one pale."""
    looks = plots.looks(evidence.policies, evidence.roles.agents)
    for place, name in enumerate(schemes):
        mean = evidence.mean(OBJECTIVES[objective], load, name)
        own = name in evidence.roles.of(objective)
        colour = looks[name].colour if name in evidence.roles.agents else PLAIN
        whiskers = [[mean.value - mean.low], [mean.high - mean.value]]
        bar = axes.barh(place, mean.value, color=colour, xerr=whiskers, error_kw={"elinewidth": 1.2})
        bar.patches[0].set_alpha(1.0 if own or name not in evidence.roles.agents else 0.35)
        weight = "bold" if own else "normal"
        at = (mean.high, place)
        axes.annotate(f"{mean.value:.2f}", at, (4, 0), textcoords="offset points", va="center", fontweight=weight)
    axes.set_yticks(range(len(schemes)), schemes)
    axes.grid(visible=False, axis="y")
    axes.set_xlim(0, 1.18 * max(evidence.mean(OBJECTIVES[objective], load, name).high for name in schemes))


def _tetris_before_the_others(evidence: Evidence, load: int) -> Verdict:
    pairs = [
        [evidence.gap(metric, load, "tetris", other)] for metric in OBJECTIVES.values() for other in ("sjf", "packer")
    ]
    text = [over_loads(found, evidence.confidence) for found in pairs]
    words = f"slowdown: {text[0]}; {text[1]}; completion time: {text[2]}; {text[3]}"
    return Verdict(words, together(map(often, pairs)))


def _best_for_slowdown(evidence: Evidence, load: int) -> Verdict:
    return _best(evidence, load, "slowdown")


def _best_for_completion_time(evidence: Evidence, load: int) -> Verdict:
    return _best(evidence, load, "completion_time")


def _best(evidence: Evidence, load: int, objective: str) -> Verdict:
    """Judge whether DeepRM's agent for an objective is below the papers' heuristics and its agent for the other.

    Where it was trained from several seeds, all of them must be.
    """
    roles, metric = evidence.roles, OBJECTIVES[objective]
    agent = roles.lead(objective, "mlp", load)
    others = [name for goal in OBJECTIVES if goal != objective for name in roles.about(goal, "mlp", load)[:1]]
    seeds = [agent, *(name for name in roles.at(objective, "mlp", load) if name != agent)]
    lines = {name: [evidence.gap(metric, load, name, other) for other in (*others, *HEURISTICS)] for name in seeds}
    text = "; ".join(over_loads([gap], evidence.confidence) for gap in lines[agent])
    ours = over_loads([evidence.gap(metric, load, agent, evidence.best[load])], evidence.confidence)
    text += f"; our best heuristic: {ours}"
    for name in seeds[1:]:
        below = sum(gap.side < 0 for gap in lines[name])
        text += f"; another seed, {name}: {lines[name][0].mean:.2f}, below {below} of these {len(lines[name])}"
    word = every([gap for line in lines.values() for gap in line])
    return Verdict(f"{text}. Ours: {roles.protocol(agent)}", word)


def _second_for_slowdown(evidence: Evidence, load: int) -> Verdict:
    return _second(evidence, load, "slowdown")


def _second_for_completion_time(evidence: Evidence, load: int) -> Verdict:
    return _second(evidence, load, "completion_time")


def _second(evidence: Evidence, load: int, objective: str) -> Verdict:
    """Judge whether DeepRM2's agent for an objective is below DeepRM's."""
    agent = evidence.roles.lead(objective, "cnn", load)
    other = evidence.roles.rival(agent)
    found = [evidence.gap(OBJECTIVES[objective], load, agent, other)]
    budgets = f"{agent}: {evidence.roles.protocol(agent)}; {other}: {evidence.roles.protocol(other)}"
    return Verdict(f"{over_loads(found, evidence.confidence)}. Ours, {budgets}", every(found))


FIVE, FOUR = "DeepRM, Figure 5", "DeepRM2, Figure 4"
CLAIMS = {
    130: (
        Claim(FIVE, "At 130 % Tetris is before SJF and Packer on both objectives", _tetris_before_the_others),
        Claim(FIVE, "At 130 % DeepRM trained for slowdown has the lowest slowdown", _best_for_slowdown),
        Claim(
            FIVE,
            "At 130 % DeepRM trained for completion time has the lowest completion time",
            _best_for_completion_time,
        ),
    ),
    70: (
        Claim(FOUR, "At 70 % DeepRM2 has a lower slowdown than DeepRM", _second_for_slowdown),
        Claim(
            FOUR,
            "At 70 % DeepRM2 trained for completion time has a lower one than DeepRM trained for it",
            _second_for_completion_time,
        ),
    ),
}
