"""Tables of ../paper-scale.md, from the CSVs that `make.py` and `experiments.py` wrote into this folder."""

import re
import sys
from pathlib import Path

import as_published
import layout
import numpy as np
import pandas as pd

from pipeline.comparing.statistics import comparison
from pipeline.core.config import load_params

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from headlines import WORDS, headline_table  # noqa: E402  in this folder, which is not always on the path

PAPER_SECONDS = 80.0  # an iteration on 24 cores: DeepRM section 4.3
MEAN = "mean of the three"  # its interval includes the variation between seeds
AHEAD = ("sjf", "hold", "hold_long")  # rules that may also reserve a later start
REFERENCES = ("sjf", "tetris", "hold", "hold_until")
RULES = [
    "random_of_all",
    "random_of_all_ahead",
    "random",
    "packer",
    "tetris_code_0.5",
    "tetris_0.5",
    "tetris",
    "sjf",
    "hold",
]


def read(name: str) -> pd.DataFrame:
    """Return a table of this folder."""
    return pd.read_csv(HERE / f"{name}.csv")


def time_table() -> str:
    """Return training times, compared with the paper's 80 seconds."""
    found = read("times")
    lines = ["| agent | load | objective | seed | updates x jobsets x episodes | s an update | hours | commit |"]
    lines.append("| --- | ---: | --- | ---: | ---: | ---: | ---: | --- |")
    for row in found.itertuples():
        size = f"{row.updates} x {row.jobsets} x {row.episodes}"
        lines.append(
            f"| {row.agent} | {row.load} % | {row.objective} | {row.seed} | {size} | {row.seconds_an_update:.2f} | "
            f"{row.hours:.2f} | {row.commits} |"
        )
    whole = found[(found["jobsets"] == 100) & (found["episodes"] == 20)]
    if len(whole):
        seconds = whole["seconds_an_update"]
        span = f"{seconds.min():.2f} to {seconds.max():.2f} s on one core; the paper: {PAPER_SECONDS:g} s on 24 cores"
        hours = f"All training together: {found['hours'].sum():.1f} hours of one core"
        lines += ["", f"An iteration of 100 jobsets x 20 episodes: {span}. {hours}."]
    return "\n".join(lines)


def load_table() -> str:
    """Return mean slowdown by policy and load of the scenario with arrivals."""
    slowdown = read("slowdown")
    wide = slowdown[slowdown["scenario"] == "bernoulli"].pivot(index="policy", columns="load", values="slowdown")
    return by_load(wide.loc[wide.mean(axis=1).sort_values().index])


def seed_table() -> str:
    """Return agents that differ only in their seed against rules at their load, on the same jobsets."""
    found, keys = read("times"), ["network", "objective", "load", "updates", "jobsets", "episodes"]
    several = found[found.groupby(keys)["agent"].transform("size") > 1]
    seeds, load = list(several["agent"]), int(several["load"].iloc[0])
    rows = pd.read_csv(HERE / "jobsets.csv.gz").query("scenario == 'bernoulli' and load == @load")
    references = {rule: {load: rule} for rule in REFERENCES}
    settings = load_params(HERE.parents[2] / "params.yaml").evaluation
    against = comparison(rows, "bernoulli", references, settings, np.random.default_rng(1), {MEAN: seeds})
    cells = against.query("load != 'all'").set_index(["policy", "against"])
    means = rows.groupby("policy")["mean_slowdown"].mean()
    means[MEAN] = means[seeds].mean()
    written = [
        [
            who,
            f"{means[who]:.2f}",
            *("" if who == rule else layout.difference(cells.loc[(who, rule)]) for rule in REFERENCES),
        ]
        for who in (*seeds, MEAN, *REFERENCES)
    ]
    n = rows["jobset"].nunique()
    return layout.table([f"{load} %, n = {n}", "slowdown", *(f"to {rule}" for rule in REFERENCES)], written)


