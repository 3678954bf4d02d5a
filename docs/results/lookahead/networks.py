"""Value of look-ahead for a trained network, on short runs that influenced no choice.

    PYTHONPATH=. python docs/results/lookahead/networks.py weights 10

Runs the three agents of ../deeprm3.md (weights/deeprm3_1 and so on) and `hold_long`, with and without look-ahead, on
jobsets of a separate seed, and writes `networks.csv.gz` into this folder. The number is that of jobsets per load. The
search budget is the default of `plan_`.
"""

import sys
import time
from pathlib import Path

import pandas as pd

from pipeline.core import storage
from pipeline.core.config import load_params
from pipeline.interactive.pool.policies import base_by_name
from pipeline.problems.pool.env.evaluation.play import score
from pipeline.problems.pool.env.nouns import Cluster
from pipeline.problems.pool.env.workload.source import source
from pipeline.problems.pool.lookahead.naming import planned
from pipeline.progress import progress, say

SCENARIO, SEED = "online", 20261126
NETWORKS = ("deeprm3_1", "deeprm3_2", "deeprm3_3")
LOADS = (30, 70, 110, 150, 190)
PLACE = Path(__file__).with_name("networks.csv.gz")


def main(folder: str, count: int) -> None:
    """Run all policies and write the table."""
    params = load_params()
    row = params.pool_scenario(SCENARIO)
    cluster = Cluster.of(row)
    drawn = source(params.model_copy(update={"seed": SEED}), SCENARIO, storage.LOG).split("test")
    jobsets = {load: drawn[load][:count] for load in LOADS}
    bases = {name: base_by_name(f"{folder}/{name}", row, SCENARIO) for name in NETWORKS}
    bases["hold_long"] = base_by_name("hold_long", row, SCENARIO)
    policies = {name: base.policy for name, base in bases.items()}
    ahead = {f"plan_{name}": planned(params, SCENARIO, cluster, base) for name, base in bases.items()}
    policies |= ahead
    parts = []
    for name, policy in policies.items():
        begun = time.process_time()
        with progress(f"{name}, percent", 100) as advance:
            found = score(
                {name: policy}, jobsets, cluster, row.step_limit, params.seed,
                on_progress=lambda share, advance=advance: advance(100 * share),
            )  # fmt: skip
        parts.append(found[name].jobsets[["policy", "load", "jobset", "unfinished", "mean_slowdown"]])
        say(f"{name}: {found[name].by_load}, {time.process_time() - begun:.0f} s of processor time")
    table = pd.concat(parts, ignore_index=True).round({"mean_slowdown": 6})
    table.to_csv(PLACE, index=False, compression={"method": "gzip", "mtime": 0})


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
