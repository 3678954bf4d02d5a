"""Print the tables of docs/results/deeprm3.md from what `measure.py` wrote.

python docs/results/deeprm3/tables.py FOLDER
"""

import sys
from pathlib import Path

import pandas as pd

from pipeline.progress import say

AGENT = "deeprm3"
OTHERS = {
    "short": ("hold", "linear", "deeprm", "deeprm_long", "deeprm2", "deeprm2_long"),
    "streams": ("hold", "easy", "tetris", "linear"),
}
TITLES = {
    "slots_5": "5 slots",
    "slots_20": "20 slots",
    "slots_60": "60 slots",
    "slots_128": "128 slots",
    "capacity_20": "20 units of each resource",
    "capacity_40": "40 units",
    "three": "three resources of 20 units",
    "text": "demands of DeepRM's text, 20 units",
    "mix_flat": "60 % of 1 to 5 steps, the rest of 8 to 20",
    "mix_short": "70 % of 1 or 2 steps, the rest of 5 to 8",
    "horizon_40": "horizon of 40 steps",
    "bernoulli": "at most one job a step",
    "bursts": "bursts of 5 jobs",
    "streams_10": "streams of 10 slots",
    "estimates": "estimates, log-normal noise of 0.5",
    "hpc2n_durations": "HPC2N, durations known",
    "hpc2n_estimates": "HPC2N, users' estimates",
}


def read(folder: Path, problem: str) -> pd.DataFrame:
    """Return who is how much better than whom: one row a load, policy and reference."""
    table = pd.read_csv(folder / f"{problem}.csv", dtype={"load": str})
    return table.set_index(["load", "policy", "against"]).sort_index()


def gap(row: pd.Series, sign: bool = True) -> str:
    """Return a difference in percent, and its interval."""
    mean, low, high = (100 * row[name] for name in ("difference", "difference_low", "difference_high"))
    return f"{mean:+.1f} % ({low:+.1f} to {high:+.1f})" if sign else f"{mean:+.1f}"


def means(table: pd.DataFrame, policies: tuple[str, ...]) -> list[str]:
    """Return a row a load: means, and differences from SJF, hold and the best heuristic."""
    found = []
    for load in (load for load in table.index.unique("load") if load != "all"):
        mine = [f"{table.loc[(load, policy), 'mean'].iloc[0]:.4g}" for policy in policies]
        apart = [gap(table.loc[(load, AGENT, other)]) for other in ("sjf", "hold", "best_heuristic")]
        best = table.loc[(load, AGENT, "sjf"), "best_heuristic"]
        found.append(f"| {int(load)} | {' | '.join([*mine, *apart])} | {best} |")
    return found


def tails(table: pd.DataFrame, policies: tuple[str, ...]) -> list[str]:
    """Return a row a policy: 99th percentile of slowdown and longest wait at each load."""
    loads = [load for load in table.index.unique("load") if load != "all"]
    rows = {policy: [table.loc[(load, policy)].iloc[0] for load in loads] for policy in policies}
    return [
        f"| {policy} | {' | '.join(f'{row.p99:.1f} / {row.worst_wait:,.0f}' for row in found)} |"
        for policy, found in rows.items()
    ]


def transfer(table: pd.DataFrame, title: str) -> str:
    """Return a problem's row: differences at each load from SJF and the best heuristic, and over all."""
    loads = [load for load in table.index.unique("load") if load != "all"]
    both = [
        " / ".join(gap(table.loc[(load, AGENT, other)], False) for other in ("sjf", "best_heuristic")) for load in loads
    ]
    over_all = "all" if len(loads) > 1 else loads[0]
    wholes = [gap(table.loc[(over_all, AGENT, other)]) for other in ("sjf", "best_heuristic")]
    return f"| {title} | {' | '.join(both if len(loads) > 1 else [*both, '', '', ''])} | {' | '.join(wholes)} |"


def main(folder: Path) -> None:
    """Print the tables of the problems that are there."""
    for problem, others in OTHERS.items():
        if (folder / f"{problem}.csv").exists():
            table = read(folder, problem)
            policies = ("sjf", *(name for name in others if name in table.index.unique("policy")), AGENT)
            head = f"| load | {' | '.join(policies)} | to SJF | to hold | to the best heuristic | the best |"
            say("\n".join([problem, head, *means(table, policies), *tails(table, policies)]))
    found = {name: title for name, title in TITLES.items() if (folder / f"{name}.csv").exists()}
    say("\n".join(transfer(read(folder, name), title) for name, title in found.items()))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
