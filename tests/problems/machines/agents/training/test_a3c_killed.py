"""The processes of A3C end when their learner is killed."""

import subprocess
import sys
from pathlib import Path

import psutil
from builders import REPOSITORY

LEARNER = """
import multiprocessing, sys
sys.path.insert(0, sys.argv[1])
from machine_learning import RECIPES, tiny_task, untrained
from pipeline.core.config.machines.learning import A3c
from pipeline.problems.machines.agents.training.a3c import a3c

if __name__ == "__main__":
    config = A3c(name="a3c", recipe="", loads=(100,), validate_every=1, workers=2, updates=100_000, jobsets=6)
    for _ in a3c(untrained(), tiny_task(RECIPES["a3c"]), config):
        print(*(child.pid for child in multiprocessing.active_children()), flush=True)
"""


def test_workers_end_when_their_learner_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "learner.py"
    script.write_text(LEARNER)
    command = [sys.executable, str(script), str(REPOSITORY / "tests" / "support")]
    with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True) as learner:
        assert learner.stdout is not None
        workers = [psutil.Process(int(pid)) for pid in learner.stdout.readline().split()]
        learner.kill()
    assert len(workers) == 2
    psutil.wait_procs(workers, timeout=60)
    assert not [worker for worker in workers if worker.is_running() and worker.status() != psutil.STATUS_ZOMBIE]
