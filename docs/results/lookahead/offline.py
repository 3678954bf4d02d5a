"""Value of look-ahead with all jobs at the start, compared with a local search over schedules.

    PYTHONPATH=. python docs/results/lookahead/offline.py [search]

Run it after the stages of the rows of docs/params/offline.diff or plan.diff. Writes offline.csv.gz: mean slowdown of
every test jobset by each policy of `POLICIES` that was run here and, with `search`, by a local search from the schedule
of the best heuristic, for several numbers of schedules. Other rows remain unchanged.
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd

from pipeline.core import storage
from pipeline.core.config import Params, load_params
from pipeline.problems import problem_of
from pipeline.problems.pool.env.evaluation.hindsight import warm_starts
from pipeline.problems.pool.env.evaluation.searching import mean_slowdown, order_of, search
from pipeline.problems.pool.env.nouns import Cluster, batch
from pipeline.problems.pool.env.storage import read_jobsets
from pipeline.problems.pool.heuristics.scores import heuristics_with

HERE = Path(__file__).resolve().parent
SCENARIO = "offline"
LONG = tuple(f"{plan}deeprm_off_long{seed}" for plan in ("", "plan_") for seed in ("", "_2", "_3"))
POLICIES = ("linear", "deeprm3_off", "plan_deeprm3_off", *LONG)
TRIED = (100, 1_000, 10_000, 50_000)  # schedules
KEPT = ["policy", "load", "jobset", "unfinished", "mean_slowdown"]


def searched(params: Params) -> pd.DataFrame:
    """Return the results of the local search on each jobset."""
    row = params.pool_scenario(SCENARIO)
    cluster, jobsets = Cluster.of(row), read_jobsets(storage.jobsets_folder(SCENARIO), "test", row.resources)
    best = heuristics_with(storage.read_chosen(SCENARIO).knobs)["linear"]
    warm = warm_starts(params, SCENARIO, jobsets, {"linear": best})
    jobs = batch([one.work.jobs for one in warm])
    order = order_of(jobs, np.concatenate([one.work.warm for one in warm]))
    places = {"load": [one.load for one in warm], "jobset": [one.jobset for one in warm]}
    return pd.concat(
        pd.DataFrame(
            {
                **{"policy": f"search {tried}", **places, "unfinished": 0},
                "mean_slowdown": mean_slowdown(jobs, search(jobs, cluster.capacity, order, tried, params.seed)),
            }
        )
        for tried in TRIED
    )


if __name__ == "__main__":
    settings = load_params()
    rows = storage.read_jobset_results(settings, SCENARIO, problem_of(settings, SCENARIO).tables)
    parts = [rows[rows["policy"].isin(POLICIES)][KEPT], *([searched(settings)] if "search" in sys.argv else [])]
    new, before = pd.concat(parts), pd.read_csv(HERE / "offline.csv.gz")[KEPT]
    table = pd.concat([before[~before["policy"].isin(new["policy"])], new])
    once = {"method": "gzip", "mtime": 0}
    table.to_csv(HERE / "offline.csv.gz", index=False, float_format="%.6g", compression=once)
