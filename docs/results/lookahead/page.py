"""Tables of ../lookahead.md, from the files of `measure.py`, `networks.py` and the other scripts."""

from collections.abc import Mapping, Sequence
from functools import partial
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
SEED = 1  # of the bootstrap
SEARCHED = "search 50000"  # schedules tried, starting from the best heuristic's
FIVE = ("saf", "f1", "sjf", "wfp3", "unicep")
LONG, ONE_WAY = "deeprm_off_long", "plan_deeprm_off, one way"
CELLS = (("lublin_256", 0), ("lublin_256", 1), ("HPC2N", 0), ("HPC2N", 1))  # log and backfilling


def gains(scenario: str) -> str:
    """Return the mean slowdown of each heuristic with and without look-ahead, and the paired difference."""
    params, rows = load_params(ROOT / "params.yaml"), pd.read_csv(HERE / f"{scenario}.csv.gz")
    loads = sorted(rows["load"].unique())
    bases = [name for name in rows["policy"].unique() if not name.startswith("plan_")]
    against = comparison(
        rows,
        scenario,
        {name: dict.fromkeys(loads, name) for name in bases},
        params.evaluation,
        np.random.default_rng(params.seed),
    ).set_index(["policy", "against", "load"])
    means = rows.groupby(["policy", "load"])["mean_slowdown"].mean()
    written = []
    for load in loads:
        for name in bases:
            gain = difference(against.loc[(f"plan_{name}", name, f"{load:03d}")])
            written.append([f"{load} %", name, number(means[name, load]), number(means[f"plan_{name}", load]), gain])
    written += [["all", name, "", "", difference(against.loc[(f"plan_{name}", name, ALL)])] for name in bases]
    count = rows.groupby("load")["jobset"].nunique().iloc[0]
    head = ["load", "heuristic", "without", "with look-ahead", f"difference, n = {count} a load"]
    return table(head, written, words=2)


def networks() -> str:
    """Return mean slowdowns of three trainings and `hold_long` with and without look-ahead; intervals include seeds."""
    rows, kinds = pd.read_csv(HERE / "networks.csv.gz"), ("deeprm3", "plan_deeprm3")
    without, ahead = ([f"{kind}_{seed}" for seed in (1, 2, 3)] for kind in kinds)
    own = _ahead(paired_by_seed(rows, ahead, without, "deeprm3"), ahead, "deeprm3")
    other = _ahead(rows, ahead, "plan_hold_long")
    means = rows.groupby(["policy", "load"])["mean_slowdown"].mean()
    written = []
    for load in (*sorted(rows["load"].unique()), ALL):
        key, label = (ALL, ALL) if load == ALL else (f"{load:03d}", f"{load} %")
        cells = ["", "", "", ""]
        if load != ALL:
            rules = [number(means[name, load]) for name in ("hold_long", "plan_hold_long")]
            cells = [*rules, *(number(np.mean([means[name, load] for name in names])) for names in (without, ahead))]
        written.append([label, *cells, *(difference(found.loc[key]) for found in (own, other))])
    count = rows.groupby("load")["jobset"].nunique().iloc[0]
    head = ["load", "hold_long", "plan_hold_long", *kinds, f"to deeprm3, n = {count} a load", "to plan_hold_long"]
    return table(head, written)


def _ahead(rows: pd.DataFrame, names: list[str], other: str) -> pd.DataFrame:
    """Return the difference of the mean of some trainings from another policy, by load."""
    params = load_params(ROOT / "params.yaml")
    to, rng = {other: dict.fromkeys(rows["load"].unique(), other)}, np.random.default_rng(params.seed)
    found = comparison(rows, "networks", to, params.evaluation, rng, {"mean": names})
    return found[found["policy"] == "mean"].set_index("load")


def many_machines() -> str:
    """Return results of heuristics by RLScheduler's protocol, with and without look-ahead."""
    ten = pd.read_csv(HERE / "rlscheduler.csv.gz").groupby(["trace", "backfill", "policy"])["avg_bounded_slowdown"]
    means, each = ten.mean(), pd.read_csv(HERE / "apart.csv.gz")
    published = pd.read_csv(HERE.parent / "rlscheduler" / "published.csv")
    written = []
    for log, backfill in CELLS:
        row = published[published["trace"].str.startswith(log) & (published["backfill"] == backfill)].iloc[0]
        of = means[means.index.get_level_values("trace").str.startswith(log)].xs(backfill, level="backfill")
        own = each[each["trace"].eq(log) & each["backfill"].eq(backfill) & (each["seq"] > CHOSEN_BY.get(log, 0))]
        gaps = paired(own, SEED).set_index(["policy", "against"])
        for name in ("saf", "f1", "sjf"):
            (trace,) = of.index.get_level_values("trace").unique()
            gap = gaps.loc[(f"plan_{name}", name)]
            cells = [f"{of[trace, title]:.1f}" for title in (name, f"plan_{name}")]
            title = f"{log}, {'yes' if backfill else 'no'}"
            written.append(
                [title, name, *cells, f"{row['bounded_slowdown']:.1f}", f"{difference(gap)}, {gap['n']:.0f}"]
            )
    head = ["log, backfilling", "heuristic", "without", "with look-ahead", "published RL", "separate sequences, n"]
    return table(head, written, words=2)