def reserving_table() -> str:
    """Return each agent that may reserve, at its load, against policies that may not and rules that may."""
    published = pd.read_csv(HERE / as_published.JOBSETS)
    published = published[published["measure"] == "mean_slowdown"].rename(columns={"value": "mean_slowdown"})
    fits_now = pd.read_csv(HERE / "jobsets.csv.gz").query("scenario == 'bernoulli'")
    all_ahead = published[published["scenario"] == "all_reserving"]
    parts = [
        published[published["scenario"] == "reserving"],
        fits_now[fits_now["policy"].str.fullmatch(r"deeprm_\d+")],
        all_ahead[all_ahead["policy"].isin(AHEAD)].assign(policy=all_ahead["policy"] + " that reserves"),
    ]
    rows, written = pd.concat(parts), []
    settings = load_params(HERE.parents[2] / "params.yaml").evaluation
    for agent in as_published.RESERVING:
        load = int(agent.split("_")[1])
        mine = rows[rows["load"] == load]
        others = ("sjf", "tetris", "hold", "hold_long", f"deeprm_{load}", *(f"{name} that reserves" for name in AHEAD))
        references = {other: {load: other} for other in others}
        found = comparison(mine, "reserving", references, settings, np.random.default_rng(1))
        cells = found.query("load != 'all'").set_index(["policy", "against"])
        mean = mine.loc[mine["policy"] == agent, "mean_slowdown"].mean()
        gaps = [layout.difference(cells.loc[(agent, other)]) for other in others]
        written.append([agent, f"{load} %", f"{mean:.2f}", *gaps])
    head = ["to sjf", "to tetris", "to hold", "to hold_long", "to the same agent without reservations"]
    return layout.table(["", "load", "slowdown", *head, *(f"to {name} that reserves" for name in AHEAD)], written)


def one_network_table() -> str:
    """Return the difference of the network for all loads from the one trained at a load, at that load."""
    published = pd.read_csv(HERE / as_published.JOBSETS).rename(columns={"value": "mean_slowdown"})
    one = published[(published["scenario"] == "bernoulli") & (published["policy"] == "all_loads")]
    rows = pd.concat([one, pd.read_csv(HERE / "jobsets.csv.gz").query("scenario == 'bernoulli'")])
    settings, written = load_params(HERE.parents[2] / "params.yaml").evaluation, []
    for load in as_published.PAPER:
        own = f"deeprm_{load}"
        mine = rows[(rows["load"] == load) & rows["policy"].isin(["all_loads", own])]
        found = comparison(mine, "bernoulli", {own: {load: own}}, settings, np.random.default_rng(1))
        means = mine.groupby("policy")["mean_slowdown"].mean()
        gap = layout.difference(found.query("load != 'all'").set_index("policy").loc["all_loads"])
        written.append([f"{load} %", f"{means['all_loads']:.2f}", f"{means[own]:.2f}", gap])
    return layout.table(["load", "all_loads", "trained at this load", "difference"], written)


def baseline_table() -> str:
    """Return the difference of training with a value network from training with the paper's baseline, by load."""
    rows = pd.read_csv(HERE / as_published.JOBSETS).rename(columns={"value": "mean_slowdown"})
    rows = rows[(rows["scenario"] == "bernoulli") & rows["policy"].isin(as_published.BASELINES)]
    (usual, value), loads = as_published.BASELINES, sorted(rows["load"].unique())
    settings = load_params(HERE.parents[2] / "params.yaml").evaluation
    references = {usual: dict.fromkeys(loads, usual)}
    found = comparison(rows, "bernoulli", references, settings, np.random.default_rng(1)).set_index(["policy", "load"])
    labels = [*(f"{load:03d}" for load in loads), "all"]
    gaps = [layout.difference(found.loc[(value, label)]) for label in labels]
    head = [f"difference from {usual}", *(f"{load} %" for load in loads), "mean of the loads"]
    return layout.table(head, [[value, *gaps]])


def reserving_claims() -> str:
    """Return verdicts on DeepRM's claims when its network may reserve."""
    rows = read("reserving_claims")
    rows = rows.assign(verdict=rows["verdict"].map(WORDS), found=rows["found"].map(short))
    return layout.table(["claim", "part", "verdict", "found"], rows[["claim", "part", "verdict", "found"]].values, 4)


