"""Tables of ../deepk8s.md, from the run of params.yaml in this folder."""

from pathlib import Path

import as_published
import layout
import pandas as pd
from layout import difference, number, table

HERE = Path(__file__).resolve().parent
LOGS = {"openb": "openb", "cloudsimpy": "CloudSimPy"}
POLICIES = {
    "ppo": "PPO",
    "sjf_most_allocated": "SJF, machine by MostAllocated",
    "saf": "SAF",
    "dagger": "DAgger",
    "sjf": "SJF",
    "tetris": "Tetris, tuned",
    "least_allocated": "FCFS, machine by LeastAllocated",
    "random": "Random",
    "fcfs": "FCFS",
    "a3c": "A3C",
}
LEARNED = ("ppo", "dagger", "a3c")


def claims() -> str:
    """Return each part of each claim of the paper with its verdict on either log."""
    found = layout.claims(HERE / "claims.csv")
    verdicts = {log: found[found["figure"].str.endswith(log)].set_index(["claim", "part"])["verdict"] for log in LOGS}
    keys = found[["claim", "part"]].drop_duplicates().itertuples(index=False)
    rows = [[*key, *(verdicts[log][tuple(key)] for log in LOGS)] for key in keys]
    return table(["claim of the paper", "part", *LOGS.values()], rows, words=4)


def slowdown() -> str:
    """Return mean slowdown over three loads, and the difference from SJF."""
    found = pd.read_csv(HERE / "comparison.csv", dtype={"load": str})
    found = found[(found["load"] == "all") & (found["against"] == "sjf")].set_index(["scenario", "policy"])
    rows = []
    for policy, name in POLICIES.items():
        cells = []
        for log in LOGS:
            if policy == "sjf":
                cells += [_digits(found.loc[(log, "tetris"), "mean_against"]), ""]
                continue
            row = found.loc[(log, f"{log}_{policy}" if policy in LEARNED else policy)]
            cells += [_digits(row["mean"]), difference(row)]
        rows.append([name, *cells])
    return table(["policy", "openb", "to SJF", "CloudSimPy", "to SJF"], rows)


def _digits(mean: float) -> str:
    return f"{mean:.3f}" if mean < 2 else number(mean)


TABLES = {"claims": claims, "slowdown": slowdown, **as_published.tables("deepk8s")}
