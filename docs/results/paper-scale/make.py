"""Copy the results of a finished run at the paper's scale into this folder.

    python docs/results/paper-scale/experiments.py FOLDER
    python docs/results/paper-scale/make.py FOLDER
    python docs/results/tables.py write

FOLDER is where `dvc repro` ran with params.diff applied. Writes claims.csv, slowdown.csv, curves.csv, times.csv,
jobsets.csv.gz (the result of every policy on every test jobset) and the figures. `page.py` makes the tables of
../paper-scale.md from them.
"""

import os
import shutil
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from mlflow import MlflowClient
from mlflow.entities import Run

from pipeline.core import storage
from pipeline.core.config import Params, load_params
from pipeline.problems import problem_of

HERE = Path(__file__).resolve().parent
EVERY = 10  # updates between two rows of curves.csv
FIGURES = ("loads_bernoulli_deeprm", "learning_deeprm_70", "withheld_deeprm_110", "learning_deeprm_off")


def times(params: Params) -> pd.DataFrame:
    """Return each agent's training time in seconds from MLflow, summed over its resumed runs."""
    client = MlflowClient(f"sqlite:///{Path('mlflow.db').resolve()}")
    experiment = client.get_experiment_by_name("scheduler-pipeline")
    if experiment is None:
        raise SystemExit("mlflow.db has no experiment scheduler-pipeline")
    found: dict[str, list[Run]] = {}
    for run in client.search_runs([experiment.experiment_id], order_by=["attributes.start_time"]):
        found.setdefault(str(run.info.run_name), []).append(run)
    rows = []
    for agent, row in params.agents.items():
        part, seconds = row.finetune, _seconds(client, found.get(f"finetune@{agent}", []))
        rows.append(
            {
                "agent": agent,
                "network": row.network.name,
                "objective": row.objective,
                "load": part.loads[0],
                "seed": params.seed if part.seed is None else part.seed,
                "updates": part.updates,
                "jobsets": part.jobsets,
                "episodes": part.episodes,
                "seconds_an_update": float(np.median(seconds)) if len(seconds) else np.nan,
                "hours": _hours(found, agent),
                "commits": " ".join(
                    sorted({str(run.data.tags["git.commit"])[:10] for run in found.get(f"finetune@{agent}", [])})
                ),
            }
        )
    return pd.DataFrame(rows)


def _seconds(client: MlflowClient, runs: list[Run]) -> list[float]:
    """Return the seconds between successive updates, without those that include a validation."""
    found = []
    for run in runs:
        ends = {point.step: point.timestamp for point in client.get_metric_history(run.info.run_id, "decisions")}
        judged = {point.step for point in client.get_metric_history(run.info.run_id, "validation")}
        found += [
            (ends[k] - ends[k - 1]) / 1000 for k in ends if k - 1 in ends and k not in judged and k - 1 not in judged
        ]
    return found


def _hours(found: dict[str, list[Run]], agent: str) -> float:
    runs = [run for stage in ("pretrain", "finetune") for run in found.get(f"{stage}@{agent}", [])]
    return sum((run.info.end_time or run.info.start_time) - run.info.start_time for run in runs) / 3.6e6


def curves(params: Params) -> pd.DataFrame:
    """Return thinned learning curves: every tenth update, and all validations."""
    tables = []
    for agent in params.agents:
        table = pd.read_csv(f"reports/curves/{agent}_finetune.csv")
        kept = (table["update"] % EVERY == 0) | (table["update"] == 1) | (table["metric"] == "validation")
        table = table[kept & table["metric"].isin(["mean_return", "best_return", "slowdown", "validation"])]
        tables.append(table.assign(agent=agent, value=table["value"].map(lambda value: float(f"{value:.5g}"))))
    return pd.concat(tables)[["agent", "update", "metric", "value"]]


def main(folder: str) -> None:
    """Write the CSVs and figures of this folder."""
    os.chdir(folder)
    params = load_params()
    summary, claims = pd.read_csv("reports/summary.csv"), pd.read_csv("reports/papers.csv")
    kept = ["scenario", "load", "policy", "n", "slowdown", "slowdown_low", "slowdown_high", "completion_time"]
    for name, table in {
        "claims": claims[~claims["figure"].str.startswith("deepk8s")],  # not part of this run
        "slowdown": summary[kept],
        "curves": curves(params),
        "times": times(params).round(4),
    }.items():
        table.to_csv(HERE / f"{name}.csv", index=False)
    each = [
        storage.read_jobset_results(params, name, problem_of(params, name).tables).assign(scenario=name)
        for name in params.scenarios
    ]
    once: dict[str, object] = {"method": "gzip", "mtime": 0}  # without a date
    whole = pd.concat(each)[["scenario", "policy", "load", "jobset", "unfinished", "mean_slowdown", "completion_time"]]
    whole.to_csv(HERE / "jobsets.csv.gz", index=False, float_format="%.6g", compression=once)
    for name in FIGURES:
        shutil.copy(Path("reports/papers") / f"{name}.png", HERE)


if __name__ == "__main__":
    main(sys.argv[1])
