"""Tables of ../default.md, and of the README: the default run, on confirming jobsets and on the test jobsets.

    make repro && python -m pipeline confirm online && python -m pipeline confirm streams
    python docs/results/tables.py gather && python docs/results/tables.py write

`gather` keeps what every policy shown had on every confirming jobset (`jobsets.csv.gz`), and which models they were
(`models.json`). The other tables are from `reports/` as it is in the repository.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import layout
import numpy as np
import pandas as pd
from layout import FROM_END, change, difference, number, table
from ruamel.yaml import YAML

from pipeline import storage
from pipeline.comparing.statistics import comparison
from pipeline.config import Evaluation, load_params
from pipeline.problems import problem_of
from pipeline.problems.machines.evaluation.metrics import from_end
from pipeline.simulation.results import slowdown_column
from pipeline.stages.confirm import FOLDER

ROOT = Path(__file__).resolve().parents[3]
DATA = Path(__file__).with_name("jobsets.csv.gz")
MODELS = Path(__file__).with_name("models.json")
REFERENCE = "hold"
COLUMNS = ["scenario", "policy", "load", "jobset", "slowdown", "unfinished"]


class Shown(NamedTuple):
    """What a table of confirming jobsets shows."""

    scenario: str
    loads: Sequence[int]
    compared: Sequence[int]  # loads at which learned policies are held against the reference
    policies: Mapping[str, str]  # and what rules are called; learned ones go by their own name


LEARNED = ("deeprm3", "deeprm2", "deeprm")
RULES = {"linear": "linear, searched", "hold_until": "hold_until, tuned", "hold": "hold, tuned", "sjf": "sjf"}
CONFIRMED = {
    "short runs": Shown(
        scenario="online",
        loads=(10, 30, 70, 110, 130, 190),
        compared=(70, 110, 130, 190),
        policies=dict.fromkeys(LEARNED, "") | RULES,
    ),
    "streams": Shown(
        scenario="streams",
        loads=(50, 70, 80, 90, 95, 110),
        compared=(70, 80, 90, 95),
        policies=dict.fromkeys(LEARNED[:1], "") | RULES,
    ),
}


def gather() -> None:
    """Keep what the policies shown had on every confirming jobset, and which models they were."""
    params, found = load_params(ROOT / "params.yaml"), []
    for shown in CONFIRMED.values():
        schema = problem_of(params, shown.scenario).tables.jobsets
        rows = storage.read_table(ROOT / FOLDER / shown.scenario / "jobsets.parquet", schema)
        rows = rows[rows["policy"].isin(shown.policies) & rows["load"].isin(shown.loads)]
        found.append(rows.assign(scenario=shown.scenario, slowdown=rows[slowdown_column(rows)])[COLUMNS])
    kept = pd.concat(found, ignore_index=True)
    kept.to_csv(DATA, index=False, float_format="%.6g", compression={"method": "gzip", "mtime": 0})
    MODELS.write_text(json.dumps(models(), indent=2) + "\n")


def models() -> dict[str, str]:
    """Return the digests of the models and tuned rules that are played, as dvc.lock has them."""
    stages = YAML(typ="safe").load(ROOT / "dvc.lock")["stages"]
    rules = [f"heuristics@{shown.scenario}" for shown in CONFIRMED.values()]
    wanted = [f"finetune@{agent}" for agent in LEARNED] + rules
    outs = [out for name in wanted for out in stages[name]["outs"] if not out["path"].endswith(".csv")]
    return {out["path"]: out["md5"] for out in outs}


def against(data: pd.DataFrame, shown: Shown, reference: str, settings: Evaluation, seed: int) -> pd.DataFrame:
    """Return how every policy differs from one at each load, with paired intervals; a row a policy and load."""
    rows = data[data["scenario"] == shown.scenario].rename(columns={"slowdown": "mean_slowdown"})
    references = {reference: dict.fromkeys(shown.loads, reference)}
    found = comparison(rows, shown.scenario, references, settings, np.random.default_rng(seed))
    found = found[found["load"] != "all"].assign(load=lambda frame: frame["load"].astype(int))
    return found.set_index(["policy", "load"])


def confirmed(title: str, data: pd.DataFrame | None = None) -> str:
    """Return a table of mean slowdown on confirming jobsets."""
    data = pd.read_csv(DATA) if data is None else data
    shown, params = CONFIRMED[title], load_params(ROOT / "params.yaml")
    cells = against(data, shown, REFERENCE, params.evaluation, params.seed)
    means = data[data["scenario"] == shown.scenario].groupby(["policy", "load"])["slowdown"].mean()
    rows = []
    for policy, name in shown.policies.items():
        row = [number(means[policy, load]) for load in shown.loads]
        if policy in LEARNED:
            row = [
                text + (_difference(cells.loc[(policy, load)]) if load in shown.compared else "")
                for text, load in zip(row, shown.loads, strict=True)
            ]
        rows.append([name or policy, *row])
    return table([title, *(f"{load} %" for load in shown.loads)], rows)


def _difference(row: pd.Series) -> str:
    low, high = (f"{100 * row[name]:.0f}" for name in ("difference_low", "difference_high"))
    return f" ({100 * row['difference']:+.0f} %, {low} to {high})"


def report(name: str) -> pd.DataFrame:
    """Return a table of reports/, as the default run left it; loads are words, without leading zeros."""
    found = pd.read_csv(ROOT / "reports" / f"{name}.csv", dtype={"load": str})
    return found.assign(load=found["load"].str.lstrip("0"))


def over_loads(name: str, scenario: str, reference: str, policies: Sequence[str]) -> dict[str, list[str]]:
    """Return for each policy its mean over all loads, and how it differs from a reference."""
    found = report(name)
    found = found[(found["scenario"] == scenario) & (found["load"] == "all") & (found["against"] == reference)]
    rows = found.set_index("policy")
    own = rows["mean_against"].iloc[0]
    return {
        policy: [_fine(rows.loc[policy, "mean"]), difference(rows.loc[policy])]
        if policy in rows.index
        else [_fine(own), ""]
        for policy in policies
    }


def _fine(mean: float) -> str:
    return f"{mean:.3f}" if mean < 2 else number(mean)


def to_best() -> str:
    """Return how the agents of short runs and streams differ from the best heuristic of each load, on test jobsets."""
    found = report("comparison")
    found = found[found["against"] == "best_heuristic"]
    rows = []
    for scenario, agents in (("online", LEARNED), ("streams", LEARNED[:1])):
        for agent in agents:
            for _, row in found[(found["scenario"] == scenario) & (found["policy"] == agent)].iterrows():
                label = "all loads" if row["load"] == "all" else f"{row['load']} %"
                rows.append([scenario, agent, label, _fine(row["mean"]), _fine(row["mean_against"]), difference(row)])
    return table(["scenario", "agent", "load", "mean slowdown", "best heuristic", "difference"], rows, words=3)


def offline() -> str:
    """Return mean slowdown where all jobs arrive at once."""
    policies = ("linear", "hold", "deeprm_off", "easy", "tetris", "sjf", "deeprm_off_pretrained", "fcfs", "packer")
    cells = over_loads("comparison", "offline", "best_heuristic", policies)
    head = ["30 jobs at once", "mean slowdown", "to the best heuristic"]
    return table(head, [[policy, *row] for policy, row in cells.items()])


MACHINES = (
    "deepk8s_ppo",
    "sjf_most_allocated",
    "sjf",
    "deepk8s_dagger",
    "saf",
    "fcfs",
    "random",
    "deepk8s_a3c_pretrained",
    "deepk8s_a3c",
)


def machines() -> str:
    """Return bounded slowdown and wait on five machines, over all loads, and what they cost."""
    slow = over_loads("comparison", "machines", "sjf", MACHINES)
    wait = over_loads("delay", "machines", "sjf", MACHINES)
    keys = ["scenario", "load", "policy"]
    rows = report("summary").merge(report("machines_summary")[[*keys, "bounded_slowdown", "longest_wait"]], on=keys)
    rows = rows[rows["scenario"] == "machines"].reset_index(drop=True)
    rows["gain"] = from_end(rows, pd.Series("sjf", index=rows.index))
    each = rows.groupby("policy")
    means, longest, gains = each[list(PRICES)].mean(), each["longest_wait"].max(), each["gain"].any()
    written = []
    for policy in MACHINES:
        own, to = means.loc[policy], means.loc["sjf"]
        prices = [change(own[name], to[name]) if policy != "sjf" else "" for name in PRICES]
        mark = [f"{slow[policy][0]} {FROM_END}" if gains[policy] else slow[policy][0], slow[policy][1]]
        written.append([policy, *mark, *wait[policy], *prices, number(longest[policy])])
    head = ["five machines", "bounded slowdown", "to SJF", "mean wait, time units", "to SJF"]
    return table([*head, *(f"{name} to SJF" for name in PRICES.values()), "longest wait"], written)


def price() -> str:
    """Return what deepk8s_ppo costs: completion time and makespan beside SJF's at each load."""
    found = report("summary")
    cells = found[found["scenario"] == "machines"].set_index(["policy", "load"])
    rows = []
    for load in cells.loc["sjf"].index:
        own, other = cells.loc[("deepk8s_ppo", load)], cells.loc[("sjf", load)]
        shown = [[number(own[name]), number(other[name]), change(own[name], other[name])] for name in PRICES]
        rows.append([f"{load} %", *(cell for part in shown for cell in part)])
    head = ["load", *(cell for name in PRICES.values() for cell in (f"{name}, PPO", "SJF", "PPO to SJF"))]
    return table(head, rows)


