"""Play heuristics and stored networks on jobsets that nothing was chosen on: those of `confirm`.

    PYTHONPATH=. python docs/results/expert-iteration/measure.py WEIGHTS_FOLDER

WEIGHTS_FOLDER has stored networks of `sets`, a folder each, by the name that the tables have. Heuristics are as
`reports/tables/heuristics/<scenario>/chosen.json` has them tuned. Writes `online.csv.gz` and `streams.csv.gz` beside
it: mean and 99th percentile of slowdown of every jobset under every policy; and `best.csv`: the best heuristic of each
load, as validation jobsets have it.
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd

from pipeline import storage
from pipeline.config import PoolCard, PoolScenario, load_params
from pipeline.core import CompiledRule, keys
from pipeline.problems.pool.evaluation.metrics import span_of
from pipeline.problems.pool.heuristics.tuning import heuristics_with
from pipeline.problems.pool.networks.loading import restore
from pipeline.problems.pool.networks.sets import Sets
from pipeline.problems.pool.nouns import Cluster, JobSet, batch
from pipeline.problems.pool.simulator.compiled.batch import Batched
from pipeline.problems.pool.simulator.compiled.rules import players
from pipeline.problems.pool.simulator.outcomes import outcome
from pipeline.problems.pool.training.rolling import NEVER, Roller
from pipeline.problems.pool.workload.source import source
from pipeline.progress import say
from pipeline.simulation.choosing import compiled_rule_of
from pipeline.stages.confirm import SEED

HERE = Path(__file__).resolve().parent
NOT_SHOWN = ("random", "fcfs", "easy_fcfs", "packer")  # several times as slow as the others
LOADS = {"online": None, "streams": (70, 80, 90, 95)}  # None: all that the scenario has


def networks(folder: Path) -> dict[str, Sets]:
    """Return the stored networks of a folder, by name."""
    found = {}
    for place in sorted(path.parent for path in folder.glob("*/policy.safetensors")):
        model = storage.read_model(place, PoolCard)
        network = restore(model.card, model.weights).network
        if isinstance(network, Sets):
            found[place.name] = network
    return found


def played(row: PoolScenario, jobsets: list[JobSet], who: Sets | CompiledRule) -> pd.DataFrame:
    """Return what became of every jobset under a heuristic, or under a network that plays greedily."""
    jobs, span = batch(jobsets), span_of(row)
    simulator, number = Batched(jobs, Cluster.of(row), row.step_limit, skip_forced=True), np.arange(jobs.episodes)
    key = keys(1, number, np.zeros_like(number))
    if isinstance(who, Sets):
        Roller(simulator, who.compiled(), key, greedy=True).play()
    else:
        simulator.play(simulator.rows, players([who] * jobs.episodes, key), NEVER)
    fared = outcome(jobs, simulator.schedule(), row.step_limit)
    counted = np.ones(len(jobs.arrival), dtype=bool) if span is None else span.measures(jobs)
    table = pd.DataFrame({"jobset": jobs.episode, "slowdown": fared.slowdown, "unfinished": fared.unfinished})[counted]
    each = table.groupby("jobset")
    means = {"mean_slowdown": each["slowdown"].mean(), "p99": each["slowdown"].quantile(0.99)}
    return pd.DataFrame({**means, "unfinished": each["unfinished"].sum()}).reset_index()


def main(folder: Path) -> None:
    """Play all, and write."""
    params, best = load_params(), []
    for scenario, some in LOADS.items():
        row, chosen = params.pool_scenario(scenario), storage.read_chosen(scenario)
        confirming = source(params.model_copy(update={"seed": SEED}), scenario, storage.LOG).split("test")
        loads = some or tuple(confirming)
        rules = {name: compiled_rule_of(policy) for name, policy in heuristics_with(chosen.knobs).items()}
        policies = {name: rule for name, rule in rules.items() if rule is not None and name not in NOT_SHOWN}
        parts = []
        for name, who in {**policies, **networks(folder)}.items():
            tables = [played(row, confirming[load], who).assign(policy=name, load=load) for load in loads]
            parts.append(pd.concat(tables))
            means = ", ".join(f"{table['mean_slowdown'].mean():.3f}" for table in tables)
            say(f"{scenario}, {name}: {means}")
        table = pd.concat(parts, ignore_index=True).round({"mean_slowdown": 5, "p99": 3})
        columns = ["policy", "load", "jobset", "unfinished", "mean_slowdown", "p99"]
        place = HERE / f"{scenario}.csv.gz"
        table[columns].to_csv(place, index=False, compression={"method": "gzip", "mtime": 0})
        best += [(scenario, load, chosen.best[load]) for load in loads]
    pd.DataFrame(best, columns=["scenario", "load", "heuristic"]).to_csv(HERE / "best.csv", index=False)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
