"""Slowdown against load: DeepRM's Figure 4 and DeepRM2's Figure 3."""

from itertools import pairwise
from typing import TYPE_CHECKING

import pandas as pd

from pipeline.comparing import plots
from pipeline.papers.evidence import Evidence, Gap
from pipeline.papers.roles import HEURISTICS, NAMES, SECOND_TETRIS, STRONG
from pipeline.papers.rules import ABOVE, BELOW, NOT_ABOVE, OFTEN_BELOW, above, together
from pipeline.papers.verdicts import WHOLE, CannotTellError, Claim, Find, Part, Shown, Source, Verdict, compared, judged

if TYPE_CHECKING:
    from matplotlib.figure import Figure

METRIC = "mean_slowdown"
SECOND = 100  # percent: what DeepRM2's Figure 5 trains at; Figure 3 names no load
CROSSING = 90  # percent: where DeepRM2's Figure 3 has the lines of Tetris and Random cross


def shown(evidence: Evidence) -> list[Shown]:
    """Return the figure of a scenario with arrivals over time; one a paper where each has agents of its own."""
    roles = evidence.roles
    title, stem = f"Mean slowdown against load, scenario {roles.scenario}", f"loads_{roles.scenario}"
    own = list(roles.each_at_its_load("slowdown", "mlp").values())
    pair = [name for second in roles.at("slowdown", "cnn", SECOND) for name in (second, roles.rival(second))]
    if not own or not pair:
        agents = roles.of("slowdown")
        return [Shown(stem, title, _draw(evidence, title, agents), judged(CLAIMS, evidence))]
    return [
        Shown(f"{stem}_deeprm", title, _draw(evidence, title, own), judged(_of(FOUR), evidence)),
        Shown(f"{stem}_deeprm2", title, _draw(evidence, title, pair), judged(_of(THREE), evidence)),
    ]


def _of(paper: str) -> list[Claim]:
    return [claim for claim in CLAIMS if claim.paper == paper]


def _policies(evidence: Evidence, agents: list[str]) -> list[str]:
    """Return the papers' policies (heuristics, random, some agents), and our strong rules."""
    wanted = ("random", *HEURISTICS, *STRONG, *agents)
    return [policy for policy in evidence.policies if policy in wanted]


def _draw(evidence: Evidence, title: str, agents: list[str]) -> "Figure":
    policies, rows = _policies(evidence, agents), []
    names = {policy: _named(evidence, policy) for policy in policies}
    for policy in policies:
        for load in evidence.loads:
            mean = evidence.mean(METRIC, load, policy)
            rows.append((names[policy], load, mean.value, mean.low, mean.high))
    table = pd.DataFrame(rows, columns=["policy", "load", "slowdown", "slowdown_low", "slowdown_high"])
    looks = plots.looks(evidence.policies, evidence.roles.agents)
    return plots.by_load(table, title, {names[policy]: looks[policy] for policy in policies})


def _named(evidence: Evidence, policy: str) -> str:
    """Return what a line is called: an agent that was trained at one load alone says so."""
    loads = evidence.roles.agents[policy].finetune.loads if policy in evidence.roles.agents else ()
    return f"{policy} (trained at {loads[0]} %)" if len(loads) == 1 else policy


def _agents_rise(evidence: Evidence, agent: str) -> Verdict:
    """Judge whether slowdown rises from each load to the next; at two loads jobsets are drawn apart, and unpaired."""
    policies = evidence.roles.of("slowdown")
    if not policies:
        raise CannotTellError(f"no agent of scenario {evidence.roles.scenario} is trained for slowdown")
    if len(evidence.loads) == 1:
        raise CannotTellError(f"there is one load only, {evidence.loads[0]}")
    means = {name: [evidence.means(METRIC, load, name) for load in evidence.loads] for name in policies}
    words = [above(*evidence.span(high - low)) for line in means.values() for low, high in pairwise(line)]
    ends = ", ".join(f"{name} {line[0][0]:.2f} to {line[-1][0]:.2f}" for name, line in means.items())
    steps = f"{words.count('yes')} of {len(words)} steps to the next load go up, by the whole interval"
    n = evidence.mean(METRIC, evidence.loads[-1], policies[0]).n
    where = f"from load {evidence.loads[0]} to {evidence.loads[-1]}"
    return Verdict(f"{where}: {ends}; {steps}, {words.count('no')} down (n = {n} jobsets a load)", together(words))


