"""Tables of runs with the settings of the papers' texts; the data are in the folder of each page.

Apply docs/params/as_published.diff (or deeprm_paper.diff, for the agents that it adds), set `threads: 1`
(2 for DeepRM2's seeds, as in the default run), and run the stages of the agents and the
heuristics of their scenarios. There `python docs/results/as_published.py [TITLE ...]` stores the results of all tables
or of some, and `python docs/results/tables.py write` writes the tables.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from layout import difference, table

from pipeline.comparing.statistics import ALL, comparison
from pipeline.core import storage
from pipeline.core.config import load_params
from pipeline.problems import problem_of

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
MEAN = "mean of the seeds"  # its interval is over jobsets and seeds
JOBSETS = "as_published.csv.gz"


class Shown(NamedTuple):
    """Table of policies' results on the test jobsets of a scenario."""

    scenario: str
    measure: str  # a column of jobset results
    reference: str  # the policy that others are compared with
    policies: Sequence[str]
    digits: int = 3
    loads: Sequence[int] = ()  # default: all
    seeds: Sequence[str] = ()  # runs that differ only by their seed; their mean is also shown


def _deepk8s(scenario: str, prefix: str, more: Sequence[str] = ()) -> Shown:
    agents = [f"{prefix}_{kind}_paper" for kind in ("ppo", "a3c", "dagger")]
    policies = [*agents, f"{prefix}_ppo_paper_pretrained", *more, "sjf", "random"]
    return Shown(scenario, "mean_slowdown", "sjf", policies)


TWO = ("controller_two", "controller_two_pretrained", "lookahead", "undivided", "proportional")
SOURCE = [f"controller_source_{seed}" for seed in (1, 2, 3)]
POOL = (70, 110, 130, 190)  # percent, of ten
RULES = ("hold", "hold_long", "linear", "sjf")  # hold_long online: from default/tested, on the same jobsets
DEEPRM2 = ("deeprm2", "deeprm2_2", "deeprm2_3")
RESERVING = ("reserving_70", "reserving_110", "reserving_130")
BASELINES = ("baseline_jobset", "baseline_value")
POISSON = ("poisson_deeprm2_70_makespan", "poisson_deeprm_70_makespan")
PAPER = (70, 110, 130, 184)  # percent, of eleven
GRADIENT = ("gradient", "gradient_annealed", "gradient_near")
OFFLINE = ("deeprm_off", "deeprm_off_2", "deeprm_off_3")
SHOWN: Mapping[str, Mapping[str, Shown]] = {
    "deeprm3": {
        "policy gradient": Shown(
            "online",
            "mean_slowdown",
            "hold_long",
            (*GRADIENT, "gradient_pretrained", "deeprm3", "deeprm3_pretrained", "hold_long"),
        ),
    },
    "deepk8s": {
        "default machines": _deepk8s(
            "machines", "deepk8s", ("deepk8s_ppo_vector", "deepk8s_dagger_vector", "deepk8s_a3c")
        ),
        "Alibaba's log": _deepk8s("alibaba", "alibaba"),
    },
    "controller": {
        "source's settings": Shown(
            "shares", "mean_wait", "proportional", (*SOURCE, "controller", "undivided", "lookahead", "proportional"), 2
        ),
        "two resources": Shown("shares_two", "mean_wait", "proportional", TWO, 2),
    },
    "paper-scale": {
        "DeepRM2, three seeds": Shown("online", "mean_slowdown", "sjf", (*DEEPRM2, *RULES), 2, POOL, DEEPRM2),
        "DeepRM_Off, three seeds": Shown(
            "offline", "mean_slowdown", "sjf", (*OFFLINE, "hold", "linear", "sjf"), 2, (), OFFLINE
        ),
        "makespan": Shown("online", "makespan", "sjf", ("deeprm_makespan", "packer", "sjf"), 1, POOL),
        "utilisation": Shown("online", "utilisation", "sjf", ("deeprm_utilisation", "random", "sjf"), 3, POOL),
        "the text's demands": Shown("text", "mean_slowdown", "sjf", ("deeprm_text", "hold", "sjf"), 2),
        "one network": Shown("bernoulli", "mean_slowdown", "sjf", ("all_loads", "hold", "hold_long", "sjf"), 2),
        "a value network": Shown("bernoulli", "mean_slowdown", BASELINES[0], BASELINES, 2, (10, 30, *PAPER)),
        "Poisson, makespan": Shown("poisson", "makespan", "sjf", (*POISSON, "packer", "sjf"), 1),
        "reserving": Shown("reserving", "mean_slowdown", "sjf", (*RESERVING, "tetris", "hold", "sjf"), 2, PAPER),
        "all reserve": Shown("all_reserving", "mean_slowdown", "sjf", ("sjf",), 2, PAPER),
    },
}


def gather(titles: Sequence[str]) -> None:
    """Store the test jobset results of the policies of some tables (default: all)."""
    if unknown := set(titles) - {title for entries in SHOWN.values() for title in entries}:
        raise SystemExit(f"unknown tables: {', '.join(sorted(unknown))}")
    for folder, entries in SHOWN.items():
        some = [entry for title, entry in entries.items() if not titles or title in titles]
        if found := [_jobsets(entry) for entry in some]:
            _keep(HERE / folder / JOBSETS, pd.concat(found))


