"""Trade the mean for the tail: play stored networks with more and more of `ageing`.

    python docs/results/deeprm3/tail.py WEIGHTS_FOLDER

WEIGHTS_FOLDER is that of `measure.py`, whose test jobsets the three trainings of DeepRM3 play, short runs and streams.
Writes tail.csv.gz beside this file: one row a problem, load, weight of `ageing`, training and jobset.
"""

import sys
from pathlib import Path

import pandas as pd
from measure import HERE, play, problems

from pipeline import storage
from pipeline.config import PoolCard, load_params
from pipeline.problems.pool.networks.loading import restore
from pipeline.progress import say

SEEDS = ("deeprm3_1", "deeprm3_2", "deeprm3_3")
AGEING = (0.0, 0.5, 1.0, 2.0, 4.0)
LOADS = {"short": (110, 150, 190), "streams": (70, 80, 90)}
COUNT = {"short": 300, "streams": 60}
COLUMNS = ["problem", "load", "ageing", "policy", "jobset", "mean_slowdown", "p99", "longest_wait"]


def main(folder: Path) -> None:
    """Play and write."""
    models, tables = {seed: storage.read_model(folder / seed, PoolCard) for seed in SEEDS}, []
    for kind, loads in LOADS.items():
        problem = problems(load_params())[kind]
        jobsets = {load: jobs[: COUNT[kind]] for load, jobs in problem.jobsets("test").items() if load in loads}
        for weight in AGEING:
            for seed, model in models.items():
                policy = restore(model.card.model_copy(update={"ageing": weight}), model.weights).policy
                done = play(problem, jobsets, policy).jobsets
                tables.append(done.assign(problem=kind, ageing=weight, policy=seed))
            say(f"{kind}, {weight:g}: {pd.concat(tables[-3:]).groupby('load')['mean_slowdown'].mean().to_dict()}")
    found = pd.concat(tables)[COLUMNS].round({"mean_slowdown": 4, "p99": 2})
    found.to_csv(HERE / "tail.csv.gz", index=False, compression={"method": "gzip", "mtime": 0})


if __name__ == "__main__":
    main(Path(sys.argv[1]))
