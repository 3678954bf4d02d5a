"""Let a stored network of `sets` go on learning by expert iteration, or by more of `mixture`, and store it again.

    PYTHONPATH=. python docs/results/expert-iteration/longer.py expert models/deeprm3/policy weights/longer 400
    PYTHONPATH=. python docs/results/expert-iteration/longer.py mixture models/deeprm3/policy weights/longer_mixture 300

One thread; the learning rate begins at half of the recipe's and falls to 0. Says its processor time.
"""

import sys
import time
from pathlib import Path

import numba
import torch

from pipeline import storage
from pipeline.config import Expert, Mixture, PoolCard, load_params
from pipeline.learning.stored import weights_of
from pipeline.problems.pool.learning import read_task
from pipeline.problems.pool.networks.loading import restore
from pipeline.problems.pool.training.finetuning import FINETUNING
from pipeline.progress import say

HOW = {"name": "expert", "begins": 0, "every": 3, "every_of_streams": 8, "unsure": 0.5, "actions": 12}
SEED = 11  # of what is played: the network has learned from the row's own jobsets


def main(name: str, start: Path, out: Path, updates: int) -> None:
    """Train, and store."""
    torch.set_num_threads(1)
    numba.set_num_threads(1)
    params = load_params()
    own = params.agents["deeprm3"].finetune.model_dump()
    how = {**own, **(HOW if name == "expert" else {}), "updates": updates, "seed": SEED}
    config = Expert.model_validate(how) if name == "expert" else Mixture.model_validate(how)
    task = read_task(params, "deeprm3", config)
    recipe = task.recipe.model_copy(update={"learning_rate": task.recipe.learning_rate / 2})
    model = storage.read_model(start, PoolCard)
    network = restore(model.card, model.weights).network
    begun = time.process_time()
    for update in FINETUNING[name](network, task._replace(recipe=recipe), config):
        if update.step % 25 == 0:
            say(f"{update.step}: {update.note}, {time.process_time() - begun:.0f} s of processor time")
    storage.write_model(out, storage.Model(model.card, weights_of(network)))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4]))
