"""Both objectives at one load, agents trained for each: DeepRM's Figure 5 (130 %) and DeepRM2's Figure 4 (70 %).

Completion time is the mean over jobs of the time from arrival to completion, which both papers' reward of minus the
number of jobs in the system minimises; DeepRM2's text calls the end of the last job so.
"""

from typing import TYPE_CHECKING

from pipeline.comparing import plots
from pipeline.papers.evidence import Evidence, Gap, nearest
from pipeline.papers.roles import HEURISTICS, NAMES, STRONG
from pipeline.papers.rules import BELOW
from pipeline.papers.verdicts import WHOLE, Claim, Find, Part, Shown, Source, compared, judged

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

OBJECTIVES = {"slowdown": "mean_slowdown", "completion_time": "completion_time"}
WORDS = {"slowdown": "Mean slowdown", "completion_time": "Mean completion time (steps)"}
SAID = {"slowdown": "slowdown", "completion_time": "completion time"}
PLAIN = "#BBBBBB"
HIGH, LOW = 130, 70  # percent: the loads of DeepRM's figure and of DeepRM2's


def shown(evidence: Evidence) -> list[Shown]:
    """Return the figures of a scenario with arrivals over time: one for each paper's load."""
    name = evidence.roles.scenario
    found: dict[int, Shown] = {}
    for asked, claims in CLAIMS.items():
        load = nearest(evidence.loads, asked)
        title = f"Both objectives at load {load}, scenario {name}"
        earlier = found[load].verdicts if load in found else []
        verdicts = [*earlier, *judged(claims, evidence)]
        found[load] = Shown(f"objectives_{name}_{load}", title, _draw(evidence, load, title), verdicts)
    return list(found.values())


def _schemes(evidence: Evidence, load: int) -> list[str]:
    """Return the papers' heuristics, our strong ones, and agents trained for one of the two; worst slowdown first."""
    agents = [name for goal in OBJECTIVES for name in evidence.roles.of(goal)]
    here = [name for name in agents if evidence.roles.agents[name].finetune.loads == (load,)]
    strong = {*STRONG, evidence.best[load]} & {*evidence.policies}
    wanted = {*HEURISTICS, *strong, *(here or agents)}
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


def _tetris_below(objective: str, other: str) -> Part:
    text, metric = f"{SAID[objective]}, before {NAMES[other]}", OBJECTIVES[objective]
    return compared(text, BELOW, lambda made, _: [made.gap(metric, nearest(made.loads, HIGH), "tetris", other)])


def _first_below(objective: str, other: str) -> Find:
    """Return the comparison of DeepRM's agents for an objective with a heuristic, or with its agent for another one.

    Agents that differ in their seed only all count.
    """

    def find(evidence: Evidence, agent: str) -> list[Gap]:
        roles, load = evidence.roles, nearest(evidence.loads, HIGH)
        lead = roles.lead(objective, "mlp", load)
        against = roles.lead(other, "mlp", load) if other in OBJECTIVES else other
        seeds = dict.fromkeys([lead, *roles.at(objective, "mlp", load)])
        return [evidence.gap(OBJECTIVES[objective], load, name, against) for name in seeds]

    return find


def _best(objective: str, text: str) -> Claim:
    (rest,) = (goal for goal in OBJECTIVES if goal != objective)
    others = {name: f"below {NAMES[name]}" for name in HEURISTICS} | {rest: f"below DeepRM trained for {SAID[rest]}"}
    return FIVE.claim(text, *(compared(said, BELOW, _first_below(objective, name)) for name, said in others.items()))


def _second_below(objective: str) -> Part:
    def find(evidence: Evidence, agent: str) -> list[Gap]:
        load = nearest(evidence.loads, LOW)
        second = evidence.roles.lead(objective, "cnn", load)
        return [evidence.gap(OBJECTIVES[objective], load, second, evidence.roles.rival(second))]

    return compared(WHOLE, BELOW, find)


FIVE, FOUR = Source("DeepRM, Figure 5"), Source("DeepRM2, Figure 4")
CLAIMS = {
    HIGH: (
        FIVE.claim(
            "At 130 % Tetris is before SJF and Packer on both objectives",
            *(_tetris_below(goal, other) for goal in OBJECTIVES for other in ("sjf", "packer")),
        ),
        _best("slowdown", "At 130 % DeepRM trained for slowdown has the lowest slowdown"),
        _best("completion_time", "At 130 % DeepRM trained for completion time has the lowest completion time"),
    ),
    LOW: (
        FOUR.claim("At 70 % DeepRM2 has a lower slowdown than DeepRM", _second_below("slowdown")),
        FOUR.claim(
            "At 70 % DeepRM2 trained for completion time has a lower one than DeepRM trained for it",
            _second_below("completion_time"),
        ),
    ),
}
