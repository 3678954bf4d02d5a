"""Tables of ../deepk8s.md, from the run of params.yaml in this folder."""

from functools import partial
from pathlib import Path

import as_published
import layout
import numpy as np
import pandas as pd
from layout import FROM_END, change, difference, number, table

from pipeline.comparing.statistics import comparison
from pipeline.core.config import load_params
from pipeline.problems.machines.env.evaluation.metrics import CLEARLY

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
LOGS = {"openb": "openb", "cloudsimpy": "CloudSimPy"}
POLICIES = {
    "ppo": "PPO",
    "sjf_most_allocated": "SJF, machine by MostAllocated",
    "dagger": "DAgger",
    "sjf": "SJF",
    "fcfs": "FCFS",
    "a3c": "A3C",
}
LEARNED = ("ppo", "dagger", "a3c")
MEAN = "mean of three training runs"  # its interval is over jobsets and seeds
TRAININGS = tuple(f"machines_evolved_{seed}" for seed in (1, 2, 3))
STEADY = (*TRAININGS, "sjf_most_allocated", "wfp3", "most_allocated")  # in the table of waits
COSTS = {"makespan": "makespan", "longest_wait": "longest wait"}


def claims() -> str:
    """Return the verdicts on the parts of each of the paper's claims, on both logs."""
    found = layout.claims(HERE / "claims.csv").replace({"verdict": layout.UNDECIDED}, regex=True)
    rows = []
    for claim, parts in found.groupby("claim", sort=False):
        cells = [parts.loc[parts["figure"].str.endswith(log), "verdict"].value_counts() for log in LOGS]
        rows.append([str(claim), *(", ".join(f"{n} {word}" for word, n in of.items()) for of in cells)])
    return table(["claim of the paper", *LOGS.values()], rows, words=3)


def compared(log: str) -> tuple[pd.Series, pd.DataFrame, pd.DataFrame]:
    """Return over the loads of a log, by policy: mean slowdown, its difference from SJF, and the costs."""
    settings = load_params(ROOT / "params.yaml").evaluation
    rows = pd.read_csv(HERE / "jobsets.csv.gz").query("scenario == @log").astype({"unit": int})
    sjf = {"sjf": dict.fromkeys(rows["load"].unique(), "sjf")}
    gaps = comparison(rows, log, sjf, settings, np.random.default_rng(1)).query("load == 'all'")
    means, costs = (
        rows.groupby(["policy", "load"])[names].mean().groupby("policy").mean()
        for names in ("mean_slowdown", list(COSTS))
    )
    return means, gaps.set_index("policy"), costs


def slowdown() -> str:
    """Return mean slowdown over three loads, and the difference from SJF."""
    found, written = {log: compared(log) for log in LOGS}, []
    for policy, name in POLICIES.items():
        cells = []
        for log, (means, gaps, costs) in found.items():
            name_there = f"{log}_{policy}" if policy in LEARNED else policy
            own, sjf = costs.loc[name_there], costs.loc["sjf"]
            late = own["makespan"] > (1 + CLEARLY) * sjf["makespan"] and means[name_there] < means["sjf"]
            cells.append(f"{_digits(means[name_there])} {FROM_END}" if late else _digits(means[name_there]))
            if name_there == "sjf":
                cells += [""] * (1 + len(COSTS))
                continue
            cells += [difference(gaps.loc[name_there]), *(change(own[cost], sjf[cost]) for cost in COSTS)]
        written.append([name, *cells])
    to = ["vs. SJF", *(f"{name} vs. SJF" for name in COSTS.values())]
    return table(["policy", "openb", *to, "CloudSimPy", *to], written)


def _digits(mean: float) -> str:
    return f"{mean:.3f}" if mean < 2 else number(mean)


def sustained() -> str:
    """Return the number of waiting jobs at the first and at the last count, by load and rule."""
    found = pd.read_csv(HERE / "sustained.csv")
    first, last = found["job"].min(), found["job"].max()
    found = found[found["job"].isin([first, last])]
    cells = found.pivot(index=["load", "policy"], columns="job", values="waiting")
    rules, loads = found["policy"].unique(), [80, 82, 84, 88]
    rows = [
        [f"{load} %", *(" to ".join(f"{n:,.0f}" for n in cells.loc[load, rule]) for rule in rules)] for load in loads
    ]
    return table([f"load; jobs waiting, job {first:,} to {last:,}", *rules], rows)


def steady() -> str:
    """Return slowdown and waits at 84 % while arrivals continue, on confirming jobsets."""
    each = pd.read_csv(HERE / "steady.csv.gz").groupby(["load", "policy"])
    means = each[["mean_bounded_slowdown", "mean_wait", "p99_wait"]].mean()
    means = means.assign(longest=each["longest_wait"].max(), never=each["unfinished"].sum())
    rows = []
    shown = means[means.index.isin(STEADY, level="policy") & means.index.isin([84], level="load")]
    for (load, policy), row in shown.sort_values(["load", "mean_bounded_slowdown"]).iterrows():
        waits = [number(row[name]) for name in ("mean_wait", "p99_wait", "longest")]
        rows.append([f"{load} %", policy, f"{row['mean_bounded_slowdown']:.3f}", *waits, f"{row['never']:.0f}"])
    head = ["load", "policy", "bounded slowdown", "mean wait", "p99 of waits", "longest wait", "never started"]
    return table(head, rows, words=2)


def steady_gaps() -> str:
    """Return the paired difference of the mean of three training runs from two rules, by load."""
    kept = ["policy", "load", "jobset", "unfinished", "mean_slowdown"]
    frame = pd.read_csv(HERE / "steady.csv.gz").rename(columns={"mean_bounded_slowdown": "mean_slowdown"})[kept]
    params, loads = load_params(ROOT / "params.yaml"), sorted(frame["load"].unique())
    rules = ("sjf_most_allocated", "wfp3")
    to = {rule: dict.fromkeys(loads, rule) for rule in rules}
    rng = np.random.default_rng(params.seed)
    found = comparison(frame, "machines_steady", to, params.evaluation, rng, {MEAN: TRAININGS})
    found = found.set_index(["policy", "against", "load"]).sort_index()
    keys = {**{f"{load:03d}": f"{load} %" for load in loads}, "all": "all"}
    rows = [[rule, *(difference(found.loc[(MEAN, rule, key)]) for key in keys)] for rule in rules]
    count = frame.groupby("load")["jobset"].nunique().iloc[0]
    return table([f"{MEAN}, n = {count} a load, vs.", *keys.values()], rows)


TABLES = {
    "claims": claims,
    "slowdown": slowdown,
    "sustained": sustained,
    "steady": steady,
    "steady, trainings": steady_gaps,
    "the paper's recipe": partial(as_published.overall, "deepk8s", list(as_published.SHOWN["deepk8s"])),
}
