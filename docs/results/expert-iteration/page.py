"""Table of ../expert-iteration.md, from the files of `measure.py` and `machines.py` of commit ff8dfac."""

from pathlib import Path

import numpy as np
import pandas as pd
from layout import difference, paired_by_seed, table

from pipeline.comparing.statistics import ALL, comparison
from pipeline.core.config import load_params

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
KINDS = {"online": "short runs", "streams": "streams"}
TRAININGS = {("expert", "mixture"): "equal time", ("longer", "longer_mixture"): "longest training"}


def gains() -> str:
    """Return the difference of expert iteration from more of the policy gradient, over all loads."""
    written, settings = [], load_params(ROOT / "params.yaml")
    for scenario, kind in KINDS.items():
        rows = pd.read_csv(HERE / f"{scenario}.csv.gz")
        loads, count = rows["load"].unique(), rows.groupby("load")["jobset"].nunique().iloc[0]
        best = pd.read_csv(HERE / "best.csv").query("scenario == @scenario").set_index("load")["heuristic"].to_dict()
        references = {name: dict.fromkeys(best, name) for name in ("hold", "mixture", "longer_mixture")}
        rng = np.random.default_rng(settings.seed)
        found = comparison(rows, scenario, references | {"best_heuristic": best}, settings.evaluation, rng)
        found = found[found["load"] == ALL].set_index(["policy", "against"])
        for (own, other), words in TRAININGS.items():
            gap = difference(found.loc[(own, other)])
            written.append([kind, f"{words}: `{own}` vs. `{other}`", f"{len(loads)} x {count}", gap])
    rows = pd.read_csv(HERE / "machines.csv.gz").assign(unfinished=0)
    count = rows.groupby("load")["jobset"].nunique().iloc[0]
    for words, other in (("equal updates", "ppo"), ("PPO in half the time", "ppo_longer")):
        comparison_of = f"{words}: `expert` vs. `{other}`"
        written.append(["five machines", comparison_of, f"{rows['load'].nunique()} x {count}", _by_seed(rows, other)])
    return table(["jobs", "comparison", "loads x n", "difference"], written, words=2)


def _by_seed(rows: pd.DataFrame, other: str) -> str:
    """Return the difference of three training runs from another method with the same seeds, over all loads."""
    params, seeds = load_params(ROOT / "params.yaml"), (1, 2, 3)
    mine, its = ([f"{name}_{seed}" for seed in seeds] for name in ("expert", other))
    to, rng = {other: dict.fromkeys(rows["load"].unique(), other)}, np.random.default_rng(params.seed)
    frame = paired_by_seed(rows, mine, its, other)
    found = comparison(frame, "machines", to, params.evaluation, rng, {"expert": mine})
    return difference(found.set_index(["policy", "load"]).loc[("expert", ALL)])


TABLES = {"gains": gains}