def unseen() -> str:
    """Return results of SAF with look-ahead on unseen logs, compared with the best of five heuristics."""
    each, rng = pd.read_csv(HERE / "unseen.csv.gz"), np.random.default_rng(SEED)
    written, logs = [], []
    for backfill, some in each.groupby("backfill"):
        shares = []
        for log, rows in some.groupby("trace", sort=False):
            wide = rows.pivot(index="seq", columns="policy", values="avg_bounded_slowdown")
            best = str(wide[list(FIVE)].mean().idxmin())
            drawn = rng.integers(len(wide), size=(10_000, len(wide)))
            of, its = (wide[name].to_numpy()[drawn].mean(axis=1) for name in ("plan_saf", best))
            shares.append(wide["plan_saf"].mean() / wide[best].mean() - 1)
            low, high = np.quantile(of / its - 1, [0.025, 0.975])
            gap = pd.Series({"difference": shares[-1], "difference_low": low, "difference_high": high})
            saf, other, ahead = (f"{wide[name].mean():.1f}" for name in ("saf", best, "plan_saf"))
            title = f"{log}, {'yes' if backfill else 'no'}"
            written.append([title, saf, f"{other} ({best})", ahead, difference(gap)])
        mean = 100 * np.expm1(np.log1p(shares).mean())
        logs.append([f"geometric mean, {'yes' if backfill else 'no'}", "", "", "", f"{mean:+.1f} %"])
    head = ["log, backfilling", "saf", "best of five", "plan_saf", f"to the best of five, n = {each['seq'].nunique()}"]
    return table(head, written + logs)


def settings() -> str:
    """Return mean bounded slowdown of the sequences that settings were chosen on, by setting."""
    rows = pd.read_csv(HERE / "chosen.csv")
    means = rows.groupby(["policy", "backfill"])["avg_bounded_slowdown"].mean()
    ends = sorted({name.split(" ", 1)[1] for name in rows["policy"] if " " in name}, key=lambda end: end.split())
    cells = [(base, backfill) for base in ("saf", "f1", "sjf") for backfill in (0, 1)]
    without = [means[cell] for cell in cells]
    written = [["without look-ahead", "", *(f"{value:.1f}" for value in without), _mean(without)]]
    for end in ends:
        found = [means[f"plan_{base} {end}", backfill] for base, backfill in cells]
        written.append([*end.split(), *(f"{value:.1f}" for value in found), _mean(found)])
    head = [f"{base}{', backfilling' if backfill else ''}" for base, backfill in cells]
    return table(["futures", "standard errors", *head, "mean"], written, words=2)


def _mean(values: list[float]) -> str:
    return f"{np.mean(values):.1f}"


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
    waits = rows.groupby(["policy", "load"])["mean_wait"].mean()
    written = []
    for name in ("sjf", "sjf_most_allocated", "saf", "deepk8s_ppo", *bases):
        cells = [
            difference(gaps.loc[(name, other)]) if name in bases else "" for other in (bases.get(name, ""), "best")
        ]
        shown = [f"{means[name, load]:.3f}" for load in loads]
        written.append([name, *shown, *cells, *(number(waits[name, load]) for load in loads)])
    count = rows.groupby("load")["jobset"].nunique().iloc[0]
    head = ["", *(f"{load} %" for load in loads), f"to its base, n = {count} a load", "to the best heuristic"]
    head += [f"mean wait, {load} %" for load in loads]
    return table(head, written)


