"""Which policy is compared with which: all with SJF, tuned Tetris and the best heuristic, an agent with its start."""

from collections.abc import Collection, Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd

from pipeline.config import Evaluation
from pipeline.evaluation.statistics import comparison, summary

REFERENCES = ("sjf", "tetris")
BEST = "best_heuristic"
START = "{agent}_pretrained"


class Compared(NamedTuple):
    """The evidence of one scenario."""

    summary: pd.DataFrame
    comparison: pd.DataFrame


def compare(
    scenario: str,
    results: pd.DataFrame,
    best: Mapping[int, str],
    agents: Collection[str],
    settings: Evaluation,
    seed: int,
) -> Compared:
    """Compare every policy of one scenario on the same jobsets.

    Args:
        scenario: its name.
        results: JobsetResults of all its policies.
        best: the best heuristic at each load, chosen on validation jobsets.
        agents: the scenario's agents; each is also compared with its own pretrained policy.
        settings: of the bootstrap.
        seed: of its resamples.
    """
    loads = sorted(results["load"].unique())
    references = {name: dict.fromkeys(loads, name) for name in REFERENCES} | {BEST: dict(best)}
    starts = {START.format(agent=agent): agent for agent in agents}
    references |= {start: dict.fromkeys(loads, start) for start in starts}
    rows = comparison(results, scenario, references, settings, np.random.default_rng(seed))
    own = ~rows["against"].isin(starts) | (rows["against"].map(starts) == rows["policy"])
    return Compared(summary(results, scenario, settings, np.random.default_rng(seed)), rows[own])


def by_policy(summaries: pd.DataFrame) -> dict[str, dict[str, dict[str, float]]]:
    """Return mean slowdown by scenario, load and policy, in the order in which they are best read as metrics."""
    return {
        str(scenario): {
            f"load_{int(str(load)):03d}": dict(zip(group["policy"], group["slowdown"], strict=True))
            for load, group in rows.sort_values(["load", "policy"]).groupby("load")
        }
        for scenario, rows in summaries.groupby("scenario")
    }