def weights_table() -> str:
    """Return validation results of the last weights, which the paper keeps, and of the best, which are kept here."""
    lines = [
        "| agent | best on validation | after update | last | last above best |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for agent, curve in read("curves").groupby("agent", sort=False):
        judged = curve[curve["metric"] == "validation"].set_index("update")["value"]
        best, last = judged.min(), judged.iloc[-1]
        lines.append(f"| {agent} | {best:.3f} | {judged.idxmin()} | {last:.3f} | {100 * (last / best - 1):.1f} % |")
    return "\n".join(lines)


def experiment_table(counting: str, policies: list[str]) -> str:
    """Return mean slowdown by load under one way of counting."""
    experiments = read("experiments")
    some = experiments[(experiments["counting"] == counting) & experiments["policy"].isin(policies)]
    return by_load(some.pivot(index="policy", columns="load", values="slowdown").loc[policies])


def seen_table() -> str:
    """Return slowdown of each agent, SJF and Tetris on training and on test jobsets."""
    seen = read("seen")
    wide = seen.pivot(index="agent", columns=["split", "policy"], values="slowdown").loc[seen["agent"].unique()]
    columns = [(split, policy) for split in ("train", "test") for policy in ("sampled", "greedy", "tetris", "sjf")]
    wide = wide[columns].set_axis([f"{split}: {policy}" for split, policy in columns], axis=1)
    return by_load(wide).replace("| policy |", "| agent |", 1)


def left_out_table(policies: list[str]) -> str:
    """Return the percentage of jobs omitted by the published test, by load."""
    experiments = read("experiments")
    some = experiments[(experiments["counting"] == "started") & experiments["policy"].isin(policies)]
    wide = 100 * some.pivot(index="policy", columns="load", values="left_out").loc[policies]
    return by_load(wide, "{:.1f}")


def by_load(wide: pd.DataFrame, form: str = "{:.2f}") -> str:
    """Return a table of policies by loads."""
    lines = [f"| policy | {' | '.join(map(str, wide.columns))} |", f"| --- |{' ---: |' * wide.shape[1]}"]
    lines += [f"| {name} | {' | '.join(form.format(value) for value in wide.loc[name])} |" for name in wide.index]
    return "\n".join(lines)


def headlines() -> str:
    """Return the papers' headlines with our verdicts."""
    claims = layout.claims(HERE / "claims.csv")
    return headline_table(claims.assign(found=claims["found"].map(short)), read("times"), "deeprm_70")


def short(found: str) -> str:
    """Return a finding without the budgets, which another table has, and the words of its intervals.

    >>> short("a 2.92, b 2.85: 2.6 % above b (95 % interval 4.1 below to 9.8 above, n = 9 jobsets). Ours: a: recipe x")
    'a 2.92, b 2.85: 2.6 % above b (4.1 below to 9.8 above, n = 9)'
    """
    found = re.sub(r"\. Ours: .*", "", found).replace("95 % interval ", "").replace(", so at least this slow", "")
    found = re.sub(r"(n = \d+) jobsets", r"\1", found)
    found = re.sub(r"(\w+)_\d+(?:, \1_\d+)+ (below|above)", r"\1 of each load \2", found)
    return re.sub(r"; (\d+) jobs unfinished", r"; unfinished: \1", found)


def greedy() -> str:
    """Return slowdown of each agent, sampled and greedy among legal actions."""
    agents = read("seen")["agent"].unique()
    return experiment_table("all", [name for agent in agents for name in (agent, f"{agent}_greedy")])


TABLES = {
    "times": time_table,
    "headlines": headlines,
    "loads": load_table,
    "seeds": seed_table,
    "rules": lambda: experiment_table("all", RULES),
    "started": lambda: experiment_table("started", RULES),
    "floored": lambda: experiment_table("floored", RULES),
    "left out": lambda: left_out_table(RULES),
    "seen": seen_table,
    "greedy": greedy,
    "weights": weights_table,
    "reserving or not": reserving_table,
    "reserving, claims": reserving_claims,
    "one network or one a load": one_network_table,
    "value network or mean": baseline_table,
    **as_published.tables("paper-scale"),
}
