"""Tables of ../controller.md, from what `tables.py` and the stages of params.yaml in this folder wrote."""

from pathlib import Path

import as_published
import pandas as pd
from layout import number, table

HERE = Path(__file__).resolve().parent
SCENARIOS = {
    "shares_4": "4 groups",
    "shares_20": "20",
    "shares_80": "80",
    "hpc2n_4": "HPC2N, 4",
    "hpc2n_20": "HPC2N, 20",
    "hpc2n_4_borrowing": "HPC2N, 4, borrowing",
}
RULES = {
    "equal": "`equal`",
    "fixed": "`fixed`",
    "proportional": "`proportional`",
    "drf": "`drf`",
    "capacity": "`capacity`",
    "shortest_first": "`shortest_first`",
    "lookahead": "`lookahead`",
    "best_rule": "best rule by load",
    "pretrained": "pre-trained only",
    "own": "each group's own best",
    "oracle": "`oracle`",
    "undivided": "`undivided`",
}


def waiting() -> str:
    """Return mean waiting time over all loads, and how the controller differs from each rule."""
    found = pd.read_csv(HERE / "paired.csv", dtype={"load": str})
    found = found[(found["measure"] == "delay") & (found["load"] == "all") & (found["policy"] == "controller")]
    cells = found.set_index(["against", "scenario"])
    own = [f"**{number(cells.loc[('equal', scenario), 'mean'])}**" for scenario in SCENARIOS]
    rows = [[name, *(_against(cells.loc[(rule, scenario)]) for scenario in SCENARIOS)] for rule, name in RULES.items()]
    return table(["policy", *SCENARIOS.values()], [["**controller**", *own], *rows])


def _against(row: pd.Series) -> str:
    mean, low, high = (100 * row[name] for name in ("difference", "difference_low", "difference_high"))
    return f"{number(row['mean_against'])}: {mean:+.0f} % ({low:+.0f} to {high:+.0f})"


def seeds() -> str:
    """Return each training's mean waiting time over all loads."""
    found = pd.read_csv(HERE / "seeds.csv")
    found = found[(found["measure"] == "delay") & (found["policy"] == "controller")]
    rows = []
    for scenario, name in SCENARIOS.items():
        mine = found[found["scenario"] == scenario]
        means = mine.drop(columns=["scenario", "measure", "policy", "agent"]).mean(axis=1)
        rows.append([name, *(number(mean) for mean in means)])
    return table(["groups", "seed 1", "seed 2", "seed 3"], rows)


def off_policy() -> str:
    """Return how well fitted Q evaluation agrees with the simulator, over the 18 estimates of three runs."""
    found = pd.read_csv(HERE / "off_policy.csv")
    rows = []
    for scenario, name in SCENARIOS.items():
        mine = found[found["scenario"] == scenario]

        rank = mine["estimate"].rank().corr(mine["truth"].rank())
        rows.append([name, f"{100 * mine['error'].abs().mean():.0f} %", f"{rank:.2f}"])
    return table(["groups", "mean error, without sign", "rank correlation"], rows)


TABLES = {
    "mean waiting time": waiting,
    "seeds": seeds,
    "off-policy evaluation": off_policy,
    **as_published.tables("controller"),
}
