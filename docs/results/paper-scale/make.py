"""Put the results of a finished run of the paper's scale into this folder and into ../paper-scale.md.

    python docs/results/paper-scale/experiments.py FOLDER
    python docs/results/paper-scale/make.py FOLDER

FOLDER is where `dvc repro` ran with params.diff applied. Writes claims.csv, slowdown.csv, curves.csv, times.csv and the
figures beside this file, and the tables of ../paper-scale.md between their marks; the words around them are by hand.
"""

import os
import platform
import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from headlines import headline_table
from mlflow import MlflowClient
from mlflow.entities import Run

from pipeline.config import Params, load_params

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "paper-scale.md"
EVERY = 10  # updates that one row of curves.csv is apart
PAPER_SECONDS = 80.0  # an iteration on 24 cores: DeepRM section 4.3
RULES = [
    "random_of_all",
    "random_of_all_ahead",
    "random",
    "packer",
    "tetris_code_0.5",
    "tetris_0.5",
    "tetris",
    "sjf",
    "hold",
]


def times(params: Params) -> pd.DataFrame:
    """Return seconds of each agent's training, from MLflow's record: resumed runs of an agent are added up."""
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
    """Return the seconds between one update's record and the next's, without those that a validation stretches."""
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
    """Return the learning curves, thinned: every tenth update, and all judgements on validation jobsets."""
    tables = []
    for agent in params.agents:
        table = pd.read_csv(f"reports/curves/{agent}_finetune.csv")
        kept = (table["update"] % EVERY == 0) | (table["update"] == 1) | (table["metric"] == "validation")
        table = table[kept & table["metric"].isin(["mean_return", "best_return", "slowdown", "validation"])]
        tables.append(table.assign(agent=agent, value=table["value"].map(lambda value: float(f"{value:.5g}"))))
    return pd.concat(tables)[["agent", "update", "metric", "value"]]


def time_table(found: pd.DataFrame) -> str:
    """Return how long training took, beside the paper's 80 seconds."""
    lines = ["| agent | load | objective | seed | updates x jobsets x episodes | s an update | hours | commit |"]
    lines.append("| --- | ---: | --- | ---: | ---: | ---: | ---: | --- |")
    for row in found.itertuples():
        size = f"{row.updates} x {row.jobsets} x {row.episodes}"
        lines.append(
            f"| {row.agent} | {row.load} % | {row.objective} | {row.seed} | {size} | {row.seconds_an_update:.2f} | "
            f"{row.hours:.2f} | {row.commits} |"
        )
    whole = found[(found["jobsets"] == 100) & (found["episodes"] == 20)]
    if len(whole):
        seconds = whole["seconds_an_update"]
        span = f"{seconds.min():.2f} to {seconds.max():.2f} s on one core; the paper: {PAPER_SECONDS:g} s on 24 cores"
        hours = f"All training together: {found['hours'].sum():.1f} hours of one core"
        lines += ["", f"An iteration of 100 jobsets x 20 episodes: {span}. {hours}."]
    return "\n".join(lines)


def load_table(slowdown: pd.DataFrame) -> str:
    """Return mean slowdown by policy and load of the scenario with arrivals."""
    wide = slowdown[slowdown["scenario"] == "bernoulli"].pivot(index="policy", columns="load", values="slowdown")
    return by_load(wide.loc[wide.mean(axis=1).sort_values().index])


