"""Train schedulers of many machines by PPO alone and by expert iteration behind it, and play test jobsets.

    git apply docs/params/machines_expert.diff
    PYTHONPATH=. python docs/results/expert-iteration/machines.py

One thread, three training seeds, behind `dvc repro generate@machines`. Of each training the weights that are best on
validation jobsets are kept, looked at as often as the row says. Writes machines.csv.gz beside this file: mean slowdown
of every test jobset, and machines_times.csv: processor time, updates and validation of each training.
"""

import copy
import time
from pathlib import Path

import numba
import numpy as np
import pandas as pd
import torch

from pipeline import storage
from pipeline.config import MachinesExpert, Params, Ppo, load_params
from pipeline.core import keys
from pipeline.problems.machines.learning import LEARNING
from pipeline.problems.machines.networks.acting import greedy
from pipeline.problems.machines.networks.actor_critic import ActorCritic
from pipeline.problems.machines.storage import read_jobsets, read_park
from pipeline.problems.machines.training.algorithms import ALGORITHMS
from pipeline.problems.machines.training.task import Task
from pipeline.progress import say
from pipeline.simulation.rollout import play

HERE = Path(__file__).resolve().parent
SEEDS = (1, 2, 3)
AGENT = "deepk8s_expert"
LONGER = 150  # updates of PPO, about half of the time of the expert's 60


def ways(params: Params) -> dict[str, Ppo | MachinesExpert]:
    """Return what is compared, by name."""
    expert = params.agents[AGENT].finetune
    own = {name: value for name, value in expert.model_dump().items() if name in Ppo.model_fields} | {"name": "ppo"}
    longer = {"updates": LONGER}
    return {"ppo": Ppo.model_validate(own), "ppo_longer": Ppo.model_validate(own | longer), "expert": expert}


def train(params: Params, config: Ppo | MachinesExpert, seed: int) -> tuple[ActorCritic, dict[str, float]]:
    """Return the best weights of a training, and what it took."""
    task = LEARNING.task(params, AGENT, config.model_copy(update={"seed": seed}))
    network = LEARNING.untrained(params, AGENT, task)
    judged, spent, best, kept = LEARNING.validate(network, task), 0.0, np.inf, network
    begun = time.process_time()
    for update in ALGORITHMS[config.name](network, task, config):
        spent += time.process_time() - begun
        if update.step % config.validate_every == 0 and (now := judged()) < best:
            best, kept = now, copy.deepcopy(network)
        begun = time.process_time()
    return kept, {"updates": config.updates, "seconds": round(spent), "validation": round(best, 4)}


def played(task: Task, network: ActorCritic) -> pd.DataFrame:
    """Return the mean slowdown of every test jobset."""
    folder, tables = storage.jobsets_folder("machines"), []
    for load, jobsets in read_jobsets(folder, "test", read_park(folder)).items():
        simulator, number = task.begin(jobsets), np.arange(len(jobsets))
        play(simulator, greedy(network), keys(1, number, np.zeros_like(number)))
        mean = simulator.cost / [len(jobs.arrival) for jobs in jobsets]
        tables.append(pd.DataFrame({"load": load, "jobset": number, "mean_slowdown": mean.round(5)}))
    return pd.concat(tables)


def main() -> None:
    """Train and play all."""
    torch.set_num_threads(1)
    numba.set_num_threads(1)
    params = load_params()
    tables, times = [], []
    for name, config in ways(params).items():
        for seed in SEEDS:
            network, took = train(params, config, seed)
            table = played(LEARNING.task(params, AGENT, config), network).assign(policy=f"{name}_{seed}")
            tables.append(table)
            times.append({"training": name, "seed": seed} | took)
            say(f"{times[-1]}, {table.groupby('load')['mean_slowdown'].mean().round(3).to_dict()}")
    found = pd.concat(tables)[["policy", "load", "jobset", "mean_slowdown"]]
    found.to_csv(HERE / "machines.csv.gz", index=False, compression={"method": "gzip", "mtime": 0})
    pd.DataFrame(times).to_csv(HERE / "machines_times.csv", index=False)


if __name__ == "__main__":
    main()