def _jobsets(shown: Shown) -> pd.DataFrame:
    params = load_params()
    tables = problem_of(params, shown.scenario).tables
    agents = [name for name in params.agents if any(policy.startswith(name) for policy in shown.policies)]
    places = [("heuristics", shown.scenario), *(("agents", name) for name in agents)]
    files = [storage.results_folder(*place) / "jobsets.parquet" for place in places]
    rows = pd.concat([storage.read_table(file, tables.jobsets) for file in files if file.exists()])
    if missing := set(shown.policies) - set(rows["policy"]):
        raise SystemExit(f"no results yet of: {', '.join(sorted(missing))}")
    if shown.loads:
        rows = rows[rows["load"].isin(shown.loads)]
    rows = rows[rows["policy"].isin(shown.policies)].assign(scenario=shown.scenario, measure=shown.measure)
    kept = ["scenario", "measure", "policy", "load", "jobset", "unfinished"]
    return rows[kept].assign(value=rows[shown.measure])


def _keep(path: Path, new: pd.DataFrame) -> None:
    """Replace the rows of the same tables; keep the others."""
    by = ["scenario", "measure", "policy", "load"]
    before = pd.read_csv(path) if path.exists() else new[:0]
    own = pd.MultiIndex.from_frame(new[by])
    others = before[~pd.MultiIndex.from_frame(before[by]).isin(own)]
    new, packed = new.drop_duplicates(), {"method": "gzip", "mtime": 0}
    pd.concat([others, new]).to_csv(path, index=False, float_format="%.6g", compression=packed)


def kept(folder: str, shown: Shown) -> pd.DataFrame:
    """Return the results of a table's policies on every test jobset of its loads."""
    data = pd.read_csv(HERE / folder / JOBSETS)
    rows = data[(data["scenario"] == shown.scenario) & (data["measure"] == shown.measure)]
    return rows[rows["policy"].isin(shown.policies) & (rows["load"].isin(shown.loads) if shown.loads else True)]


def compared(folder: str, shown: Shown) -> tuple[pd.DataFrame, pd.DataFrame, pd.Series]:
    """Return each policy's differences from the reference, its means at each load, and the jobsets of each load."""
    params, rows = load_params(ROOT / "params.yaml"), kept(folder, shown)
    rows = rows.rename(columns={"value": "mean_slowdown"})  # the column that `comparison` compares
    n = rows.groupby("load")["jobset"].nunique()
    references = {shown.reference: dict.fromkeys(n.index, shown.reference)}
    rng, mean = np.random.default_rng(params.seed), {MEAN: list(shown.seeds)} if shown.seeds else {}
    against = comparison(rows, shown.scenario, references, params.evaluation, rng, mean)
    means = rows.groupby(["policy", "load"])["mean_slowdown"].mean().unstack()
    if shown.seeds:
        means.loc[MEAN] = means.loc[list(shown.seeds)].mean()
    return against.set_index(["policy", "load"]), means, n


def scores(folder: str, shown: Shown) -> str:
    """Return a table of every policy's mean at each load, with its difference from the reference."""
    cells, means, n = compared(folder, shown)
    loads = {f"{load} %, n = {count}": (f"{load:03d}", means[load]) for load, count in n.items()}
    if len(n) > 1:
        loads["mean of the loads"] = (ALL, means.mean(axis=1))
    written = [
        [policy, *(_cell(cells, policy, load, mean[policy], shown) for load, mean in loads.values())]
        for policy in shown.policies
    ]
    return table([f"{shown.measure}, difference from {shown.reference}", *loads], written)


def _cell(cells: pd.DataFrame, policy: str, load: str, mean: float, shown: Shown) -> str:
    text = f"{mean:.{shown.digits}f}"
    return text if policy == shown.reference else f"{text}: {difference(cells.loc[(policy, load)])}"


def overall(folder: str, titles: Sequence[str]) -> str:
    """Return several results in one table: means over the loads, and differences from the reference's mean.

    Only the first row of a setting has its name, size and reference.
    """
    written = []
    for title in titles:
        shown = SHOWN[folder][title]
        cells, means, n = compared(folder, shown)
        size, reference = f"{len(n)} x {n.iloc[0]}", f"{means.loc[shown.reference].mean():.{shown.digits}f}"
        setting = [title, size, f"{shown.reference}, {reference}"]
        mine = [MEAN] if shown.seeds else []
        for policy in (*mine, *(name for name in shown.policies if name not in (*shown.seeds, shown.reference))):
            mean = f"{means.loc[policy].mean():.{shown.digits}f}"
            gap = difference(cells.loc[(policy, ALL)])
            written.append([*setting, policy, mean, gap])
            setting = [""] * len(setting)
    head = ["setting", "loads x n", "reference", "policy", "mean of the loads", "difference"]
    return table(head, written, words=4)


def tables(folder: str) -> dict[str, Callable[[], str]]:
    """Return the function that writes each table of a page."""
    return {title: partial(scores, folder, entry) for title, entry in SHOWN[folder].items()}


if __name__ == "__main__":
    gather(sys.argv[1:])
