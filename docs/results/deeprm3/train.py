"""Train the agent with several seeds for `measure.py`, or longer than by default.

    PYTHONPATH=. python docs/results/deeprm3/train.py FOLDER [SEED ...]    # writes FOLDER/deeprm3_1, deeprm3_2, ...
    PYTHONPATH=. python docs/results/deeprm3/train.py FOLDER 1x900         # FOLDER/deeprm3_1x900: 900 updates

Run `make repro` first. Each seed is trained as by `finetune`, from the untrained network, and keeps the weights that
are best on validation jobsets.
"""

import re
import sys
from pathlib import Path

from pipeline.core import storage
from pipeline.core.config import load_params
from pipeline.learning.memory import best_on_validation
from pipeline.problems import problem_of
from pipeline.progress import say

AGENT = "deeprm3"


def train(folder: Path, asked: str) -> None:
    """Train with one seed and write the model."""
    params, (seed, _, updates) = load_params(), asked.partition("x")
    problem = problem_of(params, params.agent(AGENT).scenario)
    part = params.agent(AGENT).finetune
    part = part.model_copy(update={"seed": int(seed), "updates": int(updates or part.updates)})
    task = problem.learning.task(params, AGENT, part)
    network = problem.learning.untrained(params, AGENT, task)
    learning = problem.algorithms[part.name](network, task, part)
    validate = problem.learning.validate(network, task)
    for update in best_on_validation(learning, network, validate, part.validate_every, part.updates):
        if "validation" in update.metrics:
            found = round(update.metrics["validation"], 5)
            say(f"seed {asked}, update {update.step} of {part.updates}: validation {found}")
    storage.write_model(folder / f"{AGENT}_{asked}", problem.learning.model(params, AGENT, network))


if __name__ == "__main__":
    seeds = sys.argv[2:] or ["1", "2", "3"]
    if len(sys.argv) < 2 or not all(re.fullmatch(r"\d+(x[1-9]\d*)?", seed) for seed in seeds):
        sys.exit(f"expected FOLDER [SEED or SEEDxUPDATES ...], found {' '.join(sys.argv[1:]) or 'nothing'}")
    for seed in seeds:
        train(Path(sys.argv[1]).resolve(), seed)
