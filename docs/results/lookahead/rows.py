"""Value of look-ahead on the five machines of the default scenario `machines`.

    PYTHONPATH=. python docs/results/lookahead/rows.py choose
    PYTHONPATH=. python docs/results/lookahead/rows.py

`choose` runs SJF with look-ahead on validation jobsets, with several numbers of futures and margins, and writes
rows_chosen.csv. Without it, the script writes the results on test jobsets to rows.csv.gz; first apply
docs/params/plan.diff and run `python -m pipeline evaluate plan` for its rows on `machines`.
"""

import sys
from pathlib import Path

import pandas as pd

from pipeline.core import storage
from pipeline.core.config import load_params
from pipeline.core.types import Policy
from pipeline.problems import problem_of
from pipeline.problems.machines.heuristics.rules import HEURISTICS
from pipeline.problems.machines.heuristics.scoring import scoring
from pipeline.problems.machines.lookahead.plans import USUAL, past_of, planned
from pipeline.simulation.rollout import Insider

HERE = Path(__file__).resolve().parent
SCENARIO = "machines"
POLICIES = ("sjf", "saf", "sjf_most_allocated", "deepk8s_ppo", "plan_sjf", "plan_deepk8s_ppo")
KEPT = ["policy", "load", "jobset", "unfinished", "mean_slowdown", "mean_bounded_slowdown", "mean_wait"]
KEPT += ["completion_time", "makespan", "longest_wait"]


def tests() -> pd.DataFrame:
    """Return the results of policies on test jobsets."""
    params = load_params()
    rows = storage.read_jobset_results(params, SCENARIO, problem_of(params, SCENARIO).tables)
    return rows[rows["policy"].isin(POLICIES)][KEPT]


def choices() -> pd.DataFrame:
    """Return results of SJF on validation jobsets, without look-ahead and with each setting."""
    params = load_params()
    here, past, who = scoring(params, SCENARIO), past_of(params, SCENARIO), dict[str, Policy | Insider]()
    who["sjf"] = HEURISTICS["sjf"]
    for futures in (16, 64):
        for sure in (0.0, 1.0):
            budget = USUAL._replace(candidates=12, futures=futures, sure=sure)
            who[f"{futures} {sure:g}"] = planned(HEURISTICS["sjf"], "sjf", past, budget)
    found = here.score(who, here.read("validation"))
    return pd.concat([done.jobsets[KEPT] for done in found.values()])


if __name__ == "__main__":
    if sys.argv[1:] == ["choose"]:
        choices().round(5).to_csv(HERE / "rows_chosen.csv", index=False)
    else:
        once = {"method": "gzip", "mtime": 0}
        tests().to_csv(HERE / "rows.csv.gz", index=False, float_format="%.6g", compression=once)
