"""Tables of ../paper-scale.md, from the CSVs that `make.py` and `experiments.py` wrote into this folder."""

import re
import sys
from functools import partial
from pathlib import Path

import as_published
import layout
import numpy as np
import pandas as pd

from pipeline.comparing.statistics import comparison
from pipeline.core.config import load_params

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from headlines import headline_table  # noqa: E402  in this folder, which is not always on the path

PAPER_SECONDS = 80.0  # an iteration on 24 cores: DeepRM section 4.3
MEAN = "mean of the three"  # its interval includes the variation between seeds
COUNTED_AT = 110  # percent
OWN_TABLE = ("reserving", "all reserve")
OTHERS = [title for title in as_published.SHOWN["paper-scale"] if title not in (*OWN_TABLE, "a value network")]
REFERENCES = ("sjf", "tetris", "hold", "hold_until")
RULES = [
    "random_of_all",
    "packer",
    "tetris_code_0.5",
    "tetris",
    "sjf",
    "hold",
]


def read(name: str) -> pd.DataFrame:
    """Return a table of this folder."""
    return pd.read_csv(HERE / f"{name}.csv")


def time_sentence() -> str:
    """Return the training times, compared with the paper's 80 seconds."""
    found = read("times")
    seconds = found.loc[(found["jobsets"] == 100) & (found["episodes"] == 20), "seconds_an_update"]
    span = f"{seconds.min():.2f} to {seconds.max():.2f} s on one core; the paper: {PAPER_SECONDS:g} s on 24 cores"
    hours = f"All training together: {found['hours'].sum():.1f} hours on one core"
    return f"An iteration of 100 jobsets x 20 episodes: {span}. {hours}."


def seed_table() -> str:
    """Return agents that differ only in their seed against rules at their load, on the same jobsets."""
    found, keys = read("times"), ["network", "objective", "load", "updates", "jobsets", "episodes"]
    rows = pd.read_csv(HERE / "jobsets.csv.gz").query("scenario == 'bernoulli'")
    found = found[found["agent"].isin(rows["policy"])]
    several = found[found.groupby(keys)["agent"].transform("size") > 1]
    seeds, load = list(several["agent"]), int(several["load"].iloc[0])
    rows = rows[rows["load"] == load]
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
            *(layout.difference(cells.loc[(who, rule)]) for rule in REFERENCES),
        ]
        for who in (*seeds, MEAN)
    ]
    n = rows["jobset"].nunique()
    return layout.table([f"{load} %, n = {n}", "slowdown", *(f"vs. {rule}" for rule in REFERENCES)], written)


def shared(rows: pd.DataFrame) -> pd.DataFrame:
    """Return rows of the jobsets that every policy has; a run with a smaller budget has fewer than published data."""
    return rows[rows.groupby("jobset")["policy"].transform("nunique") == rows["policy"].nunique()]


def reserving_table() -> str:
    """Return each agent that may reserve, at its load, against policies that may not and rules that may."""
    published = pd.read_csv(HERE / as_published.JOBSETS)
    published = published[published["measure"] == "mean_slowdown"].rename(columns={"value": "mean_slowdown"})
    fits_now = pd.read_csv(HERE / "jobsets.csv.gz").query("scenario == 'bernoulli'")
    ahead = published[published["scenario"] == "all_reserving"]
    parts = [
        published[published["scenario"] == "reserving"],
        fits_now[fits_now["policy"].str.fullmatch(r"deeprm_\d+")],
        ahead.assign(policy=ahead["policy"] + " that reserves"),
    ]
    rows, written = pd.concat(parts), []
    settings = load_params(HERE.parents[2] / "params.yaml").evaluation
    for agent in as_published.RESERVING:
        load = int(agent.split("_")[1])
        mine = shared(rows[rows["load"] == load])
        others = ("sjf", "tetris", "hold", f"deeprm_{load}", "sjf that reserves")
        references = {other: {load: other} for other in others}
        found = comparison(mine, "reserving", references, settings, np.random.default_rng(1))
        cells = found.query("load != 'all'").set_index(["policy", "against"])
        mean = mine.loc[mine["policy"] == agent, "mean_slowdown"].mean()
        gaps = [layout.difference(cells.loc[(agent, other)]) for other in others if other not in ("tetris", "hold")]
        written.append([agent, f"{load} %", f"{mean:.2f}", *gaps])
    head = ["vs. sjf", "vs. the same agent without reservations", "vs. sjf that reserves"]
    return layout.table(["agent", "load", "slowdown", *head], written)


def counting_table() -> str:
    """Return mean slowdown by rule at one load under each way of counting, and the percentage of jobs left out."""
    experiments = read("experiments")
    some = experiments[(experiments["load"] == COUNTED_AT) & experiments["policy"].isin(RULES)]
    wide = some.pivot(index="policy", columns="counting", values="slowdown")
    left_out = 100 * some[some["counting"] == "started"].set_index("policy")["left_out"]
    rows = [
        [name, *(f"{wide.loc[name, way]:.2f}" for way in ("all", "started", "floored")), f"{left_out[name]:.1f} %"]
        for name in RULES
    ]
    head = [
        f"policy, at {COUNTED_AT} %",
        "all jobs",
        "started before arrivals end",
        "the same, rounded down",
        "left out",
    ]
    return layout.table(head, rows)


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
    found = re.sub(r"; at load .*", "", re.sub(r"(n = \d+) jobsets", r"\1", found))  # one load stands for several
    found = re.sub(r"^from load \d+ to \d+: .*; (?=slowdown clearly)", "", found)  # slowdown.csv has the means
    found = re.sub(r"(\w+)_\d+(?:, \1_\d+)+ (below|above)", r"\1 of each load \2", found)
    return re.sub(r"; (\d+) jobs unfinished", r"; unfinished: \1", found)


TABLES = {
    "times": time_sentence,
    "headlines": headlines,
    "seeds": seed_table,
    "counting": counting_table,
    "other settings": partial(as_published.overall, "paper-scale", OTHERS),
    "reserving or not": reserving_table,
}
