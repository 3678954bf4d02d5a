"""Means by load: slowdown (DeepRM's Figure 4, DeepRM2's Figure 3) and both objectives at one load (Figures 5 and 4).

Completion time is the mean over jobs of the time from arrival to completion. Both papers minimise it with the negative
number of jobs in the system as the reward. DeepRM2's text uses the term for the end of the last job.
"""

from collections.abc import Sequence
from itertools import pairwise

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pipeline.comparing import plots
from pipeline.papers.evidence import SLOWDOWN, Evidence, Who, nearest, versus, whiskers
from pipeline.papers.roles import HEURISTICS, NAMES, SECOND_TETRIS, STRONG
from pipeline.papers.rules import ABOVE, BELOW, NOT_ABOVE, OFTEN_BELOW, CannotTellError, Gap, above, together
from pipeline.papers.verdicts import WHOLE, Find, Finding, Part, Shown, claims_of, compared, judged

SECOND = 100  # percent: what DeepRM2's Figure 5 trains at; Figure 3 names no load
CROSSING = 90  # percent: where the lines of Tetris and Random cross in DeepRM2's Figure 3
OBJECTIVES = {"slowdown": SLOWDOWN, "completion_time": "completion_time"}
LABELS = {"slowdown": "Mean slowdown (ratio)", "completion_time": "Mean completion time (steps)"}
WORDS = {"slowdown": "slowdown", "completion_time": "completion time"}
PLAIN = "#BBBBBB"
HIGH, LOW = 130, 70  # percent: the loads of DeepRM's Figure 5 and of DeepRM2's Figure 4


def loads(evidence: Evidence) -> list[Shown]:
    """Return the figure over loads of a scenario; one for each paper if each has its own agents."""
    roles = evidence.roles
    title, stem = f"Mean slowdown against load, scenario {roles.scenario}", f"loads_{roles.scenario}"
    own = list(roles.each_at_its_load("slowdown", "mlp").values())
    pair = [name for second in roles.at("slowdown", "cnn", SECOND) for name in (second, roles.rival(second))]
    if not own or not pair:
        drawing = _draw_loads(evidence, title, roles.of("slowdown"))
        return [Shown(stem, title, drawing, judged(LOAD_CLAIMS, evidence))]
    found = []
    for name, paper, agents in (("deeprm", FOUR, own), ("deeprm2", THREE, pair)):
        claims = [claim for claim in LOAD_CLAIMS if claim.paper == paper]
        drawing = _draw_loads(evidence, title, agents)
        found.append(Shown(f"{stem}_{name}", title, drawing, judged(claims, evidence)))
    return found


def _draw_loads(evidence: Evidence, title: str, agents: list[str]) -> Figure:
    """Draw the papers' heuristics and, next to the best of them, agents and our strong rules, in panels."""
    rules = [*reversed(HEURISTICS), "random"]  # Tetris first
    others = [*agents, *(name for name in STRONG if name in evidence.policies)]
    names = {policy: _label(evidence, policy) for policy in (*rules, *others)}
    rows = [
        (name, load, *evidence.mean(SLOWDOWN, load, policy)[:3])
        for policy, name in names.items()
        for load in evidence.loads
    ]
    table = pd.DataFrame(rows, columns=["policy", "load", "slowdown", "slowdown_low", "slowdown_high"])
    looks = plots.looks(names.values(), [names[agent] for agent in agents])
    if len(evidence.loads) == 1:
        return plots.bars(table, title, looks)
    shown = [rules, *([rules[0], *others[at : at + 4]] for at in range(0, len(others), 4))]  # of up to five lines
    titles = ["The papers' heuristics", *["Agents and our rules, compared with tetris"] * (len(shown) - 1)]
    figure, panels = plots.panels(titles, 0.5 + 3.7 * len(shown))
    figure.suptitle(title, x=0.01, ha="left")
    for axes, policies in zip(panels, shown, strict=True):
        drawn = {names[policy]: looks[names[policy]] for policy in policies}
        plots.lines_by_load(axes, table, "slowdown", plots.SLOWDOWN, drawn)
    return figure


def _label(evidence: Evidence, policy: str) -> str:
    loads = evidence.roles.agents[policy].finetune.loads if policy in evidence.roles.agents else ()
    return f"{policy} (trained at {loads[0]} %)" if len(loads) == 1 else policy


def objectives(evidence: Evidence) -> list[Shown]:
    """Return the figures of both objectives, one for each paper's load."""
    name = evidence.roles.scenario
    found: dict[int, Shown] = {}
    for paper_load, claims in OBJECTIVE_CLAIMS.items():
        load = nearest(evidence.loads, paper_load)
        title = f"Both objectives at load {load}, scenario {name}"
        earlier = found[load].verdicts if load in found else []
        verdicts = [*earlier, *judged(claims, evidence)]
        found[load] = Shown(f"objectives_{name}_{load}", title, _draw_objectives(evidence, load, title), verdicts)
    return list(found.values())


