"""Which policy is compared with which: all with the references and the best heuristic, an agent with its start.

References are SJF and tuned Tetris; of controllers, shares by demand, dominant resource fairness and the best fixed
shares. Scenarios of user groups are compared by mean waiting time as well.
"""

from collections.abc import Collection, Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd

from pipeline.comparing.statistics import ALL, comparison, summary
from pipeline.config import Evaluation
from pipeline.schemas import DELAY, empty

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
    summaries = summary(results, scenario, settings, rng)
    compared = paired(results, scenario, best.slowdown, agents, settings, seed)
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


def key_metrics(summaries: pd.DataFrame, comparisons: pd.DataFrame, agents: Collection[str]) -> dict[str, Metrics]:
    """Return the few numbers of each scenario that a person compares between two runs; lower is better.

    Slowdowns are means over loads. A heuristic without a knob changes with the workload only, so few are shown.
    """
    found = {}
    for name, rows in summaries.groupby("scenario"):
        over_all = comparisons[(comparisons["scenario"] == name) & (comparisons["load"] == ALL)]
        means = rows.groupby("policy")["slowdown"].mean().to_dict()
        shown = [policy for policy in (*REFERENCES, *ALSO_SHOWN) if policy in means]
        policies = {policy: {"slowdown": means[policy]} for policy in shown}
        policies[BEST] = {"slowdown": over_all.loc[over_all["against"] == BEST, "mean_against"].iloc[0]}
        policies |= {agent: _of_agent(agent, means[agent], over_all) for agent in agents if agent in means}
        found[str(name)] = dict(sorted(policies.items())) | {UNFINISHED: int(rows["unfinished"].sum())}
    return found


def _of_agent(agent: str, slowdown: float, over_all: pd.DataFrame) -> dict[str, float]:
    percent = 100 * over_all[over_all["policy"] == agent].set_index("against")["difference"]
    against = BEST, next(name for name in REFERENCES if name in percent)
    best, other = (round(percent[reference], 2) for reference in against)
    return {"percent_from_best": best, f"percent_from_{against[1]}": other, "slowdown": slowdown}


def slowdown_curves(summaries: pd.DataFrame) -> list[dict[str, str | float]]:
    """Return mean slowdown and its interval as records, one a scenario, load and policy: what `dvc plots` draws."""
    columns = {"slowdown_low": "low", "slowdown_high": "high"}
    rows = summaries.rename(columns=columns)[["scenario", "load", "policy", "slowdown", "low", "high"]]
    return [
        {str(key): value for key, value in row.items()}
        for row in rows.sort_values(["scenario", "policy", "load"]).to_dict("records")
    ]
