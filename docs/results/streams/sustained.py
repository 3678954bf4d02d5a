"""Loads of streams that each rule sustains: waits of jobs during long arrivals.

    PYTHONPATH=. python docs/results/streams/sustained.py

Runs 48 validation streams a load under untuned rules, with 20,000 steps of arrivals, and writes `sustained.csv`.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from pipeline.core.config import load_params
from pipeline.problems.pool.env.evaluation.play import game_of, played
from pipeline.problems.pool.env.nouns import Cluster
from pipeline.problems.pool.env.workload.source import DrawnSource
from pipeline.problems.pool.heuristics.scores import HEURISTICS
from pipeline.progress import no_progress

STREAMS, STEPS, LOADS = 48, 20_000, (50, 60, 62, 65, 70, 80)
RULES = ("fcfs", "tetris", "easy", "sjf", "hold", "saf")


def main() -> None:
    """Run the rules, and write mean slowdown, longest wait and the number of jobs that never started."""
    params = load_params()
    row = params.pool_scenario("streams")
    arrivals = row.arrivals.model_copy(update={"steps": STEPS})
    jobsets = row.jobsets.model_copy(update={"validation": STREAMS})
    row = row.model_copy(update={"arrivals": arrivals, "step_limit": STEPS, "jobsets": jobsets, "loads": LOADS})
    found = DrawnSource(params, row, params.workload_of(row), params.seed).split("validation")
    rows = []
    for load in LOADS:
        game, _, _ = game_of({load: found[load]}, Cluster.of(row), STEPS, params.seed)
        first, after = row.measured
        counts = (game.jobs.arrival >= first) & (game.jobs.arrival < after)
        for name, end in zip(RULES, played(game, [HEURISTICS[name] for name in RULES], no_progress), strict=True):
            start, arrival = end.start[counts], game.jobs.arrival[counts]
            slowdown = 1 + (np.where(start >= 0, start, STEPS) - arrival) / game.jobs.duration[counts]
            never = int((start < 0).sum())
            longest = None if never else (start - arrival).max()
            rows.append((load, name, round(slowdown.mean(), 2), longest, never))
    table = pd.DataFrame(rows, columns=["load", "policy", "slowdown", "longest", "never"])
    table.astype({"longest": "Int64"}).to_csv(Path(__file__).with_name("sustained.csv"), index=False)


if __name__ == "__main__":
    main()
