"""The answer for every scenario: the policy to use, its advantage with an interval, and policies that are no better."""

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import pandas as pd

from pipeline.comparing.comparing import BEST, REFERENCES, START
from pipeline.comparing.statistics import ALL
from pipeline.comparing.words import listed, percent, relative, side, span
from pipeline.report.tables import SPOKEN

SCALES = (2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 1000.0)  # percent from the best heuristic to the edge of a picture
FAR = 0.25  # a relative difference that may be beyond the edge
RENEW = "dvc repro advise@{site}   # reports/advice.html"
NO_STARVATION = "The windows below start from an empty cluster, so they cannot show starvation and choose no order."
COMMAND = "python -m pipeline schedule jobs.csv --scenario {scenario} --policy {policy} --out schedule.csv"


class Bar(NamedTuple):
    """One policy in the picture of a scenario: its difference from the best heuristic over all loads."""

    policy: str
    agent: bool
    side: str  # below, above or open
    text: str  # the difference and its interval, in percent
    at: float  # place of the difference, percent of the width
    low: float  # of the interval's ends
    high: float
    beyond: bool  # it is beyond the edge


class Evidence(NamedTuple):
    """Tables of the comparison."""

    slowdown: pd.DataFrame  # COMPARISON
    delay: pd.DataFrame  # DELAY; it decides where all agents of a scenario were trained for it
    objectives: pd.DataFrame  # OBJECTIVES
    words: Mapping[str, str] = MappingProxyType({})  # names for --policy of policies that are not models


class Answer(NamedTuple):
    """The answer for one scenario."""

    scenario: str
    what: str  # compared measure
    stream: bool
    use: str  # what to use
    why: str
    command: str  # that runs it
    others: list[tuple[str, str]]  # loads at which another policy is better, and that policy
    bars: list[Bar]
    scale: float  # percent at the picture's edges
    n: int  # test jobsets
    absent: list[str]  # agents of the previous scenario that cannot run here
    not_better: str  # "" if all are better
    trained_for: list[str]  # results of agents trained for another measure, by that measure


def answers(evidence: Evidence, agents: Mapping[str, str], bounded: Collection[str], streams: set[str]) -> list[Answer]:
    """Return the answer of every scenario; a stream follows the short runs of its agents.

    `agents` are learned policies with their objectives. Scenarios in `bounded` have bounded slowdown.
    """
    found = []
    for name, rows in evidence.slowdown.groupby("scenario", sort=False):
        if not (rows["against"] == BEST).any():
            continue
        goals = {agents[policy] for policy in set(rows["policy"]) & set(agents)}
        waits = evidence.delay[evidence.delay["scenario"] == name]
        by_wait = goals == {"delay"} and len(waits) > 0
        what = "waiting time" if by_wait else "bounded slowdown" if name in bounded else "slowdown"
        found.append((str(name), what, waits if by_wait else rows))
    home: list[str] = []
    shown = []
    for name, what, rows in _ordered(found, agents, streams):
        here = _there(rows, agents)
        absent = [agent for agent in home if agent not in here] if name in streams else []
        answer = _answer(name, what, rows, here, name in streams, absent, evidence.words)
        shown.append(answer._replace(trained_for=_trained_for(evidence.objectives, answer, agents)))
        home = here
    return shown


def _ordered(
    found: list[tuple[str, str, pd.DataFrame]], agents: Mapping[str, str], streams: set[str]
) -> list[tuple[str, str, pd.DataFrame]]:
    """Put every stream after the first scenario that shares an agent with it."""
    ordered = [one for one in found if one[0] not in streams]
    for one in found:
        if one[0] in streams:
            mine = set(_there(one[2], agents))
            homes = (k + 1 for k, other in enumerate(ordered) if mine & set(_there(other[2], agents)))
            ordered.insert(next(homes, len(ordered)), one)
    return ordered


def _there(rows: pd.DataFrame, agents: Mapping[str, str]) -> list[str]:
    return [agent for agent in agents if (rows["policy"] == agent).any()]


def _answer(
    name: str, what: str, rows: pd.DataFrame, here: list[str], stream: bool, absent: list[str], words: Mapping[str, str]
) -> Answer:
    compared = rows[rows["against"] == BEST]
    over = compared[compared["load"] == ALL].sort_values("mean", kind="stable").set_index("policy")
    named, single = best_by_load(rows, here), compared[compared["load"] != ALL]
    learned = over[over.index.isin(here)]
    plain = over[over.index.isin([name for name in REFERENCES if name in over.index][:1])]
    shown = pd.concat([learned, plain])
    near = shown[shown["difference"].abs() < FAR]
    scale = _scale(near if len(near) else shown)
    bars = [_bar(str(policy), row, policy in here, scale) for policy, row in shown.iterrows()]
    use, why, (first, *others) = _advice(what, learned, single, named, words)
    worse = _not_better(learned, single[single["policy"].isin(here)])
    command, n = COMMAND.format(scenario=name, policy=first[1]), int(over["n"].iloc[0])
    return Answer(name, what, stream, use, why, command, others, bars, scale, n, absent, worse, [])


def advised(answer: Answer, sites: Mapping[str, tuple[str, str]]) -> Answer:
    """Replace the answer for a site's scenario by its advice; `sites` has the orders to use, with reasons."""
    if answer.scenario not in sites:
        return answer
    use, why = sites[answer.scenario]
    command = RENEW.format(site=answer.scenario)
    return answer._replace(use=use, why=f"{why}. {NO_STARVATION}", command=command, others=[])


