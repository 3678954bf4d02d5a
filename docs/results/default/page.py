"""Tables of ../default.md: results of the default run on confirming jobsets and on test jobsets.

    make repro && python docs/results/tables.py confirm && python docs/results/tables.py write

`confirm` runs all policies on every scenario's confirming jobsets and stores the results (`jobsets.csv.gz`). It also
stores those on validation jobsets, from which situations.md follows (`validation.csv`), those on test
jobsets, from which any interval of `reports/` can be recomputed (`tested/`), and the digests of the models
(`models.json`). `gather` only stores, after `python -m pipeline confirm SCENARIO`. The other tables are from
`reports/` in the repository.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import layout
import numpy as np
import pandas as pd
from layout import FROM_END, change, difference, number, table
from ruamel.yaml import YAML

from pipeline.comparing.statistics import ALL, comparison
from pipeline.core import storage
from pipeline.core.config import Evaluation, Params, PoolScenario, load_params
from pipeline.problems import problem_of
from pipeline.problems.machines.env.evaluation.metrics import from_end
from pipeline.stages import confirm
from pipeline.stages.replaying import measures

ROOT = Path(__file__).resolve().parents[3]
DATA = Path(__file__).with_name("jobsets.csv.gz")
MODELS = Path(__file__).with_name("models.json")
VALIDATION = Path(__file__).with_name("validation.csv")
TESTED = Path(__file__).with_name("tested")
# Stored measures of a test jobset: all that have reported intervals, where a scenario has them.
MEASURES = ("mean_slowdown", "mean_bounded_slowdown", "mean_wait", "p99_slowdown", "longest_wait")
MEASURES += ("completion_time", "makespan", "unfinished")
REFERENCE = "hold"
COLUMNS = ["scenario", "policy", "load", "jobset", "cost", "p99", "longest_wait", "unfinished"]
SHORT = (10, 30, 70, 110, 190)  # percent: loads of short runs that are shown


class Shown(NamedTuple):
    """Content of a table of confirming jobsets."""

    scenario: str
    loads: Sequence[int]
    policies: Mapping[str, str]  # and their titles; empty for learned ones, which keep their names


RULES = {
    "linear": "linear, searched",
    "hold_long": "hold_long, tuned",
    "hold": "hold, tuned",
    "sjf": "sjf",
}
CONFIRMED = {"short runs": "online", "streams": "streams"}
PACKED = {"method": "gzip", "mtime": 0}


def repository() -> Params:
    """Return params.yaml of the repository."""
    return load_params(ROOT / "params.yaml")


def learned(params: Params) -> list[str]:
    """Return the learned policies, deeprm3 first."""
    return sorted(params.judged, key=lambda name: name != "deeprm3")


def shown(title: str, data: pd.DataFrame) -> Shown:
    """Return the content of a table of confirming jobsets, limited to available results."""
    scenario, params = CONFIRMED[title], repository()
    rows = data[data["scenario"] == scenario]
    there, loads = set(rows["policy"]), sorted(rows["load"].unique())
    names = dict.fromkeys(learned(params), "") | RULES
    some = [load for load in SHORT if load in loads]
    policies = {name: said for name, said in names.items() if name in there}
    return Shown(scenario, some if len(loads) > len(SHORT) else loads, policies)


def gather() -> None:
    """Store the results on confirming and validation jobsets, and the digests of the models."""
    params, found, chosen = repository(), list[pd.DataFrame](), list[pd.DataFrame]()
    for scenario in params.scenarios:
        path = ROOT / confirm.FOLDER / scenario / "jobsets.parquet"
        rows = storage.read_table(path, problem_of(params, scenario).tables.jobsets)
        rows = rows[~rows["policy"].str.endswith("_pretrained")]
        cost, tail = measures(params, scenario, rows)
        tails = {"p99": rows[tail], "longest_wait": rows.get("longest_wait", np.nan)}  # missing where all jobs end
        found.append(rows.assign(scenario=scenario, cost=rows[cost], **tails)[COLUMNS])
        chosen.append(validated(params, scenario, cost))
    pd.concat(found, ignore_index=True).to_csv(DATA, index=False, float_format="%.5g", compression=PACKED)
    pd.concat(chosen, ignore_index=True).to_csv(VALIDATION, index=False, float_format="%.6g")
    MODELS.write_text(json.dumps(models(), indent=2) + "\n")
    keep_tested(params)


def keep_tested(params: Params) -> None:
    """Store every policy's result on every test jobset, with few columns and digits."""
    for old in TESTED.glob("*.csv.gz"):
        old.unlink()
    for scenario in params.scenarios:
        rows = storage.read_jobset_results(params, scenario, problem_of(params, scenario).tables)
        columns = ["policy", "load", "jobset", *(name for name in MEASURES if name in rows)]
        rows[columns].to_csv(TESTED / f"{scenario}.csv.gz", index=False, float_format="%.5g", compression=PACKED)


