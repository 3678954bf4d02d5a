"""Tables of ../lookahead.md, from the files of `measure.py`, `networks.py` and the other scripts."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from layout import difference, number, paired_by_seed, table

from pipeline.comparing.statistics import ALL, comparison
from pipeline.core.config import load_params
from pipeline.interactive.machines.benchmark import paired

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
CHOSEN_BY = {"HPC2N": 6}  # the last sequence used to choose settings; later ones are reported
BEST = {50: "sjf", 80: "sjf", 110: "sjf_most_allocated"}  # heuristics on validation jobsets of `machines`, by load
SHOWN = (30, 90, 150, 190)  # percent: loads of short runs in the table
SEED = 1  # of the bootstrap
SEARCHED = "search 50000"  # schedules tried, starting from the best heuristic's
LONG = "deeprm_off_long"
ALL_AT_ONCE = ("deeprm_off", "linear", "deeprm3_off", "plan_linear", "search 1000", "plan_deeprm3_off", SEARCHED)
CELLS = (("lublin_256", 0), ("lublin_256", 1), ("HPC2N", 0), ("HPC2N", 1))  # log and backfilling


def short_runs() -> str:
    """Return each heuristic's mean slowdown without look-ahead and the difference with it."""
    params, rows = load_params(ROOT / "params.yaml"), pd.read_csv(HERE / "online.csv.gz")
    loads = sorted(rows["load"].unique())
    bases = [name for name in rows["policy"].unique() if not name.startswith("plan_")]
    to, rng = {name: dict.fromkeys(loads, name) for name in bases}, np.random.default_rng(params.seed)
    against = comparison(rows, "online", to, params.evaluation, rng)
    against = against.set_index(["policy", "against", "load"]).sort_index()
    means = rows.groupby(["policy", "load"])["mean_slowdown"].mean()
    written = []
    for name in bases:
        gaps = against.loc[(f"plan_{name}", name)]
        cells = [f"{number(means[name, load])}: {difference(gaps.loc[f'{load:03d}'])}" for load in SHOWN]
        written.append([name, *cells, difference(gaps.loc[ALL])])
    count = rows.groupby("load")["jobset"].nunique().iloc[0]
    return table(["heuristic", *(f"{load} %" for load in SHOWN), f"ten loads, n = {count} each"], written)


def networks() -> str:
    """Return mean slowdowns of three agents and `hold_long` with and without look-ahead; intervals include seeds."""
    rows, kinds = pd.read_csv(HERE / "networks.csv.gz"), ("deeprm3", "plan_deeprm3")
    without, ahead = ([f"{kind}_{seed}" for seed in (1, 2, 3)] for kind in kinds)
    own = _ahead(paired_by_seed(rows, ahead, without, "deeprm3"), ahead, "deeprm3")
    other = _ahead(rows, ahead, "plan_hold_long")
    means = rows.groupby(["policy", "load"])["mean_slowdown"].mean()
    written = []
    for load in (30, 190, ALL):
        key, label = (ALL, ALL) if load == ALL else (f"{load:03d}", f"{load} %")
        cells = ["", "", "", ""]
        if load != ALL:
            rules = [number(means[name, load]) for name in ("hold_long", "plan_hold_long")]
            cells = [*rules, *(number(np.mean([means[name, load] for name in names])) for names in (without, ahead))]
        written.append([label, *cells, *(difference(found.loc[key]) for found in (own, other))])
    count = rows.groupby("load")["jobset"].nunique().iloc[0]
    head = ["load", "hold_long", "plan_hold_long", *kinds, f"vs. deeprm3, n = {count} a load", "vs. plan_hold_long"]
    return table(head, written)


def _ahead(rows: pd.DataFrame, names: list[str], other: str) -> pd.DataFrame:
    """Return the difference of the mean of some agents from another policy, by load."""
    params = load_params(ROOT / "params.yaml")
    to, rng = {other: dict.fromkeys(rows["load"].unique(), other)}, np.random.default_rng(params.seed)
    found = comparison(rows, "networks", to, params.evaluation, rng, {"mean": names})
    return found[found["policy"] == "mean"].set_index("load")


