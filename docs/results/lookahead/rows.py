"""Keep what policies had on the test jobsets of `machines`, those of docs/params/plan.diff among them.

Apply the patch, run `python -m pipeline evaluate plan NAME` of both rows there, and then

    PYTHONPATH=. python docs/results/lookahead/rows.py
"""

from pathlib import Path

from pipeline import storage
from pipeline.config import load_params
from pipeline.problems import problem_of

HERE = Path(__file__).resolve().parent
SCENARIO = "machines"
POLICIES = ("sjf", "saf", "sjf_most_allocated", "deepk8s_ppo", "plan_sjf", "plan_deepk8s_ppo")
KEPT = ["policy", "load", "jobset", "unfinished", "mean_slowdown", "mean_bounded_slowdown", "mean_wait"]

if __name__ == "__main__":
    params = load_params()
    rows = storage.read_jobset_results(params, SCENARIO, problem_of(params, SCENARIO).tables)
    rows = rows[rows["policy"].isin(POLICIES)][KEPT]
    packed = {"method": "gzip", "mtime": 0}
    rows.to_csv(HERE / "rows.csv.gz", index=False, float_format="%.6g", compression=packed)