def validated(params: Params, scenario: str, cost: str) -> pd.DataFrame:
    """Return every policy's mean cost on validation jobsets, by load, without reference policies."""
    problem, knobs = problem_of(params, scenario), storage.read_chosen(scenario).knobs
    here = problem.scoring(params, scenario, None)
    jobsets = here.read("validation")
    results = here.score(here.heuristics(knobs), jobsets=jobsets)
    for name in (name for name in params.agents_of(scenario) if name in params.agents):
        policy = {name: problem.learning.policies(params, name)[name]}
        results |= problem.scoring(params, scenario, name).score(policy, jobsets=jobsets)
    rows = pd.concat([done.jobsets for done in results.values()], ignore_index=True)
    rows = rows[~rows["policy"].isin(problem.comparison.references)]
    means = rows.groupby(["policy", "load"], sort=False)[cost].mean().rename("mean").reset_index()
    return means.assign(scenario=scenario, measure=cost)[["scenario", "measure", "policy", "load", "mean"]]


def confirm_all() -> None:
    """Run the confirming jobsets of every scenario, and store the results."""
    params = repository()
    for scenario in params.scenarios:
        confirm.run(params, scenario)
    gather()


def models() -> dict[str, str]:
    """Return the digests in dvc.lock of the models and tuned rules in use."""
    params, stages = repository(), YAML(typ="safe").load(ROOT / "dvc.lock")["stages"]
    wanted = [f"finetune@{agent}" for agent in params.agents] + [f"heuristics@{name}" for name in params.scenarios]
    outs = [out for name in wanted for out in stages[name]["outs"] if not out["path"].endswith(".csv")]
    return {out["path"]: out["md5"] for out in outs}


def against(data: pd.DataFrame, asked: Shown, reference: str, settings: Evaluation, seed: int) -> pd.DataFrame:
    """Return every policy's difference from a reference at each load, with paired intervals."""
    rows = paired(data, asked.scenario, asked.policies, asked.loads)
    references = {reference: dict.fromkeys(asked.loads, reference)}
    found = comparison(rows, asked.scenario, references, settings, np.random.default_rng(seed))
    found = found[found["load"] != ALL].assign(load=lambda frame: frame["load"].astype(int))
    return found.set_index(["policy", "load"])


def paired(data: pd.DataFrame, scenario: str, policies: Collection[str], loads: Collection[int]) -> pd.DataFrame:
    """Return the confirming jobsets of some policies and loads in the columns of `comparison`."""
    rows = data[(data["scenario"] == scenario) & data["policy"].isin(policies) & data["load"].isin(loads)]
    return rows.rename(columns={"cost": "mean_slowdown"})


def confirmed(title: str, data: pd.DataFrame | None = None) -> str:
    """Return a table of mean slowdown on confirming jobsets."""
    data = pd.read_csv(DATA) if data is None else data
    asked, params = shown(title, data), repository()
    cells = against(data, asked, REFERENCE, params.evaluation, params.seed)
    means = data[data["scenario"] == asked.scenario].groupby(["policy", "load"])["cost"].mean()
    rows = []
    for policy, name in asked.policies.items():
        row = [number(means[policy, load]) for load in asked.loads]
        if policy in params.judged:
            row = [
                f"{text}{_difference(cells.loc[(policy, load)])}" for text, load in zip(row, asked.loads, strict=True)
            ]
        rows.append([name or policy, *row])
    return table([title, *(f"{load} %" for load in asked.loads)], rows)


def _difference(row: pd.Series) -> str:
    low, high = (f"{100 * row[name]:.0f}" for name in ("difference_low", "difference_high"))
    return f" ({100 * row['difference']:+.0f} %, {low} to {high})"


def report(name: str) -> pd.DataFrame:
    """Return a table of reports/; loads are strings without leading zeros."""
    found = pd.read_csv(ROOT / "reports" / f"{name}.csv", dtype={"load": str})
    return found.assign(load=found["load"].str.lstrip("0"))


def over_loads(name: str, scenario: str, reference: str, policies: Sequence[str]) -> dict[str, list[str]]:
    """Return each policy's mean over all loads and its difference from a reference."""
    found = report(name)
    found = found[(found["scenario"] == scenario) & (found["load"] == "all") & (found["against"] == reference)]
    rows = found.set_index("policy")
    known = {
        policy: [_fine(rows.loc[policy, "mean"]), difference(rows.loc[policy])]
        for policy in policies
        if policy in rows.index
    }
    best = {policy for policy in policies if policy not in known and policy in _scored(scenario)}
    own = {policy: [_fine(rows["mean_against"].iloc[0]), ""] for policy in best}
    return {policy: (known | own)[policy] for policy in policies if policy in known | own}


def _scored(scenario: str) -> set[str]:
    """Return the policies that have results on a scenario's test jobsets."""
    summary = report("summary")
    return set(summary.loc[summary["scenario"] == scenario, "policy"])


def _fine(mean: float) -> str:
    return f"{mean:.3f}" if mean < 2 else number(mean)


