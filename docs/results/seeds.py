"""Train an agent with three seeds, and run these and all other policies on the confirming jobsets of its scenario.

    PYTHONPATH=. python docs/results/seeds.py allocator FOLDER    # writes FOLDER/allocator.csv.gz

Run `make repro` first: tuned rules and the other agents are taken from it. Each seed is trained as by `finetune`, from
the untrained network, and keeps the weights that are best on validation jobsets.
"""

import os
import sys
import tempfile
from pathlib import Path

import pandas as pd

from pipeline.core import storage
from pipeline.core.config import Params, load_params
from pipeline.errors import UserError
from pipeline.learning.memory import best_on_validation
from pipeline.problems import Problem, problem_of
from pipeline.progress import say
from pipeline.stages import confirm

SEEDS = (1, 2, 3)
KEPT = ("mean_slowdown", "mean_bounded_slowdown", "mean_wait", "p99_slowdown", "p99_wait", "longest_wait", "makespan")


def trained(problem: Problem, params: Params, agent: str, seed: int) -> object:
    """Train with one seed and return the policy; the model is written to the models of the current folder."""
    part = params.agent(agent).finetune.model_copy(update={"seed": seed})
    task = problem.learning.task(params, agent, part)
    network = problem.learning.untrained(params, agent, task)
    storage.write_model(storage.model_folder(agent, "pretrained"), problem.learning.model(params, agent, network))
    updates = problem.algorithms[part.name](network, task, part)
    validate = problem.learning.validate(network, task)
    for update in best_on_validation(updates, network, validate, part.validate_every, part.updates):
        if "validation" in update.metrics:
            say(f"seed {seed}, update {update.step} of {part.updates}: validation {update.metrics['validation']:.4g}")
    storage.write_model(storage.model_folder(agent, "policy"), problem.learning.model(params, agent, network))
    return problem.learning.policies(params, agent)[agent]


def confirmed(params: Params, agent: str) -> pd.DataFrame:
    """Return the result of every policy on each confirming jobset; policies of seeds are numbered."""
    scenario = params.agent(agent).scenario
    problem = problem_of(params, scenario)
    jobsets = confirm.fresh_jobsets(problem, params, scenario)
    knobs = storage.read_chosen(scenario).knobs
    others = confirm.scored(problem, params, scenario, knobs, jobsets)
    found = [done.jobsets for name, done in others.items() if name != agent]
    data = Path("data").resolve()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        Path("data").symlink_to(data)
        policies = {f"{agent}_{seed}": trained(problem, params, agent, seed) for seed in SEEDS}
        os.chdir(data.parent)
        results = problem.scoring(params, scenario, agent).score(policies, jobsets=jobsets)
    frame = pd.concat([*found, *(done.jobsets for done in results.values())], ignore_index=True)
    return frame[["policy", "load", "jobset", *(name for name in KEPT if name in frame), "unfinished"]]


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("expected AGENT FOLDER")
    target = Path(sys.argv[2]).resolve() / f"{sys.argv[1]}.csv.gz"
    once = {"method": "gzip", "mtime": 0}
    try:
        found = confirmed(load_params(), sys.argv[1])
    except UserError as error:
        sys.exit(str(error))
    found.to_csv(target, index=False, float_format="%.5g", compression=once)
