"""Measure scenario `machines_steady`, where arrivals continue: sustainable loads, and the best policies.

    PYTHONPATH=. python docs/results/deepk8s/steady.py sustained   # writes sustained.csv
    PYTHONPATH=. python docs/results/deepk8s/steady.py train       # three runs and their test: steady.csv.gz

Run `python -m pipeline generate machines_steady` before the second command. Training and selection on validation
jobsets are those of `finetune`. The test uses fresh jobsets, with numbers that no run draws.
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd

from pipeline.core.config import MachinesAgent, MachinesEvolution, Params, load_params
from pipeline.core.types import FloatArray
from pipeline.learning.memory import best_on_validation
from pipeline.problems.machines.agents.learning import LEARNING
from pipeline.problems.machines.agents.networks.actor_critic import Linear
from pipeline.problems.machines.agents.training.evolution import evolution, play_candidates, weights_in
from pipeline.problems.machines.env.evaluation.metrics import results
from pipeline.problems.machines.env.evaluation.play import game_of, played, score
from pipeline.problems.machines.env.nouns import Jobs
from pipeline.problems.machines.env.simulator.batch import costed
from pipeline.problems.machines.env.storage import machines_of
from pipeline.problems.machines.env.workload.source import Drawn, source
from pipeline.problems.machines.heuristics.rules import HEURISTICS

HERE = Path(__file__).resolve().parent
SCENARIO, AGENT = "machines_steady", "machines_evolved"
SEEDS = (1, 2, 3)
CONFIRMING, JOBSETS = 5_000_000, 200  # number of the first one, and count at each load
LONG, EPISODES, LOADS = 40_000, 12, (78, 80, 82, 84, 86, 88)
LOOKED_AT = (10_000, 20_000, 30_000, 38_000)  # waiting jobs are counted when these jobs arrive
RULES = ("packer", "most_allocated", "wfp3", "sjf_most_allocated", "sjf")
KEPT = ["policy", "load", "jobset", "mean_bounded_slowdown", "mean_wait", "p99_wait", "longest_wait", "unfinished"]


def origin_of(params: Params) -> Drawn:
    """Return the source of jobs."""
    found = source(params, SCENARIO, Path())
    assert isinstance(found, Drawn)
    return found


def sustained(params: Params) -> pd.DataFrame:
    """Return the mean number of waiting jobs after a long time; where it grows, the load is not sustainable."""
    origin, row = origin_of(params), params.machines_scenario(SCENARIO)
    tasks = origin.tasks.model_copy(update={"jobs": LONG, "measured": (0, LONG - 1)})
    row = row.model_copy(update={"workload": tasks, "time_limit": 1e9})
    machines = machines_of(row, origin.park)
    long = Drawn(params.seed, row, tasks, origin.park)
    rows = []
    for load in LOADS:
        jobsets = [long.fresh(load, CONFIRMING + k) for k in range(EPISODES)]
        game, _, _ = game_of({load: jobsets}, machines, params.seed)
        for rule, placed in zip(RULES, played(game, [HEURISTICS[name] for name in RULES], lambda _: None), strict=True):
            starts = np.where(np.isnan(placed.start), np.inf, placed.start).reshape(EPISODES, LONG)
            for number in LOOKED_AT:
                waiting = [(starts[b, :number] > jobs.arrival[number]).sum() for b, jobs in enumerate(jobsets)]
                rows.append({"policy": rule, "load": load, "job": number, "waiting": float(np.mean(waiting))})
    return pd.DataFrame(rows)


def untrained(params: Params) -> Linear:
    """Return the initial network, which does not depend on a seed."""
    network = LEARNING.untrained(params, AGENT, LEARNING.task(params, AGENT, params.agent(AGENT).finetune))
    assert isinstance(network, Linear)
    return network


def trained(params: Params, seed: int) -> FloatArray:
    """Return the weights that `finetune` stores after one run."""
    part = params.agent_of(MachinesAgent, AGENT).finetune.model_copy(update={"seed": seed})
    assert isinstance(part, MachinesEvolution)
    task, network = LEARNING.task(params, AGENT, part), untrained(params)
    validate = LEARNING.validate(network, task)
    updates = evolution(network, task, part)
    for update in best_on_validation(updates, network, validate, part.validate_every, part.updates):
        if "validation" in update.metrics:
            sys.stderr.write(f"seed {seed}, update {update.step}: {update.note}\n")
    return weights_in(network)


def confirmed(params: Params) -> pd.DataFrame:
    """Return the results of heuristics and three training runs on fresh jobsets."""
    origin, row = origin_of(params), params.machines_scenario(SCENARIO)
    machines = machines_of(row, origin.park)
    jobsets: dict[int, list[Jobs]] = {
        load: [origin.fresh(load, CONFIRMING + k) for k in range(JOBSETS)] for load in row.loads
    }
    rules = {name: rule for name, rule in HEURISTICS.items() if name != "random"}
    found = [done.jobsets for done in score(rules, jobsets, machines, params.seed).values()]
    game, load, number = game_of(jobsets, machines, params.seed)
    for seed in SEEDS:
        simulator = costed(machines, "bounded_slowdown", game.episodes)
        play_candidates(untrained(params), simulator, trained(params, seed)[None])
        name = f"{AGENT}_{seed}"
        found.append(results(name, load, number, simulator.jobs, simulator.placed(), machines).jobsets)
    return pd.concat(found)[KEPT]


if __name__ == "__main__":
    if sys.argv[1:] == ["sustained"]:
        sustained(load_params()).round(1).to_csv(HERE / "sustained.csv", index=False)
    elif sys.argv[1:] == ["train"]:
        once = {"method": "gzip", "mtime": 0}
        confirmed(load_params()).to_csv(HERE / "steady.csv.gz", index=False, float_format="%.6g", compression=once)
    else:
        sys.exit("expected sustained or train")
