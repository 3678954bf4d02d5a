"""Put the runs of params.yaml together: three seeds of a controller against every rule, on the same test jobsets.

Run it where the stages ran: `python tables.py OUT`. Each seed's controller is a policy of its own; `controller` is the
mean of the three on each jobset, so that the interval is one over jobsets, and the seeds stand beside it.
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd

from pipeline import storage
from pipeline.comparing.statistics import ALL, comparison
from pipeline.config import load_params

MEASURES = {"delay": "mean_wait", "slowdown": "mean_slowdown", "bounded_slowdown": "mean_bounded_slowdown"}
KINDS = {"controller": "", "pretrained": "_pretrained", "own": "_own"}


def main(out: Path) -> None:
    """Write seeds.csv, paired.csv and metrics.csv."""
    params = load_params()
    seeds, paired, metrics = [], [], []
    for scenario in params.scenarios:
        agents = [name for name, row in params.agents.items() if row.scenario == scenario]
        if not all((storage.results_folder("agents", name) / "jobsets.parquet").exists() for name in agents):
            continue
        frame = storage.read_jobset_results(params, scenario)
        together = with_means(frame, agents)
        best = storage.read_chosen(scenario)
        loads = sorted(frame["load"].unique())
        rules = [name for name in frame["policy"].unique() if not name.startswith("c_")]
        chosen = {"delay": best.best_delay, "slowdown": best.best}
        for measure, column in MEASURES.items():
            for name in agents:
                for kind, end in KINDS.items():
                    mine = frame[frame["policy"] == name + end]
                    row = mine.groupby("load")[column].mean().round(4).to_dict()
                    seeds.append({"scenario": scenario, "measure": measure, "policy": kind, "agent": name, **row})
            references = {name: dict.fromkeys(loads, name) for name in (*rules, "pretrained", "own")}
            if measure in chosen:
                references["best_rule"] = dict(chosen[measure])
            rows = comparison(
                together.assign(mean_slowdown=together[column]),
                scenario,
                references,
                params.evaluation,
                np.random.default_rng(params.seed),
            )
            rows = rows[rows["policy"].isin(KINDS)]
            paired.append(rows.assign(measure=measure, below=rows["difference_high"] < 0))
        numbers = ["mean_wait", "p99_wait", "mean_slowdown", "p99_slowdown", "mean_bounded_slowdown"]
        numbers += ["jain_wait", "jain_slowdown", "reward", "utilisation", "unfinished"]
        means = together.groupby(["policy", "load"])[numbers].mean().reset_index()
        metrics.append(means.assign(scenario=scenario, n=len(frame) // frame["policy"].nunique() // len(loads)))
    pd.DataFrame(seeds).to_csv(out / "seeds.csv", index=False)
    pd.concat(paired).to_csv(out / "paired.csv", index=False, float_format="%.5g")
    pd.concat(metrics).to_csv(out / "metrics.csv", index=False, float_format="%.5g")
    over = pd.concat(paired)
    over = over[(over["load"] == ALL) & (over["policy"] == "controller")]
    shown = ["scenario", "measure", "against", "mean", "mean_against", "difference"]
    sys.stdout.write(over[[*shown, "difference_low", "difference_high"]].to_string())


def with_means(frame: pd.DataFrame, agents: list[str]) -> pd.DataFrame:
    """Return the rules, and in the place of the seeds of each kind of controller their mean on each jobset."""
    parts = [frame[~frame["policy"].str.startswith("c_")]]
    for kind, end in KINDS.items():
        mine = frame[frame["policy"].isin([name + end for name in agents])].drop(columns="policy")
        means = mine.groupby(["load", "jobset"]).mean().reset_index()
        whole = {name: means[name].round().astype(frame[name].dtype) for name in ("jobs", "unfinished")}
        parts.append(means.assign(policy=kind, **whole)[frame.columns])
    return pd.concat(parts, ignore_index=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