def _draw_objectives(evidence: Evidence, load: int, title: str) -> Figure:
    """Draw heuristics, our strong rules, and agents trained for one of the two objectives; worst slowdown first."""
    agents = [name for goal in OBJECTIVES for name in evidence.roles.of(goal)]
    here = [name for name in agents if evidence.roles.agents[name].finetune.loads == (load,)]
    wanted = {*HEURISTICS, *({*STRONG, evidence.best[load]} & {*evidence.policies}), *(here or agents)}
    schemes = sorted(wanted, key=lambda name: (-evidence.mean(SLOWDOWN, load, name).value, name))
    figure, axes = plots.panels(list(LABELS.values()), 1.6 + 0.34 * len(schemes), across=True)
    figure.suptitle(title, x=0.01, ha="left")
    for panel, objective in zip(axes, OBJECTIVES, strict=True):
        _draw_bars(panel, evidence, load, objective, schemes)
    axes[1].set_yticklabels([])
    if agents:
        figure.supxlabel("Full colour: trained for this objective. Whiskers: intervals.", fontsize=10)
    return figure


def _draw_bars(axes: Axes, evidence: Evidence, load: int, objective: str, schemes: Sequence[str]) -> None:
    """Draw one objective; agents trained for it in full colour, those trained for the other one pale."""
    looks, agents = plots.looks(evidence.policies, evidence.roles.agents), evidence.roles.agents
    means = {name: evidence.mean(OBJECTIVES[objective], load, name) for name in schemes}
    for place, (name, mean) in enumerate(means.items()):
        own = name in evidence.roles.of(objective)
        colour = looks[name].colour if name in agents else PLAIN
        bar = axes.barh(place, mean.value, color=colour, xerr=whiskers([mean]), error_kw={"elinewidth": 1.2})
        bar.patches[0].set_alpha(1.0 if own or name not in agents else 0.35)
        weight, at = "bold" if own else "normal", (mean.high, place)
        axes.annotate(f"{mean.value:.2f}", at, (4, 0), textcoords="offset points", va="center", fontweight=weight)
    axes.set_yticks(range(len(schemes)), schemes)
    axes.set_xlabel(LABELS[objective])
    axes.grid(visible=False, axis="y")
    axes.set_xlim(0, 1.18 * max(mean.high for mean in means.values()))


def _agents_rise(evidence: Evidence, agent: str) -> Finding:
    """Judge whether slowdown rises from each load to the next; jobsets of two loads are drawn separately, unpaired."""
    policies = evidence.roles.of("slowdown")
    if not policies:
        raise CannotTellError(f"no agent of scenario {evidence.roles.scenario} is trained for slowdown")
    if len(evidence.loads) == 1:
        raise CannotTellError(f"there is one load only, {evidence.loads[0]}")
    means = {name: [evidence.means(SLOWDOWN, load, name) for load in evidence.loads] for name in policies}
    words = [above(*evidence.span(high - low)) for line in means.values() for low, high in pairwise(line)]
    ends = ", ".join(f"{name} {line[0][0]:.2f} to {line[-1][0]:.2f}" for name, line in means.items())
    steps = f"slowdown clearly rises in {words.count('yes')} of {len(words)} steps to the next load"
    n = evidence.mean(SLOWDOWN, evidence.loads[-1], policies[0]).n
    where = f"from load {evidence.loads[0]} to {evidence.loads[-1]}"
    return Finding(f"{where}: {ends}; {steps}, falls in {words.count('no')} (n = {n} jobsets a load)", together(words))


