"""Slowdown against load: DeepRM's Figure 4 and DeepRM2's Figure 3."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import pandas as pd

from pipeline.comparing import plots
from pipeline.papers.evidence import Evidence, Gap
from pipeline.papers.roles import HEURISTICS
from pipeline.papers.verdicts import (
    CannotTellError,
    Claim,
    Shown,
    Verdict,
    decided,
    every,
    judged,
    often,
    over_loads,
    together,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

METRIC = "mean_slowdown"
COMPARABLE = 0.05  # a share: no farther above another policy
SECOND = 100  # percent: what DeepRM2's Figure 5 trains at; Figure 3 names no load
TRAINED_THERE = "the agent trained there"
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
    """Return the papers' policies: heuristics, random, and some agents."""
    wanted = ("random", *HEURISTICS, *agents)
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


def _rises(evidence: Evidence) -> Verdict:
    if len(evidence.loads) == 1:
        raise CannotTellError(f"there is one load only, {evidence.loads[0]}")
    first, last = evidence.loads[0], evidence.loads[-1]
    policies = _policies(evidence, evidence.roles.of("slowdown"))
    means = {p: [evidence.mean(METRIC, load, p).value for load in evidence.loads] for p in policies}
    steadily = [policy for policy, line in means.items() if all(low < high for low, high in pairwise(line))]
    in_all = sum(line[0] < line[-1] for line in means.values())
    ends = ", ".join(f"{policy} {line[0]:.2f} to {line[-1]:.2f}" for policy, line in means.items())
    found = f"from load {first} to {last}: {ends}; {len(steadily)} of {len(means)} rise from each load to the next"
    agrees = decided(len(steadily) == len(means), in_part=in_all > 0)
    return Verdict(f"{found} (n = {evidence.mean(METRIC, last, 'sjf').n} jobsets a load)", agrees)


def _sjf_below_packer(evidence: Evidence) -> Verdict:
    found = evidence.gaps(METRIC, "sjf", "packer")
    return Verdict(over_loads(found, evidence.confidence), often(found))


def _tetris_below_both(evidence: Evidence) -> Verdict:
    against = [evidence.gaps(METRIC, "tetris", other) for other in ("sjf", "packer")]
    text = "; ".join(over_loads(found, evidence.confidence) for found in against)
    return Verdict(f"{text}. Our tetris's knob is tuned on validation jobsets", together(map(often, against)))


def _first(evidence: Evidence) -> dict[int, str]:
    """Return who stands for DeepRM at which load: its agent, or where there are such the one trained at that load."""
    alone = evidence.roles.each_at_its_load("slowdown", "mlp")
    return alone or dict.fromkeys(evidence.loads, evidence.roles.lead("slowdown", "mlp"))


def _first_gaps(evidence: Evidence, against: Mapping[int, str]) -> list[Gap]:
    """Compare DeepRM with a policy at each load, by the agent that stands for it there."""
    agents = _first(evidence)
    found = [evidence.gap(METRIC, load, agent, against[load]) for load, agent in agents.items() if load in against]
    return found if len({*agents.values()}) == 1 else [gap._replace(policy=TRAINED_THERE) for gap in found]


def _everywhere(evidence: Evidence, against: str) -> str:
    """Return how each agent trained at one load alone does over all loads."""
    agents = {*_first(evidence).values()}
    lines = {
        name: evidence.gaps(METRIC, name, against) for name in evidence.roles.of("slowdown", "mlp") if name in agents
    }
    if len(lines) == 1:
        return ""
    each = [f"{name} {_count(line, -1)} and {_count(line, 1)}" for name, line in lines.items()]
    return f"; over all {len(evidence.loads)} loads, below {against} and above it at: {', '.join(each)}"


def _count(found: Sequence[Gap], way: int) -> int:
    return sum(gap.side == way for gap in found)