def _trained_for(objectives: pd.DataFrame, answer: Answer, agents: Mapping[str, str]) -> list[str]:
    """Return the results of agents by their own objective, if the table shows another one."""
    shown = "delay" if answer.what == "waiting time" else answer.what
    over = objectives[(objectives["load"] == ALL) & (objectives["scenario"] == answer.scenario)]
    own = over[over["policy"].isin(agents) & (over["objective"] != shown) & over["against"].isin(REFERENCES)]
    said = []
    for agent, rows in own.groupby("policy", sort=False):
        row = rows.iloc[0]
        said.append(f"{agent} for {row['objective']}: {relative(row)} from {SPOKEN[row['against']]} by it")
    return said


def best_by_load(rows: pd.DataFrame, agents: Collection[str]) -> dict[str, str]:
    """Return the heuristic that was best at each load on validation: the only one not compared with the best there."""
    learned = {*agents, *(START.format(agent=agent) for agent in agents), BEST}
    compared = rows[rows["against"] == BEST]
    policies = [*dict.fromkeys([*rows["policy"], *rows["against"]])]
    heuristics = [name for name in policies if name not in learned]
    by_load = compared[compared["load"] != ALL].groupby("load")["policy"].agg(set)
    missing = {str(load): [name for name in heuristics if name not in there] for load, there in by_load.items()}
    return {load: names[0] if len(names) == 1 else BEST for load, names in missing.items()}


def _advice(
    what: str, learned: pd.DataFrame, single: pd.DataFrame, named: Mapping[str, str], words: Mapping[str, str]
) -> tuple[str, str, list[tuple[str, str]]]:
    plain = _ranges(named)
    heuristics = listed([f"{policy} at {loads}" if len(plain) > 1 else policy for loads, policy in plain])
    if learned.empty:
        return heuristics, "the best on validation jobsets, and tuned there; no agent was scored.", plain
    agent, best = str(learned.index[0]), learned.iloc[0]
    low, high = best["difference_low"], best["difference_high"]
    if side(low, high) == "below":
        sure = f"{-100 * best['difference']:.1f} % below the best heuristic ({heuristics}), interval {_ends(low, high)}"
        return agent, f"mean {what} {best['mean']:.2f}, {sure}.", [("", words.get(agent, f"models/{agent}"))]
    below = single[(single["policy"] == agent) & (single["difference_high"] < 0)]
    nearest = f"no agent is clearly better over all loads; {agent} comes nearest, {_ends(low, high)}"
    if below.empty:
        return heuristics, f"tuned on validation jobsets; {nearest}.", plain
    where = _loads(list(below["load"]), named)
    why = f"tuned on validation jobsets; {nearest}. At {where} load {agent} is clearly better."
    return heuristics, why, [*plain, (where, words.get(agent, f"models/{agent}"))]


def _ends(low: float, high: float) -> str:
    """Return the interval of a difference in words.

    >>> _ends(-0.298, -0.1), _ends(-0.01, 0.005), _ends(0.1, 0.2)
    ('10.0 to 29.8 % below', '1.0 % below to 0.5 % above it', '10.0 to 20.0 % above it')
    """
    ends = {
        "below": f"{-100 * high:.1f} to {-100 * low:.1f} % below",
        "above": f"{100 * low:.1f} to {100 * high:.1f} % above it",
    }
    return ends.get(side(low, high), f"{-100 * low:.1f} % below to {100 * high:.1f} % above it")


def _ranges(named: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the loads at which each heuristic is best, with its name, the one with the most loads first."""
    policies = dict.fromkeys(named.values())
    loads = {policy: [load for load, best in named.items() if best == policy] for policy in policies}
    return [(_loads(mine, named), policy) for policy, mine in sorted(loads.items(), key=lambda pair: -len(pair[1]))]


def _loads(loads: Sequence[str], every: Collection[str]) -> str:
    """Return some of all loads in words.

    >>> every = ["010", "070", "090", "110"]
    >>> _loads(["010"], every), _loads(["070", "090", "110"], every), _loads(["010", "070", "110"], every)
    ('10 %', '70 to 110 %', '10, 70 and 110 %')
    """
    words, between = [load.lstrip("0") for load in loads], [load for load in every if loads[0] <= load <= loads[-1]]
    return f"{words[0]} to {words[-1]} %" if len(words) == len(between) > 2 else f"{listed(words)} %"


def _not_better(learned: pd.DataFrame, single: pd.DataFrame) -> str:
    """Return the agents not below the best heuristic over all loads, and the loads without any below."""
    parts = []
    for found, words in (("above", "worse than the best heuristic"), ("open", "not clearly apart from it")):
        some = [
            f"{policy} ({percent(row['difference'])}, {span(row['difference_low'], row['difference_high'])})"
            for policy, row in learned.iterrows()
            if side(row["difference_low"], row["difference_high"]) == found
        ]
        if some:
            parts.append(f"{words}: {listed(some)}")
    none = [str(load) for load, rows in single.groupby("load") if not (rows["difference_high"] < 0).any()]
    if none and single["load"].nunique() > 1:
        parts.append(f"no agent is below it at {listed([load.lstrip('0') for load in none])} % load")
    return f"{'; '.join(parts)}." if parts else ""


def _scale(rows: pd.DataFrame) -> float:
    if rows.empty:
        return SCALES[0]
    reach = 100 * max(rows["difference_low"].abs().max(), rows["difference_high"].abs().max())
    return next((scale for scale in SCALES if scale >= reach), SCALES[-1])


def _bar(policy: str, row: pd.Series, agent: bool, scale: float) -> Bar:
    middle, low, high = row["difference"], row["difference_low"], row["difference_high"]
    at, begin, end = (50 + 50 * min(max(100 * value / scale, -1.0), 1.0) for value in (middle, low, high))
    text = f"{relative(row)}{'†' if row['unfinished'] else ''}"
    return Bar(policy, agent, side(low, high), text, at, begin, end, 100 * abs(middle) > scale)
