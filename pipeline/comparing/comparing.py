"""Which policy is compared with which: all with the references and the best heuristic, an agent with its start.

References are SJF and tuned Tetris; of controllers, shares by demand, dominant resource fairness and the best fixed
shares. Scenarios in real time are compared by bounded slowdown, and by mean waiting time as well.
"""

from collections.abc import Collection, Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd

from pipeline.comparing.statistics import ALL, comparison, summary
from pipeline.config import Evaluation
from pipeline.schemas import DELAY, empty
from pipeline.simulation.results import PLAIN, judged

REFERENCES = ("sjf", "tetris", "proportional", "drf", "fixed", "lookahead")  # those that a scenario has
ALSO_SHOWN = ("hold",)
BEST = "best_heuristic"
START = "{agent}_pretrained"
UNFINISHED = "unfinished_jobs"

Metrics = dict[str, dict[str, float] | int]  # of each policy by name, and how many jobs are unfinished


class Chosen(NamedTuple):
    """The best heuristic at each load, chosen on validation jobsets."""

    slowdown: Mapping[int, str]
    delay: Mapping[int, str]  # nothing where scenarios are not judged by it


class Compared(NamedTuple):
    """The evidence of one scenario."""

    summary: pd.DataFrame
    comparison: pd.DataFrame
    delay: pd.DataFrame  # the same as `comparison`, by mean waiting time


def compare(
    scenario: str,
    results: pd.DataFrame,
    best: Chosen,
    agents: Collection[str],
    settings: Evaluation,
    seed: int,
) -> Compared:
    """Compare every policy of one scenario on the same jobsets.

    Args:
        scenario: its name.
        results: jobset results of all its policies.
        best: the best heuristic at each load, chosen on validation jobsets.
        agents: the scenario's agents; each is also compared with its own pretrained policy, where that was scored.
        settings: of the bootstrap.
        seed: of its resamples.
    """
    rng = np.random.default_rng(seed)
    shown = results.assign(mean_slowdown=results[judged(results)], unbounded_slowdown=results[PLAIN])
    summaries = summary(shown, scenario, settings, rng)
    compared = paired(shown, scenario, best.slowdown, agents, settings, seed)
    by_delay = empty(DELAY)
    if best.delay:
        waits = results.assign(mean_slowdown=results["mean_wait"])
        by_delay = paired(waits, scenario, best.delay, agents, settings, seed)
    return Compared(summaries, compared, by_delay)


def paired(
    results: pd.DataFrame,
    scenario: str,
    best: Mapping[int, str],
    agents: Collection[str],
    settings: Evaluation,
    seed: int,
) -> pd.DataFrame:
    """Return every policy against every reference and the best heuristic, by the column `mean_slowdown`."""
    loads, there = sorted(results["load"].unique()), set(results["policy"])
    references = {name: dict.fromkeys(loads, name) for name in REFERENCES if name in there}
    references[BEST] = dict(best)
    starts = {start: agent for agent in agents if (start := START.format(agent=agent)) in there}
    references |= {start: dict.fromkeys(loads, start) for start in starts}
    rows = comparison(results, scenario, references, settings, np.random.default_rng(seed))
    return rows[~rows["against"].isin(starts) | (rows["against"].map(starts) == rows["policy"])]


def key_metrics(
    summaries: pd.DataFrame,
    comparisons: pd.DataFrame,
    delays: pd.DataFrame,
    agents: Collection[str],
    bounded: Collection[str],
) -> dict[str, Metrics]:
    """Return the few numbers of each scenario that a person compares between two runs; lower is better.

    Slowdowns and waiting times are means over loads. A heuristic without a knob changes with the workload only, so few
    are shown.

    Args:
        summaries: SUMMARY.
        comparisons: COMPARISON.
        delays: DELAY.
        agents: all of them.
        bounded: scenarios whose slowdown is bounded, and is called so.
    """
    found = {}
    for name, rows in summaries.groupby("scenario"):
        over_all, waits = (of[(of["scenario"] == name) & (of["load"] == ALL)] for of in (comparisons, delays))
        what = "bounded_slowdown" if name in bounded else "slowdown"
        means = rows.groupby("policy")["slowdown"].mean().to_dict()
        shown = [policy for policy in (*REFERENCES, *ALSO_SHOWN) if policy in means]
        policies = {policy: {what: means[policy]} for policy in shown}
        policies[BEST] = {what: over_all.loc[over_all["against"] == BEST, "mean_against"].iloc[0]}
        policies |= {agent: _of_agent(agent, over_all) | {what: means[agent]} for agent in agents if agent in means}
        wait = _means(waits)
        policies = {
            policy: row | ({"wait": wait[policy]} if policy in wait else {}) for policy, row in policies.items()
        }
        found[str(name)] = dict(sorted(policies.items())) | {UNFINISHED: int(rows["unfinished"].sum())}
    return found


def _means(compared: pd.DataFrame) -> dict[str, float]:
    """Return the mean of every policy and reference of a comparison over all loads."""
    references = compared.groupby("against")["mean_against"].first().to_dict()
    return references | compared.groupby("policy")["mean"].first().to_dict()


def _of_agent(agent: str, over_all: pd.DataFrame) -> dict[str, float]:
    percent = 100 * over_all[over_all["policy"] == agent].set_index("against")["difference"]
    against = BEST, next(name for name in REFERENCES if name in percent)
    best, other = (round(percent[reference], 2) for reference in against)
    return {"percent_from_best": best, f"percent_from_{against[1]}": other}


def slowdown_curves(summaries: pd.DataFrame) -> list[dict[str, str | float]]:
    """Return mean slowdown and its interval as records, one a scenario, load and policy: what `dvc plots` draws."""
    columns = {"slowdown_low": "low", "slowdown_high": "high"}
    rows = summaries.rename(columns=columns)[["scenario", "load", "policy", "slowdown", "low", "high"]]
    return [
        {str(key): value for key, value in row.items()}
        for row in rows.sort_values(["scenario", "policy", "load"]).to_dict("records")
    ]