def _learned_among_the_best(evidence: Evidence) -> Verdict:
    agents = _first(evidence)
    agent = next(iter(agents.values()))
    against = [_first_gaps(evidence, dict.fromkeys(evidence.loads, other)) for other in HEURISTICS]
    text = "; ".join(over_loads(found, evidence.confidence) for found in against)
    text += _everywhere(evidence, HEURISTICS[0])
    best = _first_gaps(evidence, evidence.best)
    below, above = _count(best, -1), _count(best, 1)
    ours = f"against the best of all our heuristics (by validation) below at {below} of {len(best)}, above at {above}"
    note = f"comparable means at most {100 * COMPARABLE:g} % above"
    word = together(often(found, COMPARABLE) for found in against)
    protocol = evidence.roles.protocol(agent) if len({*agents.values()}) == 1 else _protocols(evidence)
    return Verdict(f"{text}; {ours}; {note}. Ours: {protocol}", word)


def _protocols(evidence: Evidence) -> str:
    return "; ".join(f"{name}: {evidence.roles.protocol(name)}" for name in _first(evidence).values())


def _learned_below_tetris_at_high_loads(evidence: Evidence) -> Verdict:
    high = evidence.loads[len(evidence.loads) // 2 :]
    found = _first_gaps(evidence, dict.fromkeys(high, "tetris"))
    if not found:
        raise CannotTellError(f"no agent is trained at a load from {high[0]}")
    text = over_loads(found, evidence.confidence) + _everywhere(evidence, "tetris")
    return Verdict(f"loads from {found[0].load}: {text}", every(found))


def _learned_in_order(evidence: Evidence) -> Verdict:
    first = evidence.roles.lead("slowdown", "cnn", SECOND)
    second = evidence.roles.rival(first)
    pairs = [evidence.gaps(METRIC, first, second), evidence.gaps(METRIC, second, "sjf")]
    text = "; ".join(over_loads(found, evidence.confidence) for found in pairs)
    budgets = f"{first}: {evidence.roles.protocol(first)}; {second}: {evidence.roles.protocol(second)}"
    return Verdict(f"{text}. Ours, {budgets}", together(map(every, pairs)))


def _sjf_below_tetris_and_random(evidence: Evidence) -> Verdict:
    pairs = [evidence.gaps(METRIC, "sjf", other) for other in ("tetris", "random")]
    text = "; ".join(over_loads(found, evidence.confidence) for found in pairs)
    return Verdict(f"{text}. Our tetris's knob is tuned on validation jobsets", together(map(every, pairs)))


def _tetris_crosses_random(evidence: Evidence) -> Verdict:
    low = [evidence.gap(METRIC, load, "tetris", "random") for load in evidence.loads if load < CROSSING]
    high = [evidence.gap(METRIC, load, "random", "tetris") for load in evidence.loads if load > CROSSING]
    sides = {"below": low, "above": high}
    text = [f"{name} {CROSSING} %: {over_loads(found, evidence.confidence)}" for name, found in sides.items() if found]
    words = [every(found) for found in sides.values() if found]
    if len(words) < 2:
        raise CannotTellError(f"there are no loads on both sides of {CROSSING} %; {'; '.join(text)}")
    return Verdict("; ".join(text), together(words))


FOUR, THREE = "DeepRM, Figure 4", "DeepRM2, Figure 3"
CLAIMS = (
    Claim(FOUR, "Mean slowdown rises with load, under every scheduler", _rises),
    Claim(FOUR, "SJF has a lower slowdown than Packer, for it starts small jobs first", _sjf_below_packer),
    Claim(FOUR, "Tetris has a lower slowdown than both SJF and Packer", _tetris_below_both),
    Claim(FOUR, "DeepRM is comparable to SJF, Packer and Tetris, and often better", _learned_among_the_best),
    Claim(FOUR, "DeepRM has a lower slowdown than Tetris at higher loads", _learned_below_tetris_at_high_loads),
    Claim(THREE, "DeepRM2 is below DeepRM, and DeepRM below SJF, at every load from 10 to 190 %", _learned_in_order),
    Claim(THREE, "SJF is below Tetris and Random, which are both high", _sjf_below_tetris_and_random),
    Claim(THREE, "Tetris is below Random at loads under 90 %, and above it over 90 %", _tetris_crosses_random),
)
