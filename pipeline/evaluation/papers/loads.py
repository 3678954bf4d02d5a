"""Slowdown against load: DeepRM's Figure 4 and DeepRM2's Figure 3."""

from itertools import pairwise
from typing import TYPE_CHECKING

import pandas as pd

from pipeline.evaluation import plots
from pipeline.evaluation.papers.cast import HEURISTICS
from pipeline.evaluation.papers.evidence import Evidence, Gap
from pipeline.evaluation.papers.verdicts import (
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
CROSSING = 90  # percent: where DeepRM2's Figure 3 has the lines of Tetris and Random cross


def shown(evidence: Evidence) -> list[Shown]:
    """Return the figure of a scenario with arrivals over time."""
    title = f"Mean slowdown against load, scenario {evidence.cast.scenario}"
    return [Shown(f"loads_{evidence.cast.scenario}", title, _draw(evidence, title), judged(CLAIMS, evidence))]


def _policies(evidence: Evidence) -> list[str]:
    """Return the papers' policies: heuristics, random, and agents trained for slowdown."""
    wanted = ("random", *HEURISTICS, *evidence.cast.of("slowdown"))
    return [policy for policy in evidence.policies if policy in wanted]


def _draw(evidence: Evidence, title: str) -> "Figure":
    rows = []
    for policy in _policies(evidence):
        for load in evidence.loads:
            mean = evidence.mean(METRIC, load, policy)
            rows.append((policy, load, mean.value, mean.low, mean.high))
    table = pd.DataFrame(rows, columns=["policy", "load", "slowdown", "slowdown_low", "slowdown_high"])
    looks = plots.looks(evidence.policies, evidence.cast.agents)
    return plots.by_load(table, title, {policy: looks[policy] for policy in _policies(evidence)})


def gaps(evidence: Evidence, policy: str, against: str) -> list[Gap]:
    """Compare two policies at every load."""
    return [evidence.gap(METRIC, load, policy, against) for load in evidence.loads]


def _rises(evidence: Evidence) -> Verdict:
    if len(evidence.loads) == 1:
        raise CannotTellError(f"there is one load only, {evidence.loads[0]}")
    first, last = evidence.loads[0], evidence.loads[-1]
    means = {p: [evidence.mean(METRIC, load, p).value for load in evidence.loads] for p in _policies(evidence)}
    steadily = [policy for policy, line in means.items() if all(low < high for low, high in pairwise(line))]
    in_all = sum(line[0] < line[-1] for line in means.values())
    ends = ", ".join(f"{policy} {line[0]:.2f} to {line[-1]:.2f}" for policy, line in means.items())
    found = f"from load {first} to {last}: {ends}; {len(steadily)} of {len(means)} rise from each load to the next"
    agrees = decided(len(steadily) == len(means), in_part=in_all > 0)
    return Verdict(f"{found} (n = {evidence.mean(METRIC, last, 'sjf').n} jobsets a load)", agrees)


def _sjf_below_packer(evidence: Evidence) -> Verdict:
    found = gaps(evidence, "sjf", "packer")
    return Verdict(over_loads(found, evidence.confidence), often(found))


def _tetris_below_both(evidence: Evidence) -> Verdict:
    against = [gaps(evidence, "tetris", other) for other in ("sjf", "packer")]
    said = "; ".join(over_loads(found, evidence.confidence) for found in against)
    return Verdict(f"{said}. Our tetris's knob is tuned on validation jobsets", together(map(often, against)))


def _learned_among_the_best(evidence: Evidence) -> Verdict:
    agent = evidence.cast.lead("slowdown", "mlp")
    against = [gaps(evidence, agent, other) for other in HEURISTICS]
    said = "; ".join(over_loads(found, evidence.confidence) for found in against)
    best = [evidence.gap(METRIC, load, agent, evidence.best[load]) for load in evidence.loads]
    below, above = (sum(gap.side == way for gap in best) for way in (-1, 1))
    ours = f"against the best of all our heuristics (by validation) below at {below} of {len(best)}, above at {above}"
    note = f"comparable means at most {100 * COMPARABLE:g} % above"
    word = together(often(found, COMPARABLE) for found in against)
    return Verdict(f"{said}; {ours}; {note}. Ours: {evidence.cast.protocol(agent)}", word)


def _learned_below_tetris_at_high_loads(evidence: Evidence) -> Verdict:
    agent = evidence.cast.lead("slowdown", "mlp")
    found = gaps(evidence, agent, "tetris")[len(evidence.loads) // 2 :]
    return Verdict(f"loads from {found[0].load}: {over_loads(found, evidence.confidence)}", every(found))


def _learned_in_order(evidence: Evidence) -> Verdict:
    first, second = evidence.cast.lead("slowdown", "cnn"), evidence.cast.lead("slowdown", "mlp")
    pairs = [gaps(evidence, first, second), gaps(evidence, second, "sjf")]
    said = "; ".join(over_loads(found, evidence.confidence) for found in pairs)
    budgets = f"{first}: {evidence.cast.protocol(first)}; {second}: {evidence.cast.protocol(second)}"
    return Verdict(f"{said}. Ours, {budgets}", together(map(every, pairs)))


def _sjf_below_tetris_and_random(evidence: Evidence) -> Verdict:
    pairs = [gaps(evidence, "sjf", other) for other in ("tetris", "random")]
    said = "; ".join(over_loads(found, evidence.confidence) for found in pairs)
    return Verdict(f"{said}. Our tetris's knob is tuned on validation jobsets", together(map(every, pairs)))


def _tetris_crosses_random(evidence: Evidence) -> Verdict:
    low = [evidence.gap(METRIC, load, "tetris", "random") for load in evidence.loads if load < CROSSING]
    high = [evidence.gap(METRIC, load, "random", "tetris") for load in evidence.loads if load > CROSSING]
    sides = {"below": low, "above": high}
    said = [f"{name} {CROSSING} %: {over_loads(found, evidence.confidence)}" for name, found in sides.items() if found]
    words = [every(found) for found in sides.values() if found]
    if len(words) < 2:
        raise CannotTellError(f"there are no loads on both sides of {CROSSING} %; {'; '.join(said)}")
    return Verdict("; ".join(said), together(words))


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
