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
JOBSETS, CURVES = "as_published.csv.gz", "as_published_curves.csv.gz"


class Shown(NamedTuple):
    """Table of policies' results on the test jobsets of a scenario."""

    scenario: str
    measure: str  # a column of jobset results
    reference: str  # the policy that others are compared with
    policies: Sequence[str]
    digits: int = 3
    loads: Sequence[int] = ()  # default: all
    seeds: Sequence[str] = ()  # trainings that differ only by their seed; their mean is also shown


class Course(NamedTuple):
    """Table of agents' mean cost of a job on validation jobsets during training."""

    agents: Sequence[str]
    updates: Sequence[int]
    jobs: int = 0  # of a jobset; not 0: show the reward of an episode, minus the sum of its jobs' costs


def _deepk8s(scenario: str, prefix: str, more: Sequence[str] = ()) -> dict[str, Shown | Course]:
    agents = [f"{prefix}_{kind}_paper" for kind in ("ppo", "a3c", "dagger")]
    policies = [*agents, f"{prefix}_ppo_paper_pretrained", *more, "sjf", "tetris", "random", "fcfs"]
    updates = (0, 100, 200, 400, 600, 800, 1000, 1500, 2000, 3000, 4000)
    return {
        f"{scenario}, slowdown": Shown(scenario, "mean_slowdown", "sjf", policies),
        f"{scenario}, completion time": Shown(scenario, "completion_time", "sjf", policies, 1),
        f"{scenario}, learning": Course([*agents, *(name for name in more if "pretrained" not in name)], updates, 200),
    }


TWO = (
    "controller_two",
    "controller_two_pretrained",
    "lookahead",
    "proportional",
    "drf",
    "capacity",
    "undivided",
    "equal",
)
SOURCE = [f"controller_source_{seed}" for seed in (1, 2, 3)]
POOL = (70, 110, 130, 190)  # percent, of ten
RULES = ("sjf", "packer", "tetris", "hold", "random")
# The rows of these rules are from default/tested, on the same jobsets; utilisation is computed from makespan.
HOLDING = ("hold_until", "hold_long")
DEEPRM2 = ("deeprm2", "deeprm2_2", "deeprm2_3")
OTHERS = ("deeprm_makespan", "deeprm_utilisation")
RESERVING = ("reserving_70", "reserving_110", "reserving_130")
BASELINES = ("baseline_jobset", "baseline_value")
POISSON = ("poisson_deeprm2_70_makespan", "poisson_deeprm_70_makespan")
PAPER = (70, 110, 130, 184)  # percent, of eleven
GRADIENT = ("gradient", "gradient_annealed", "gradient_near")
OFFLINE = ("deeprm_off", "deeprm_off_2", "deeprm_off_3", "sjf", "tetris", "hold", "hold_long", "linear", "random")
SHOWN: Mapping[str, Mapping[str, Shown | Course]] = {
    "deeprm3": {
        "policy gradient": Shown(
            "online",
            "mean_slowdown",
            "hold_long",
            (*GRADIENT, "gradient_pretrained", "deeprm3", "deeprm3_pretrained", "hold_long", "linear", "sjf"),
        ),
        "policy gradient, learning": Course(GRADIENT, (0, 25, 50, 100, 200, 300, 400, 500)),
    },
    "deepk8s": {
        **_deepk8s("machines", "deepk8s", ("deepk8s_ppo_vector", "deepk8s_dagger_vector", "deepk8s_a3c")),
        **_deepk8s("alibaba", "alibaba"),
    },
    "controller": {
        "source's settings": Shown(
            "shares",
            "mean_wait",
            "proportional",
            [
                *SOURCE,
                *(f"{name}_own" for name in SOURCE),
                "controller",
                "undivided",
                "lookahead",
                "proportional",
                "equal",
            ],
            2,
        ),
        "two resources": Shown("shares_two", "mean_wait", "proportional", TWO, 2),
        "source's settings, learning": Course([*SOURCE, "controller"], (0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100)),
    },
    "paper-scale": {
        "DeepRM2, three seeds": Shown(
            "online", "mean_slowdown", "sjf", (*DEEPRM2, *RULES, *HOLDING, "linear"), 2, POOL, DEEPRM2
        ),
        "DeepRM_Off, three seeds": Shown("offline", "mean_slowdown", "sjf", OFFLINE, 2, (), OFFLINE[:3]),
        "makespan": Shown(
            "online", "makespan", "sjf", ("deeprm_makespan", "deeprm_utilisation", *RULES, *HOLDING), 1, POOL
        ),
        "utilisation": Shown(
            "online", "utilisation", "sjf", ("deeprm_utilisation", "deeprm_makespan", *RULES, *HOLDING), 3, POOL
        ),
        "the text's demands": Shown("text", "mean_slowdown", "sjf", ("deeprm_text", *RULES), 2),
        "reserving": Shown(
            "reserving", "mean_slowdown", "sjf", (*RESERVING, *RULES[:4], "hold_long", "random"), 2, PAPER
        ),
        "all reserve": Shown("all_reserving", "mean_slowdown", "sjf", (*RULES, "hold_long"), 2, PAPER),
        "one network": Shown("bernoulli", "mean_slowdown", "sjf", ("all_loads", *RULES, "hold_long"), 2),
        "a value network": Shown("bernoulli", "mean_slowdown", "sjf", (*BASELINES, *RULES), 2, (10, 30, *PAPER)),
        "Poisson, makespan": Shown("poisson", "makespan", "sjf", (*POISSON, *RULES), 1),
        "reserving, learning": Course(RESERVING, (0, 50, 100, 150, 200, 250, 300, 400, 500)),
        "one network, learning": Course(("all_loads",), (0, 50, 100, 200, 400, 600, 800, 1000)),
        "baselines, learning": Course(BASELINES, (0, 20, 40, 60, 80, 100)),
        "Poisson, learning": Course(POISSON, (0, 10, 20, 30)),
        "makespan and utilisation, learning": Course(
            (*OTHERS, "deeprm_text"), (0, 25, 50, 75, 100, 125, 150, 175, 200)
        ),
    },
}