def many_machines() -> str:
    """Return results of heuristics by RLScheduler's protocol, with and without look-ahead."""
    ten = pd.read_csv(HERE / "rlscheduler.csv.gz").groupby(["trace", "backfill", "policy"])["avg_bounded_slowdown"]
    means, each = ten.mean(), pd.read_csv(HERE / "apart.csv.gz")
    written = []
    for log, backfill in CELLS:
        of = means[means.index.get_level_values("trace").str.startswith(log)].xs(backfill, level="backfill")
        own = each[each["trace"].eq(log) & each["backfill"].eq(backfill) & (each["seq"] > CHOSEN_BY.get(log, 0))]
        gaps = paired(own, SEED).set_index(["policy", "against"])
        for name in ("saf", "sjf"):
            (trace,) = of.index.get_level_values("trace").unique()
            gap = gaps.loc[(f"plan_{name}", name)]
            cells = [f"{of[trace, title]:.1f}" for title in (name, f"plan_{name}")]
            title = f"{log}, {'yes' if backfill else 'no'}"
            written.append([title, name, *cells, f"{difference(gap)}, {gap['n']:.0f}"])
    head = ["log, backfilling", "heuristic", "without", "with look-ahead", "separate sequences, n"]
    return table(head, written, words=2)


def five_machines() -> str:
    """Return mean bounded slowdown on `machines` of policies with look-ahead, their bases and two more heuristics."""
    params, rows = load_params(ROOT / "params.yaml"), pd.read_csv(HERE / "rows.csv.gz")
    rows = rows.drop(columns="mean_slowdown").rename(columns={"mean_bounded_slowdown": "mean_slowdown"})
    loads = sorted(rows["load"].unique())
    bases = {"plan_sjf": "sjf", "plan_deepk8s_ppo": "deepk8s_ppo"}
    to = {name: dict.fromkeys(loads, name) for name in bases.values()} | {"best": BEST}
    gaps = comparison(rows, "machines", to, params.evaluation, np.random.default_rng(params.seed))
    gaps = gaps.query("load == @ALL").set_index(["policy", "against"])
    means = rows.groupby(["policy", "load"])["mean_slowdown"].mean()
    written = []
    for name in ("sjf", "sjf_most_allocated", "deepk8s_ppo", *bases):
        cells = [
            difference(gaps.loc[(name, other)]) if name in bases else "" for other in (bases.get(name, ""), "best")
        ]
        shown = [f"{means[name, load]:.3f}" for load in loads]
        written.append([name, *shown, *cells])
    count = rows.groupby("load")["jobset"].nunique().iloc[0]
    head = ["", *(f"{load} %" for load in loads), f"vs. its base, n = {count} a load", "vs. the best heuristic"]
    return table(head, written)


def offline() -> str:
    """Return mean slowdown with all jobs at the start, and the difference from the longest local search."""
    rows = pd.read_csv(HERE / "offline.csv.gz")
    means, named = rows.groupby("policy")["mean_slowdown"].mean(), rows["policy"].unique()
    without, ahead = ([name for name in named if name.startswith(kind)] for kind in (LONG, f"plan_{LONG}"))
    trainings = {f"{names[0]}, mean of {len(names)}": names for names in (without, ahead)}
    to = _offline(rows, SEARCHED, trainings)
    own = {f"plan_{base}": difference(_offline(rows, base).loc[f"plan_{base}"]) for base in ("linear", "deeprm3_off")}
    by_seed = _offline(paired_by_seed(rows, ahead, without, LONG), LONG, {"mean": ahead})
    own[f"{ahead[0]}, mean of {len(ahead)}"] = difference(by_seed.loc["mean"])
    written = []
    for kind, names in ({name: [name] for name in ALL_AT_ONCE} | trainings).items():
        gap = "" if kind == SEARCHED else difference(to.loc[kind])
        written.append((-means[names].mean(), [kind, f"{means[names].mean():.3f}", own.get(kind, ""), gap]))
    head = ["", "mean slowdown", f"vs. its base, n = {rows['jobset'].nunique()}", f"vs. {SEARCHED}"]
    return table(head, [cells for _, cells in sorted(written)])


def _offline(rows: pd.DataFrame, other: str, trainings: Mapping[str, Sequence[str]] | None = None) -> pd.DataFrame:
    """Return the difference of each policy, or of the mean of some agents, from another."""
    params, (load,) = load_params(ROOT / "params.yaml"), rows["load"].unique()
    rng = np.random.default_rng(params.seed)
    found = comparison(rows, "offline", {other: {load: other}}, params.evaluation, rng, trainings or {})
    return found.query("load != @ALL").set_index("policy")


TABLES = {
    "short runs": short_runs,
    "a network": networks,
    "many machines": many_machines,
    "five machines": five_machines,
    "offline": offline,
}