PRICES = {"completion_time": "completion time", "makespan": "makespan"}


def shares() -> str:
    """Return mean waiting time of user groups, over all loads."""
    policies = ("oracle", "undivided", "controller", "lookahead", "controller_pretrained", "proportional")
    policies += ("shortest_first", "capacity", "drf", "fixed", "controller_own")
    cells = {to: over_loads("delay", "shares", to, policies) for to in ("proportional", "lookahead")}
    rows = [[policy, *cells["proportional"][policy], cells["lookahead"][policy][1]] for policy in policies]
    return table(["four user groups", "mean wait, time units", "to `proportional`", "to `lookahead`"], rows)


def waits() -> str:
    """Return the longest wait of any job on the test streams, in steps, by load."""
    found = report("stream_summary")
    cells = found[found["scenario"] == "streams"].set_index(["policy", "load"])["longest_wait"]
    loads = cells.loc["sjf"].index
    policies = ("deeprm3", "linear", "easy", "hold", "sjf")
    rows = [[policy, *(f"{cells[policy, load]:,}" for load in loads)] for policy in policies]
    return table(["longest wait, steps", *(f"{load} %" for load in loads)], rows)


def claims() -> str:
    """Return how many parts of each paper's claims hold in this run."""
    found = layout.claims(ROOT / "reports" / "papers.csv")
    counts = found.groupby([found["paper"].str.split(",").str[0], "verdict"]).size().unstack(fill_value=0)
    words = [word for word in ("yes", "partly", "no", "cannot be told") if word in counts]
    return table(["paper", *words], [[name, *(str(row[word]) for word in words)] for name, row in counts.iterrows()])


TABLES = {
    "short runs": lambda: confirmed("short runs"),
    "streams": lambda: confirmed("streams"),
    "against the best heuristic": to_best,
    "all at once": offline,
    "five machines": machines,
    "what deepk8s_ppo costs": price,
    "four user groups": shares,
    "longest waits on streams": waits,
    "claims of the papers": claims,
}
