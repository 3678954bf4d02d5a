"""Value of look-ahead: heuristics with and without it, on jobsets that influenced no choice.

    PYTHONPATH=. python docs/results/lookahead/measure.py online 100
    PYTHONPATH=. python docs/results/lookahead/measure.py streams 6

Writes `<scenario>.csv.gz` into this folder: the mean slowdown of every jobset under every policy. Heuristics are tuned
as in `reports/tables/heuristics/<scenario>/chosen.json`. The number limits the jobsets per load, which are those of
`confirm`.
"""

import sys
import time
from pathlib import Path

import pandas as pd

from pipeline.core import storage
from pipeline.core.config import load_params
from pipeline.problems.pool.env.evaluation.metrics import span_of
from pipeline.problems.pool.env.evaluation.play import score
from pipeline.problems.pool.env.nouns import Cluster
from pipeline.problems.pool.env.workload.source import source
from pipeline.problems.pool.heuristics.scores import heuristics_with
from pipeline.problems.pool.lookahead.naming import plain_base, planned
from pipeline.progress import progress, say
from pipeline.stages.confirm import SEED

BASES = ("sjf", "hold", "linear", "hold_until")


def main(scenario: str, count: int) -> None:
    """Run all policies and write the table."""
    params = load_params()
    row = params.pool_scenario(scenario)
    cluster = Cluster.of(row)
    confirming = source(params.model_copy(update={"seed": SEED}), scenario, storage.LOG).split("test")
    jobsets = {load: group[:count] for load, group in confirming.items()}
    known = heuristics_with(storage.read_chosen(scenario).knobs)
    policies = {name: known[name] for name in BASES}
    policies |= {f"plan_{name}": planned(params, scenario, cluster, plain_base(known[name])) for name in BASES}
    parts = []
    for name, policy in policies.items():
        begun = time.process_time()
        with progress(f"{scenario}: {name}, percent", 100) as advance:
            found = score(
                {name: policy}, jobsets, cluster, row.step_limit, params.seed, measured=span_of(row),
                on_progress=lambda share, advance=advance: advance(100 * share),
            )  # fmt: skip
        parts.append(found[name].jobsets[["policy", "load", "jobset", "unfinished", "mean_slowdown"]])
        say(f"{name}: {found[name].by_load}, {time.process_time() - begun:.0f} s of processor time")
    table = pd.concat(parts, ignore_index=True).round({"mean_slowdown": 6})
    table.to_csv(
        Path(__file__).with_name(f"{scenario}.csv.gz"), index=False, compression={"method": "gzip", "mtime": 0}
    )


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