def gather(titles: Sequence[str]) -> None:
    """Store the test jobset results of the policies, and the agents' curves, of some tables (default: all)."""
    if unknown := set(titles) - {title for entries in SHOWN.values() for title in entries}:
        raise SystemExit(f"unknown tables: {', '.join(sorted(unknown))}")
    for folder, entries in SHOWN.items():
        some = [entry for title, entry in entries.items() if not titles or title in titles]
        if found := [_jobsets(entry) for entry in some if isinstance(entry, Shown)]:
            _keep(HERE / folder / JOBSETS, pd.concat(found), ["scenario", "measure", "policy", "load"])
        courses = [entry for entry in some if isinstance(entry, Course)]
        if names := dict.fromkeys(name for course in courses for name in course.agents):
            _keep(HERE / folder / CURVES, pd.concat(_curve(name) for name in names), ["agent"])


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


def _curve(name: str) -> pd.DataFrame:
    curve = pd.read_csv(storage.REPORTS / "curves" / f"{name}_finetune.csv").assign(agent=name)
    return curve[curve["metric"].isin(["validation", "cost"])]


def _keep(path: Path, new: pd.DataFrame, by: Sequence[str]) -> None:
    """Replace the rows of the same tables; keep the others."""
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


def scores(folder: str, shown: Shown) -> str:
    """Return a table of every policy's mean at each load, with its difference from the reference."""
    params, rows = load_params(ROOT / "params.yaml"), kept(folder, shown)
    rows = rows.rename(columns={"value": "mean_slowdown"})  # the column that `comparison` compares
    n = rows.groupby("load")["jobset"].nunique()
    references = {shown.reference: dict.fromkeys(n.index, shown.reference)}
    rng, mean = np.random.default_rng(params.seed), {MEAN: list(shown.seeds)} if shown.seeds else {}
    against = comparison(rows, shown.scenario, references, params.evaluation, rng, mean)
    cells = against.set_index(["policy", "load"])
    means = rows.groupby(["policy", "load"])["mean_slowdown"].mean().unstack()
    if shown.seeds:
        means.loc[MEAN] = means.loc[list(shown.seeds)].mean()
    loads = {f"{load} %, n = {count}": (f"{load:03d}", means[load]) for load, count in n.items()}
    if len(n) > 1:
        loads["mean of the loads"] = (ALL, means.mean(axis=1))
    written = [
        [policy, *(_cell(cells, policy, load, mean[policy], shown) for load, mean in loads.values())]
        for policy in (*shown.seeds, *mean, *(name for name in shown.policies if name not in shown.seeds))
    ]
    return table([f"{shown.measure}, difference from {shown.reference}", *loads], written)


def _cell(cells: pd.DataFrame, policy: str, load: str, mean: float, shown: Shown) -> str:
    text = f"{mean:.{shown.digits}f}"
    return text if policy == shown.reference else f"{text}: {difference(cells.loc[(policy, load)])}"


def course(folder: str, shown: Course) -> str:
    """Return a table of agents' validation costs at some updates."""
    curves = pd.read_csv(HERE / folder / CURVES)
    cells = curves[curves["metric"] == "validation"].pivot(index="agent", columns="update", values="value")
    cells = cells.reindex(columns=sorted({*cells.columns, *shown.updates}))
    values = [[*cells.loc[agent, list(shown.updates)], cells.loc[agent].min()] for agent in shown.agents]
    written_as = (lambda value: f"{-shown.jobs * value:,.1f}") if shown.jobs else "{:.3f}".format
    written = [["" if np.isnan(value) else written_as(value) for value in row] for row in values]
    head = ["updates", *(f"{update:,}" for update in shown.updates), "best"]
    return table(head, [[agent, *row] for agent, row in zip(shown.agents, written, strict=True)])


def tables(folder: str) -> dict[str, Callable[[], str]]:
    """Return the function that writes each table of a page."""
    return {
        title: partial(scores if isinstance(entry, Shown) else course, folder, entry)
        for title, entry in SHOWN[folder].items()
    }


if __name__ == "__main__":
    gather(sys.argv[1:])