def offline() -> str:
    """Return mean slowdown with all jobs at the start, and the difference from the longest local search."""
    rows = pd.read_csv(HERE / "offline.csv.gz")
    means, named = rows.groupby("policy")["mean_slowdown"].mean(), rows["policy"].unique()
    without, ahead = ([name for name in named if name.startswith(kind)] for kind in (LONG, f"plan_{LONG}"))
    trainings = {f"{names[0]}, mean of {len(names)}": names for names in (without, ahead)}
    to = _offline(rows, SEARCHED, trainings)
    single = ("plan_linear", "plan_deeprm3_off", "plan_deeprm3_off, one way", ONE_WAY)
    one = {name: name.removeprefix("plan_").removesuffix(", one way") for name in single}
    own = {name: difference(_offline(rows, base).loc[name]) for name, base in one.items()}
    by_seed = _offline(paired_by_seed(rows, ahead, without, LONG), LONG, {"mean": ahead})
    own[f"{ahead[0]}, mean of {len(ahead)}"] = difference(by_seed.loc["mean"])
    written = []
    for kind, names in ({name: [name] for name in named if LONG not in name} | trainings).items():
        mean, each = means[names].mean(), [f"{means[name]:.3f}" for name in names if kind in trainings]
        gap = "" if kind == SEARCHED else difference(to.loc[kind])
        written.append((-mean, [kind, f"{mean:.3f}", ", ".join(each), own.get(kind, ""), gap]))
    head = ["", "mean slowdown", "trainings", f"to its base, n = {rows['jobset'].nunique()}", f"to {SEARCHED}"]
    return table(head, [cells for _, cells in sorted(written)])


def _offline(rows: pd.DataFrame, other: str, trainings: Mapping[str, Sequence[str]] | None = None) -> pd.DataFrame:
    """Return the difference of each policy, or of the mean of some trainings, from another."""
    params, (load,) = load_params(ROOT / "params.yaml"), rows["load"].unique()
    rng = np.random.default_rng(params.seed)
    found = comparison(rows, "offline", {other: {load: other}}, params.evaluation, rng, trainings or {})
    return found.query("load != @ALL").set_index("policy")


def learned() -> str:
    """Return results of learned agents by RLScheduler's protocol, with and without look-ahead, by training."""
    means, written = _learned(), []
    for log, backfill in CELLS:
        of = means.loc[log, backfill]
        cells = [", ".join(f"{mean:.1f}" for mean in of["ten", kind]) for kind in ("own", "plan", "further")]
        others = [f"{of['apart', kind].mean():.1f}" for kind in ("own", "plan")]
        written.append([f"{log}, {'yes' if backfill else 'no'}", *cells, *others])
    head = ["log, backfilling", "without: seeds 1, 2, 3", "with", "further, seed 1", "separate: without", "with"]
    return table(head, written)


def _learned() -> "pd.Series[float]":
    """Return means over sequences by log, backfilling, set, kind of look-ahead and seed."""
    rows = pd.read_csv(HERE / "learned.csv.gz")
    kind = rows["policy"].str.extract("^(plan|further)_", expand=False).fillna("own")
    rows = rows.assign(kind=kind, seed=rows["policy"].str[-1])
    return rows.groupby(["trace", "backfill", "set", "kind", "seed"])["avg_bounded_slowdown"].mean()


def learned_to_others() -> str:
    """Return differences of learned agents with look-ahead from the same without it and from such heuristics."""
    means, ten = _learned(), pd.read_csv(HERE / "rlscheduler.csv.gz")
    names, ratios = ("plan_saf", "plan_f1", "plan_sjf"), []
    for log, backfill in CELLS:
        of = ten[ten["trace"].str.startswith(log) & (ten["backfill"] == backfill)]
        rules = of.groupby("policy")["avg_bounded_slowdown"].mean()
        mine, without = (means[log, backfill, "ten", kind].mean() for kind in ("plan", "own"))
        ratios.append([mine / other for other in (without, *(rules[name] for name in names))])
    titles = [f"{log}, {'yes' if backfill else 'no'}" for log, backfill in CELLS]
    every = [*zip(titles, ratios, strict=True), ("geometric mean", np.exp(np.log(ratios).mean(axis=0)))]
    written = [[title, *(f"{ratio - 1:+.1%}".replace("%", " %") for ratio in row)] for title, row in every]
    return table(["log, backfilling", "to itself without", *(f"to `{name}`" for name in names)], written)


def times() -> str:
    """Return the 99th percentile of decision times by the limit of simulated decisions."""
    rows = pd.read_csv(HERE / "times.csv")
    limits = [f"{row.decisions:,}{', the default' if row.default else ''}" for row in rows.itertuples()]
    waiting = [(f"{row.ms_64} ms", f"{row.ms_200} ms") for row in rows.itertuples()]
    written = [[name, limit, *cells] for name, limit, cells in zip(rows["base"], limits, waiting, strict=True)]
    return table(["base", "simulated decisions", "64 jobs at once", "200 jobs at once"], written, words=2)


TABLES = {
    "short runs": partial(gains, "online"),
    "a network": networks,
    "settings": settings,
    "many machines": many_machines,
    "learned": learned,
    "learned, to others": learned_to_others,
    "five machines": five_machines,
    "offline": offline,
    "unseen": unseen,
    "times": times,
}