def _between(policy: str, against: str) -> Find:
    return lambda evidence, _: evidence.gaps(METRIC, policy, against)


def _first(evidence: Evidence, against: str, from_load: int = 0) -> list[Gap]:
    """Compare DeepRM with a policy at each load: its agent, or where there are such those trained at one load each."""
    alone = evidence.roles.each_at_its_load("slowdown", "mlp")
    agents = alone or dict.fromkeys(evidence.loads, evidence.roles.lead("slowdown", "mlp"))
    found = [evidence.gap(METRIC, load, agent, against) for load, agent in agents.items() if load >= from_load]
    if not found:
        raise CannotTellError(f"no agent is trained at a load from {from_load}")
    return found


def _beside(name: str) -> list[Part]:
    """Return the parts of DeepRM's claim about one heuristic."""
    rules = {"nowhere worse than": NOT_ABOVE, "often better than": OFTEN_BELOW}
    return [compared(f"{word} {NAMES[name]}", rule, lambda made, _: _first(made, name)) for word, rule in rules.items()]


def _pair(evidence: Evidence) -> tuple[str, str]:
    """Return who stands for DeepRM2, and for DeepRM beside it."""
    second = evidence.roles.lead("slowdown", "cnn", SECOND)
    return second, evidence.roles.rival(second)


def _on_one_side(low: bool) -> Find:
    """Return the comparison of Tetris with Random at the loads on one side of where the paper's lines cross."""

    def find(evidence: Evidence, agent: str) -> list[Gap]:
        found = [load for load in evidence.loads if (load < CROSSING if low else load > CROSSING)]
        if not found:
            raise CannotTellError(f"there is no load {'under' if low else 'over'} {CROSSING} %")
        return [evidence.gap(METRIC, load, SECOND_TETRIS, "random") for load in found]

    return find


FOUR, THREE = Source("DeepRM, Figure 4"), Source("DeepRM2, Figure 3")
STEP_DOWN = "slowdown falls, by the whole interval, from a load to the next"
CLAIMS = (
    FOUR.claim("Mean slowdown rises with load, under learned schedulers, too", Part(WHOLE, STEP_DOWN, _agents_rise)),
    FOUR.claim(
        "SJF has a lower slowdown than Packer, for it starts small jobs first",
        compared(WHOLE, BELOW, _between("sjf", "packer")),
    ),
    FOUR.claim(
        "Tetris has a lower slowdown than both SJF and Packer",
        compared("than SJF", BELOW, _between("tetris", "sjf")),
        compared("than Packer", BELOW, _between("tetris", "packer")),
    ),
    FOUR.claim(
        "DeepRM is comparable to SJF, Packer and Tetris, and often better",
        *(part for name in HEURISTICS for part in _beside(name)),
    ),
    FOUR.claim(
        "DeepRM has a lower slowdown than Tetris at higher loads",
        compared(WHOLE, BELOW, lambda made, _: _first(made, "tetris", made.loads[len(made.loads) // 2])),
    ),
    THREE.claim(
        "DeepRM2 is below DeepRM, and DeepRM below SJF, at every load from 10 to 190 %",
        compared("DeepRM2 below DeepRM", BELOW, lambda made, _: made.gaps(METRIC, *_pair(made))),
        compared("DeepRM below SJF", BELOW, lambda made, _: made.gaps(METRIC, _pair(made)[1], "sjf")),
    ),
    THREE.claim(
        "SJF is below Tetris and Random, which are both high",
        compared("below Tetris", BELOW, _between("sjf", SECOND_TETRIS)),
        compared("below Random", BELOW, _between("sjf", "random")),
    ),
    THREE.claim(
        "Tetris is below Random at loads under 90 %, and above it over 90 %",
        compared("below Random under 90 %", BELOW, _on_one_side(low=True)),
        compared("above Random over 90 %", ABOVE, _on_one_side(low=False)),
    ),
)
