"""Train many times in this folder, each time killed at a random moment and resumed; report what differs.

    python many_trainings.py COUNT SEED AGENT      # in a folder whose stages before `finetune` have run

Each training run is a child of one process that has imported everything; otherwise imports would take most of the time.
During every second run, three other processes keep the cores busy. The reference is a run without a kill.
"""

import hashlib
import json
import multiprocessing
import os
import random
import shutil
import signal
import sys
import time
from collections import Counter
from pathlib import Path

from pipeline.core import storage
from pipeline.core.config import load_params
from pipeline.problems import problem_of
from pipeline.stages import finetune

BURNERS = 3
SIGNALS = (signal.SIGKILL, signal.SIGTERM)


def begun(agent: str) -> int:
    """Start a training run in a child; return its process id."""
    child = os.fork()
    if child == 0:
        sink = os.open(os.devnull, os.O_WRONLY)
        os.dup2(sink, 1)
        os.dup2(sink, 2)
        finetune.run(load_params(), agent)
        os._exit(0)
    return child


def ended(child: int) -> int:
    """Wait for a child; return its exit code."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def made(agent: str) -> str:
    """Return the digest of all files that a training run writes."""
    digest = hashlib.sha256()
    for place in (storage.model_folder(agent, "policy"), storage.curve_file(agent, "finetune")):
        for path in sorted(place.rglob("*")) if place.is_dir() else [place]:
            digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()


def cleared(agent: str) -> None:
    """Remove the files of a training run."""
    shutil.rmtree(storage.model_folder(agent, "policy"), ignore_errors=True)
    storage.curve_file(agent, "finetune").unlink(missing_ok=True)


def busy() -> None:
    """Keep a core busy."""
    while True:
        pass


def once(agent: str, after: float, sent: signal.Signals, crowd: bool) -> tuple[int, str]:
    """Signal a training run after some seconds; return its exit code, and the digest after resuming if necessary."""
    burners = [multiprocessing.Process(target=busy, daemon=True) for _ in range(BURNERS if crowd else 0)]
    for burner in burners:
        burner.start()
    try:
        cleared(agent)
        child = begun(agent)
        time.sleep(after)
        os.kill(child, sent)
        first = ended(child)
        return first, made(agent) if first == 0 or ended(begun(agent)) == 0 else "failed"
    finally:
        for burner in burners:
            burner.kill()


def main(count: int, seed: int, agent: str) -> None:
    """Print the counts as JSON."""
    params = load_params()
    learning = problem_of(params, params.agent(agent).scenario).learning
    learning.task(params, agent, params.agent(agent).finetune)  # imports what a run needs
    began = time.monotonic()
    cleared(agent)
    if ended(begun(agent)):
        sys.exit("the training that nobody disturbs failed")
    whole, wanted = time.monotonic() - began, made(agent)
    rng, found, killed = random.Random(seed), Counter[str](), 0
    for number in range(count):
        crowd = number % 2 == 1
        after = rng.uniform(0.05, whole * (2.5 if crowd else 1.0))
        first, digest = once(agent, after, rng.choice(SIGNALS), crowd)
        killed += first != 0
        found["same" if digest == wanted else digest] += 1
        sys.stderr.write(f"{number + 1} of {count}, {dict(found)}\n")
    told = {"count": count, "killed": killed, "seconds": round(whole, 2), "found": dict(found)}
    sys.stdout.write(json.dumps(told) + "\n")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]).name)
