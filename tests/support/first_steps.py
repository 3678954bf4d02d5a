"""Begin a training run many times, three processes at a time, and count the different weights after its first step.

    python first_steps.py COUNT AGENT [unsettled]      # in a folder whose stages before `finetune` have run

A process ends after its optimizer's first step, because a run may finally keep the weights that it began with.
`unsettled` leaves out what `pipeline/learning/stored.py` does, to show why it is needed.
"""

import hashlib
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import torch

from pipeline.cli.ending import main as pipeline
from pipeline.learning import stored

AT_ONCE = 3
UNSETTLED = "unsettled"


def stepped(step: Callable[[torch.optim.Adam], object], optimizer: torch.optim.Adam) -> None:
    """Take a step, print the digest of the weights, and end."""
    step(optimizer)
    digest = hashlib.sha256()
    for group in optimizer.param_groups:
        for weight in group["params"]:
            digest.update(weight.detach().numpy().tobytes())
    os.write(1, digest.hexdigest()[:8].encode())
    os._exit(0)


def begin(agent: str, unsettled: bool) -> None:
    """Train until the first step."""
    if unsettled:
        stored.initialise_mkl = lambda: None  # type: ignore[assignment]
    step = torch.optim.Adam.step
    torch.optim.Adam.step = lambda optimizer: stepped(step, optimizer)  # type: ignore[method-assign,assignment]
    sys.argv = ["pipeline", "finetune", agent]
    pipeline()


def first_step(number: int, words: list[str]) -> str:
    """Return the digest that one process prints."""
    done = subprocess.run([sys.executable, __file__, "0", *words], check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout


def main(count: int, words: list[str]) -> None:
    """Print the counts as JSON."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        seen = Counter(pool.map(partial(first_step, words=words), range(count)))
    sys.stdout.write(json.dumps(seen) + "\n")


if __name__ == "__main__":
    if int(sys.argv[1]):
        main(int(sys.argv[1]), sys.argv[2:])
    else:
        begin(sys.argv[2], UNSETTLED in sys.argv[3:])