def seed_table(comparison: pd.DataFrame, found: pd.DataFrame) -> str:
    """Return the agents that differ in their seed only, against SJF, Tetris and the best heuristic at their load."""
    keys = ["network", "objective", "load", "updates", "jobsets", "episodes"]
    several = found[found.groupby(keys)["agent"].transform("size") > 1]
    lines = ["| agent | seed | load | slowdown | against sjf | against tetris | against our best heuristic |"]
    lines.append("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for row in several.itertuples():
        mine = comparison[(comparison["policy"] == row.agent) & (comparison["load"] == f"{row.load:03d}")].set_index(
            "against"
        )
        cells = [_percent(mine.loc[name]) for name in ("sjf", "tetris", "best_heuristic")]
        lines.append(f"| {row.agent} | {row.seed} | {row.load} % | {mine['mean'].iloc[0]:.2f} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _percent(row: pd.Series) -> str:
    numbers = (100 * row[name] for name in ("difference", "difference_low", "difference_high"))
    return "{:+.1f} % ({:+.1f} to {:+.1f})".format(*numbers)


def weights_table(params: Params) -> str:
    """Return what validation says of the last weights, which the paper keeps, and of the best, which are kept here."""
    lines = [
        "| agent | best on validation | after update | last | last above best |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for agent in params.agents:
        curve = pd.read_csv(f"reports/curves/{agent}_finetune.csv")
        judged = curve[curve["metric"] == "validation"].set_index("update")["value"]
        best, last = judged.min(), judged.iloc[-1]
        lines.append(f"| {agent} | {best:.3f} | {judged.idxmin()} | {last:.3f} | {100 * (last / best - 1):.1f} % |")
    return "\n".join(lines)


def experiment_table(experiments: pd.DataFrame, counting: str, policies: list[str]) -> str:
    """Return mean slowdown by load under one way of counting."""
    some = experiments[(experiments["counting"] == counting) & experiments["policy"].isin(policies)]
    return by_load(some.pivot(index="policy", columns="load", values="slowdown").loc[policies])


def seen_table(seen: pd.DataFrame) -> str:
    """Return slowdown on training and on test jobsets, of each agent beside SJF and Tetris."""
    wide = seen.pivot(index="agent", columns=["split", "policy"], values="slowdown").loc[seen["agent"].unique()]
    columns = [(split, policy) for split in ("train", "test") for policy in ("sampled", "greedy", "tetris", "sjf")]
    wide = wide[columns].set_axis([f"{split}: {policy}" for split, policy in columns], axis=1)
    return by_load(wide).replace("| policy |", "| agent |", 1)


def left_out_table(experiments: pd.DataFrame, policies: list[str]) -> str:
    """Return the percentage of jobs that the published test leaves out, by load."""
    some = experiments[(experiments["counting"] == "started") & experiments["policy"].isin(policies)]
    wide = 100 * some.pivot(index="policy", columns="load", values="left_out").loc[policies]
    return by_load(wide, "{:.1f}")


def by_load(wide: pd.DataFrame, form: str = "{:.2f}") -> str:
    """Return a table of policies by loads."""
    lines = [f"| policy | {' | '.join(map(str, wide.columns))} |", f"| --- |{' ---: |' * wide.shape[1]}"]
    lines += [f"| {name} | {' | '.join(form.format(value) for value in wide.loc[name])} |" for name in wide.index]
    return "\n".join(lines)


def filled(text: str, name: str, table: str) -> str:
    """Return the page with a table between its marks."""
    pattern = rf"(<!-- {name} -->\n).*?(<!-- end -->)"
    found, count = re.subn(pattern, lambda mark: f"{mark[1]}\n{table}\n\n{mark[2]}", text, flags=re.DOTALL)
    if count != 1:
        raise SystemExit(f"{PAGE}: expected the marks of '{name}' once, found {count}")
    return found


def machine() -> str:
    """Return what the tables were made on."""
    model = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    return f"{model[1] if model else platform.processor()}, {os.cpu_count()} cores; Python {platform.python_version()}"


def main(folder: str) -> None:
    """Write the CSVs and figures of this folder, and the tables of the page."""
    os.chdir(folder)
    params = load_params()
    claims, summary = pd.read_csv("reports/papers.csv"), pd.read_csv("reports/summary.csv")
    comparison, took = pd.read_csv("reports/comparison.csv", dtype={"load": str}), times(params)
    experiments = pd.read_csv(HERE / "experiments.csv")
    summary = summary[
        ["scenario", "load", "policy", "n", "slowdown", "slowdown_low", "slowdown_high", "completion_time"]
    ]
    for name, table in {
        "claims": claims,
        "slowdown": summary,
        "curves": curves(params),
        "times": took.round(4),
    }.items():
        table.to_csv(HERE / f"{name}.csv", index=False)
    for old in HERE.glob("*.png"):
        old.unlink()
    for figure in sorted(Path("reports/papers").glob("*.png")):
        shutil.copy(figure, HERE)
    agents = [name for name, row in params.agents.items() if row.scenario == "bernoulli"]
    page = PAGE.read_text(encoding="utf-8")
    for name, table in {
        "headlines": headline_table(claims, took, next(name for name in agents if name.endswith("_70"))),
        "times": f"Machine: {machine()}.\n\n{time_table(took)}",
        "loads": load_table(summary),
        "seeds": seed_table(comparison, took),
        "weights": weights_table(params),
        "rules": experiment_table(experiments, "all", RULES),
        "started": experiment_table(experiments, "started", RULES),
        "floored": experiment_table(experiments, "floored", RULES),
        "left out": left_out_table(experiments, RULES),
        "seen": seen_table(pd.read_csv(HERE / "seen.csv")),
        "greedy": experiment_table(
            experiments, "all", [name for agent in agents for name in (agent, f"{agent}_greedy")]
        ),
    }.items():
        page = filled(page, name, table)
    PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
