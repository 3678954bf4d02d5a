"""Train variants of deeprm3 at a small budget, and measure them on short runs and streams.

    python docs/results/deeprm3/ablate.py OUT.csv UPDATES SEED [VARIANT ...]

Run at a root that has data/jobsets/online. The last weights are measured: nothing is chosen. Appends one row a load and
jobset to OUT.csv.
"""

import copy
import sys
from pathlib import Path

from measure import play, problems

from pipeline.config import Params, load_params
from pipeline.problems.pool.learning import read_task
from pipeline.problems.pool.networks.network import greedy
from pipeline.problems.pool.networks.networks import build
from pipeline.problems.pool.networks.sets import Sets
from pipeline.problems.pool.training.imitate import imitate
from pipeline.problems.pool.training.mixture import mixture
from pipeline.progress import say

AGENT = "deeprm3"
LOADS = {"short": (70, 110, 150, 190), "streams": (70, 80, 90, 95), "text": (70, 110, 150, 190)}
COUNT = {"short": 100, "streams": 12, "text": 100}
RENAMED = {"mean_slowdown": "mean", "longest_wait": "worst_wait"}
COLUMNS = ["mean", "p99", "worst_wait", "unfinished", "load", "variant", "seed", "kind", "jobset"]

NO_VALUE = {"left_job": 0.0, "left_work": 0.0}
# Variant -> what it changes of (network, cloning, policy gradient, recipe).
VARIANTS: dict[str, tuple[dict, dict | None, dict, dict]] = {
    "full": ({}, {}, {}, {}),
    "no cloning": ({}, None, {}, {}),
    "plain cloning": ({}, {"entropy": 0.0}, {}, {}),
    "baseline at equal decision": ({}, {}, {}, {"baseline": "decision"}),
    "baseline at equal time": ({}, {}, {}, {"baseline": "time"}),
    "fixed jobsets": ({}, {}, {}, {"jobsets": "fixed"}),
    "short runs only": ({}, {}, {"streams": None, "jobsets": 24}, {}),
    "streams only": ({}, {}, {"jobsets": 0}, {}),
    "linear does not teach": ({}, {"teachers": ["sjf", "sjf_align", "tetris", "hold", "easy"], "linear": None}, {}, {}),
    "nothing beyond the window": ({}, {}, {"streams": {"beyond": 0} | NO_VALUE}, {}),
    "no value of what is left": ({}, {}, {"streams": {"beyond": 400} | NO_VALUE}, {}),
    "one demand": ({}, {}, {"demands": None}, {}),
    "32 hidden units": ({"hidden": 32}, {}, {}, {}),
    "elapsed time known": ({"elapsed": True}, {}, {}, {}),
}


def changed(params: Params, variant: str, updates: int, seed: int) -> Params:
    """Return the parameters of a variant."""
    network, cloning, gradient, recipe = VARIANTS[variant]
    row = params.agents[AGENT]
    finetune = {**row.finetune.model_dump(), **gradient, "updates": updates, "seed": seed}
    if finetune["streams"] is not None:
        finetune["streams"] = row.finetune.streams.model_dump() | finetune["streams"]
    pretrain = {**row.pretrain.model_dump(), **(cloning or {}), "seed": seed}
    raw = params.model_dump()
    raw["agents"][AGENT] = row.model_dump() | {
        "network": row.network.model_dump() | network,
        "pretrain": pretrain,
        "finetune": finetune,
    }
    raw["recipes"][row.finetune.recipe] |= recipe
    return Params.model_validate(raw)


def train(params: Params, cloned: bool, clones: dict[str, dict]) -> Sets:
    """Return the trained network; variants that are cloned alike share a clone."""
    row = params.agents[AGENT]
    task = read_task(params, AGENT, row.pretrain)
    network = build(row.network, task.cluster, task.seed)
    assert isinstance(network, Sets)
    key = f"{row.network} {row.pretrain}"
    if cloned and key not in clones:
        for _ in imitate(network, task, row.pretrain):
            pass
        clones[key] = copy.deepcopy(network.state_dict())
    if cloned:
        network.load_state_dict(clones[key])
    for _ in mixture(network, read_task(params, AGENT, row.finetune), row.finetune):
        pass
    return network


def main(out: Path, updates: int, seed: int, names: list[str]) -> None:
    """Train and measure."""
    base = load_params()
    tests, clones = {}, {}
    for kind, problem in problems(base).items():
        if kind in LOADS:
            found = problem.jobsets("test")
            tests[kind] = problem, {load: found[load][: COUNT[kind]] for load in LOADS[kind]}
    for name in names or list(VARIANTS):
        params = changed(base, name, updates, seed)
        network = train(params, VARIANTS[name][1] is not None, clones)
        for kind, (problem, jobsets) in tests.items():
            table = play(problem, jobsets, greedy(network, True)).jobsets
            table = table.rename(columns=RENAMED).assign(variant=name, seed=seed, kind=kind)[COLUMNS]
            table.to_csv(out, mode="a", header=not out.exists(), index=False, float_format="%.6g")
            say(f"{name} {seed} {kind} {table.groupby('load')['mean'].mean().round(3).to_dict()}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:])