def _first(against: str, high: bool = False) -> Find:
    """Return the comparison of DeepRM with a policy at each (high) load: of its own agent, or the leading one."""

    def find(evidence: Evidence, _: str) -> list[Gap]:
        roles, from_load = evidence.roles, evidence.loads[len(evidence.loads) // 2] if high else 0
        agents = roles.each_at_its_load("slowdown", "mlp")
        agents = agents or dict.fromkeys(evidence.loads, roles.lead("slowdown", "mlp"))
        found = [evidence.gap(SLOWDOWN, load, agent, against) for load, agent in agents.items() if load >= from_load]
        if not found:
            raise CannotTellError(f"no agent is trained at a load from {from_load}")
        return found

    return find


def _on_one_side(low: bool) -> Find:
    """Return the comparison of Tetris with Random at the loads on one side of where the paper's lines cross."""

    def find(evidence: Evidence, agent: str) -> list[Gap]:
        found = [load for load in evidence.loads if (load < CROSSING if low else load > CROSSING)]
        if not found:
            raise CannotTellError(f"there is no load {'under' if low else 'over'} {CROSSING} %")
        return [evidence.gap(SLOWDOWN, load, SECOND_TETRIS, "random") for load in found]

    return find


def _second(objective: str = "slowdown", near: int | None = None) -> tuple[Who, Who]:
    """Return the choices of the agents that stand for DeepRM2 and for its rival, DeepRM."""

    def second(evidence: Evidence, _: str) -> str:
        load = SECOND if near is None else nearest(evidence.loads, near)
        return evidence.roles.lead(objective, "cnn", load)

    return second, lambda evidence, _: evidence.roles.rival(second(evidence, _))


def _best(objective: str) -> list[Part]:
    """Return the parts of "DeepRM is best on an objective": below heuristics, and DeepRM trained for the other."""
    (rest,) = (goal for goal in OBJECTIVES if goal != objective)

    def against(other: str) -> Find:
        def find(evidence: Evidence, agent: str) -> list[Gap]:
            roles, load = evidence.roles, nearest(evidence.loads, HIGH)
            lead = roles.lead(objective, "mlp", load)
            opponent = roles.lead(other, "mlp", load) if other in OBJECTIVES else other
            seeds = dict.fromkeys([lead, *roles.at(objective, "mlp", load)])  # agents that differ only in their seed
            return [evidence.gap(OBJECTIVES[objective], load, name, opponent) for name in seeds]

        return find

    others = {name: f"below {NAMES[name]}" for name in HEURISTICS} | {rest: f"below DeepRM trained for {WORDS[rest]}"}
    return [compared(part, BELOW, against(name)) for name, part in others.items()]


FOUR, THREE = "DeepRM, Figure 4", "DeepRM2, Figure 3"
STEP_DOWN = "slowdown clearly falls from a load to the next"
LOAD_CLAIMS = [
    *claims_of(
        FOUR,
        {
            "Mean slowdown rises with load, under learned schedulers, too": [Part(WHOLE, STEP_DOWN, _agents_rise)],
            "SJF has a lower slowdown than Packer, because it starts small jobs first": [
                compared(WHOLE, BELOW, versus("sjf", "packer"))
            ],
            "Tetris has a lower slowdown than both SJF and Packer": [
                compared("than SJF", BELOW, versus("tetris", "sjf")),
                compared("than Packer", BELOW, versus("tetris", "packer")),
            ],
            "DeepRM is comparable to SJF, Packer and Tetris, and often better": [
                compared(f"{word} {NAMES[name]}", rule, _first(name))
                for name in HEURISTICS
                for word, rule in (("nowhere worse than", NOT_ABOVE), ("often better than", OFTEN_BELOW))
            ],
            "DeepRM has a lower slowdown than Tetris at higher loads": [
                compared(WHOLE, BELOW, _first("tetris", high=True))
            ],
        },
    ),
    *claims_of(
        THREE,
        {
            "DeepRM2 is below DeepRM, and DeepRM below SJF, at every load from 10 to 190 %": [
                compared("DeepRM2 below DeepRM", BELOW, versus(*_second())),
                compared("DeepRM below SJF", BELOW, versus(_second()[1], "sjf")),
            ],
            "SJF is below Tetris and Random, which are both high": [
                compared("below Tetris", BELOW, versus("sjf", SECOND_TETRIS)),
                compared("below Random", BELOW, versus("sjf", "random")),
            ],
            "Tetris is below Random at loads under 90 %, and above it over 90 %": [
                compared("below Random under 90 %", BELOW, _on_one_side(low=True)),
                compared("above Random over 90 %", ABOVE, _on_one_side(low=False)),
            ],
        },
    ),
]
OBJECTIVE_CLAIMS = {
    HIGH: claims_of(
        "DeepRM, Figure 5",
        {
            "At 130 % Tetris is before SJF and Packer on both objectives": [
                compared(f"{WORDS[goal]}, before {NAMES[other]}", BELOW, versus("tetris", other, metric, HIGH))
                for goal, metric in OBJECTIVES.items()
                for other in ("sjf", "packer")
            ],
            "At 130 % DeepRM trained for slowdown has the lowest slowdown": _best("slowdown"),
            "At 130 % DeepRM trained for completion time has the lowest completion time": _best("completion_time"),
        },
    ),
    LOW: claims_of(
        "DeepRM2, Figure 4",
        {
            "At 70 % DeepRM2 has a lower slowdown than DeepRM": [
                compared(WHOLE, BELOW, versus(*_second("slowdown", LOW), SLOWDOWN, LOW))
            ],
            "At 70 % DeepRM2 trained for completion time has a lower one than DeepRM trained for it": [
                compared(WHOLE, BELOW, versus(*_second("completion_time", LOW), "completion_time", LOW))
            ],
        },
    ),
}