def to_best() -> str:
    """Return the agents' differences from the best heuristic of each load, on test jobsets."""
    found, params = report("comparison"), repository()
    found = found[found["against"] == "best_heuristic"]
    rows = []
    for scenario in (name for name, row in params.scenarios_of(PoolScenario).items() if len(row.loads) > 1):
        for agent in (name for name in learned(params) if name in params.agents_of(scenario)):
            own = found[(found["scenario"] == scenario) & (found["policy"] == agent)].set_index("load")
            if ALL not in own.index:
                continue
            whole, each = own.loc[ALL], own.drop(ALL)
            means = [_fine(whole["mean"]), _fine(whole["mean_against"]), difference(whole)]
            better, worse = each["difference_high"] < 0, each["difference_low"] > 0
            loads = [", ".join(each.index[where]) + " %" if where.any() else "none" for where in (better, worse)]
            rows.append([scenario, agent, *means, *loads])
    head = ["scenario", "agent", "mean slowdown", "best heuristic", "difference", "better at", "worse at"]
    return table(head, rows, words=2)


def offline() -> str:
    """Return mean slowdown with all jobs arriving at once."""
    policies = ("linear", "hold_long", "deeprm3_off", "deeprm_off", "easy", "sjf")
    cells = over_loads("comparison", "offline", "best_heuristic", policies)
    head = ["30 jobs at once", "mean slowdown", "vs. the best heuristic"]
    return table(head, [[policy, *row] for policy, row in cells.items()])


MACHINES = ("deepk8s_ppo", "sjf_most_allocated", "sjf", "deepk8s_dagger", "deepk8s_a3c")


def machines() -> str:
    """Return bounded slowdown, wait, completion time and makespan on five machines, over all loads."""
    slow = over_loads("comparison", "machines", "sjf", MACHINES)
    wait = over_loads("delay", "machines", "sjf", MACHINES)
    keys = ["scenario", "load", "policy"]
    rows = report("summary").merge(report("machines_summary")[[*keys, "bounded_slowdown", "longest_wait"]], on=keys)
    rows = rows[rows["scenario"] == "machines"].reset_index(drop=True)
    rows["gain"] = from_end(rows, pd.Series("sjf", index=rows.index))
    each = rows.groupby("policy")
    means, longest, gains = each[list(PRICES)].mean(), each["longest_wait"].max(), each["gain"].any()
    written = []
    for policy in slow:
        own, to = means.loc[policy], means.loc["sjf"]
        prices = [change(own[name], to[name]) if policy != "sjf" else "" for name in PRICES]
        mark = [f"{slow[policy][0]} {FROM_END}" if gains[policy] else slow[policy][0], slow[policy][1]]
        written.append([policy, *mark, *wait[policy], *prices, number(longest[policy])])
    head = ["five machines", "bounded slowdown", "vs. SJF", "mean wait, time units", "vs. SJF"]
    return table([*head, *(f"{name} vs. SJF" for name in PRICES.values()), "longest wait"], written)


PRICES = {"completion_time": "completion time", "makespan": "makespan"}


def shares() -> str:
    """Return mean waiting time of user groups, over all loads."""
    policies = ("oracle", "undivided", "controller", "lookahead", "proportional", "fixed")
    cells = {to: over_loads("delay", "shares", to, policies) for to in ("proportional", "lookahead")}
    there = [policy for policy in policies if policy in cells["lookahead"]]
    rows = [[policy, *cells["proportional"][policy], cells["lookahead"][policy][1]] for policy in there]
    return table(["four user groups", "mean wait, time units", "vs. `proportional`", "vs. `lookahead`"], rows)


def waits() -> str:
    """Return the longest wait of any job on the test streams, in steps, by load."""
    found = report("stream_summary")
    cells = found[found["scenario"] == "streams"].set_index(["policy", "load"])["longest_wait"]
    loads = cells.loc["sjf"].index
    policies = ("deeprm3", "linear", "easy", "hold_long", "sjf")
    there = [policy for policy in policies if policy in cells.index]
    rows = [[policy, *(f"{cells[policy, load]:,}" for load in loads)] for policy in there]
    return table(["longest wait, steps", *(f"{load} %" for load in loads)], rows)


def claims() -> str:
    """Return the number of parts of each paper's claims that hold in this run."""
    found = layout.claims(ROOT / "reports" / "papers.csv").replace({"verdict": layout.UNDECIDED}, regex=True)
    counts = found.groupby([found["paper"].str.split(",").str[0], "verdict"]).size().unstack(fill_value=0)
    words = [word for word in ("yes", "partly", "no", "undecided") if word in counts]
    return table(["paper", *words], [[name, *(str(row[word]) for word in words)] for name, row in counts.iterrows()])


TABLES = {
    "short runs": lambda: confirmed("short runs"),
    "streams": lambda: confirmed("streams"),
    "against the best heuristic": to_best,
    "all at once": offline,
    "five machines": machines,
    "four user groups": shares,
    "longest waits on streams": waits,
    "claims of the papers": claims,
}
