"""Store every policy's result on every test jobset of the runs of params.yaml in jobsets.csv.gz of this folder.

Run in the folder of those runs: `python docs/results/controller/tables.py`. ../tables.py then writes the tables.
"""

from pathlib import Path

import pandas as pd

from pipeline.comparing.resampling import windows
from pipeline.core import storage
from pipeline.core.config import GroupsLog, load_params
from pipeline.problems import problem_of

HERE = Path(__file__).resolve().parent
KEYS = ["scenario", "policy", "load", "jobset", "unfinished"]
METRICS = ["mean_wait", "mean_slowdown", "p99_slowdown", "jain_slowdown"]


def main() -> None:
    """Write jobsets.csv.gz and best.csv."""
    params, found = load_params(), []
    for name, row in params.scenarios.items():
        frame = storage.read_jobset_results(params, name, problem_of(params, name).tables)
        frame = windows(frame) if isinstance(row.workload, GroupsLog) else frame
        found.append(frame.assign(scenario=name))
    whole = pd.concat(found, ignore_index=True)
    kept = whole[[*KEYS, "unit", *METRICS]].astype({"unit": "Int64"})
    kept.to_csv(HERE / "jobsets.csv.gz", index=False, float_format="%.5g", compression={"method": "gzip", "mtime": 0})
    best = [
        {"scenario": name, "load": load, "rule": rule}
        for name in params.scenarios
        for load, rule in (storage.read_chosen(name).best_delay or {}).items()
    ]
    pd.DataFrame(best).to_csv(HERE / "best.csv", index=False)


if __name__ == "__main__":
    main()
