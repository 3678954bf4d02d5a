"""Tables of the README, from per-jobset results of the default run's policies that are kept beside this file.

    make repro && python -m pipeline confirm online && python -m pipeline confirm streams
    python docs/results/default/tables.py gather   # takes the results
    python docs/results/default/tables.py write    # writes the tables, between their markers

`gather` keeps what every policy shown had on every confirming jobset, and which models they were (`models.json`).
"""

import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from ruamel.yaml import YAML

from pipeline import storage
from pipeline.comparing.statistics import comparison
from pipeline.config import Evaluation, Params, load_params
from pipeline.problems import problem_of
from pipeline.simulation.results import judged
from pipeline.stages.confirm import FOLDER

ROOT = Path(__file__).parents[3]
DATA = Path(__file__).with_name("jobsets.csv.gz")
MODELS = Path(__file__).with_name("models.json")
README = ROOT / "README.md"
REFERENCE = "hold"
COLUMNS = ["scenario", "policy", "load", "jobset", "slowdown", "unfinished"]


class Shown(NamedTuple):
    """What a table shows."""

    scenario: str
    loads: Sequence[int]
    compared: Sequence[int]  # loads at which learned policies are held against the reference
    policies: Mapping[str, str]  # and what rules are called; learned ones go by their own name


LEARNED = ("deeprm3", "deeprm2", "deeprm")
RULES = {"linear": "linear, searched", "hold_until": "hold_until, tuned", "hold": "hold, tuned", "sjf": "sjf"}
TABLES = {
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


def gather(params: Params) -> pd.DataFrame:
    """Return what the policies shown had on every confirming jobset."""
    found = []
    for shown in TABLES.values():
        schema = problem_of(params, shown.scenario).tables.jobsets
        rows = storage.read_table(FOLDER / shown.scenario / "jobsets.parquet", schema)
        rows = rows[rows["policy"].isin(shown.policies) & rows["load"].isin(shown.loads)]
        found.append(rows.assign(scenario=shown.scenario, slowdown=rows[judged(rows)])[COLUMNS])
    return pd.concat(found, ignore_index=True)


def models() -> dict[str, str]:
    """Return the digests of the models and tuned rules that are played, as dvc.lock has them."""
    stages = YAML(typ="safe").load(ROOT / "dvc.lock")["stages"]
    wanted = [f"finetune@{agent}" for agent in LEARNED] + [f"heuristics@{shown.scenario}" for shown in TABLES.values()]
    outs = [out for name in wanted for out in stages[name]["outs"] if not out["path"].endswith(".csv")]
    return {out["path"]: out["md5"] for out in outs}


def rendered(title: str, data: pd.DataFrame, settings: Evaluation, seed: int) -> str:
    """Return a table of the README as Markdown."""
    shown = TABLES[title]
    rows = data[data["scenario"] == shown.scenario].rename(columns={"slowdown": "mean_slowdown"})
    references = {REFERENCE: dict.fromkeys(shown.loads, REFERENCE)}
    against = comparison(rows, shown.scenario, references, settings, np.random.default_rng(seed))
    against = against[against["load"] != "all"].assign(load=lambda frame: frame["load"].astype(int))
    cells = against.set_index(["policy", "load"])
    means = rows.groupby(["policy", "load"])["mean_slowdown"].mean()
    lines = [f"| {title} | " + " | ".join(f"{load} %" for load in shown.loads) + " |"]
    lines.append("| --- |" + " ---: |" * len(shown.loads))
    for policy, name in shown.policies.items():
        row = [_cell(means[policy, load]) for load in shown.loads]
        if policy in LEARNED:
            row = [
                text + (_difference(cells.loc[(policy, load)]) if load in shown.compared else "")
                for text, load in zip(row, shown.loads, strict=True)
            ]
        lines.append(f"| {name or policy} | " + " | ".join(row) + " |")
    return "\n".join(lines)


def _cell(mean: float) -> str:
    return f"{mean:.2f}" if mean < 10 else f"{mean:.1f}"


def _difference(row: pd.Series) -> str:
    low, high = (f"{100 * row[name]:.0f}" for name in ("difference_low", "difference_high"))
    return f" ({100 * row['difference']:+.0f} %, {low} to {high})"


def placed(text: str, title: str, table: str) -> str:
    """Return a document with a table between its markers.

    Raises:
        ValueError: it has no such markers.
    """
    begin, end = f"<!-- table: {title} -->", "<!-- end of table -->"
    pattern = re.compile(re.escape(begin) + r".*?" + re.escape(end), re.DOTALL)
    if not pattern.search(text):
        raise ValueError(f"expected markers of table '{title}'")
    return pattern.sub(lambda _: f"{begin}\n{table}\n{end}", text, count=1)


def with_tables(text: str) -> str:
    """Return a document with all tables as the data have them."""
    params = load_params(ROOT / "params.yaml")
    data = pd.read_csv(DATA)
    for title in TABLES:
        text = placed(text, title, rendered(title, data, params.evaluation, params.seed))
    return text


if __name__ == "__main__":
    if sys.argv[1:] == ["gather"]:
        kept = gather(load_params(ROOT / "params.yaml"))
        kept.to_csv(DATA, index=False, float_format="%.6g", compression={"method": "gzip", "mtime": 0})
        MODELS.write_text(json.dumps(models(), indent=2) + "\n")
    elif sys.argv[1:] == ["write"]:
        README.write_text(with_tables(README.read_text()))
    else:
        sys.exit("expected gather or write")
