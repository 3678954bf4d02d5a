"""Store every policy's result on every test jobset of the run of params.yaml, and its verdicts on the papers' claims.

Run in the folder of that run: `python docs/results/deepk8s/tables.py`. ../tables.py then writes the tables.
"""

from pathlib import Path

import pandas as pd

from pipeline.comparing.resampling import windows
from pipeline.core import storage
from pipeline.core.config import load_params
from pipeline.core.schemas.tables import PAPERS
from pipeline.problems import problem_of

HERE = Path(__file__).resolve().parent
KEPT = ["scenario", "policy", "load", "jobset", "unit", "unfinished", "mean_slowdown", "completion_time"]
KEPT += ["makespan", "longest_wait"]


def main() -> None:
    """Write jobsets.csv.gz and claims.csv."""
    params, found = load_params(), []
    for name in params.scenarios:
        frame = windows(storage.read_jobset_results(params, name, problem_of(params, name).tables))
        found.append(frame.assign(scenario=name))
    whole = pd.concat(found, ignore_index=True)[KEPT]
    whole.to_csv(HERE / "jobsets.csv.gz", index=False, float_format="%.6g", compression={"method": "gzip", "mtime": 0})
    claims = storage.read_table(storage.REPORTS / "papers.csv", PAPERS)
    claims[claims["figure"].str.startswith("deepk8s")].to_csv(HERE / "claims.csv", index=False)


if __name__ == "__main__":
    main()
