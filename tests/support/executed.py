"""Tasks for tests of the executor, in a module, so that every worker can import them."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.slurm.loopback import own_ports
from pipeline.core.types import FloatArray
from pipeline.errors import UserError


class Sum(NamedTuple):
    """Values to sum, and the folder in which the task notes that it began."""

    values: FloatArray
    notes: Path
    takes_s: float = 0.0


def total(task: Sum, factor: float = 1.0) -> FloatArray:
    """Return the cumulative sums, times a factor."""
    note(task.notes, "begun")
    time.sleep(task.takes_s)
    return np.asarray(np.cumsum(task.values) * factor)


def note(folder: Path, word: str) -> None:
    (folder / f"{word}-{os.getpid()}-{time.monotonic_ns()}").touch()


def count(folder: Path, word: str = "begun") -> int:
    return len(list(folder.glob(f"{word}-*")))


def killed_once(task: Sum) -> float:
    """Kill the worker on the first call."""
    mark = task.notes / "killed"
    if not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return float(task.values.sum())


def killed_always(task: Sum) -> float:
    os.kill(os.getpid(), signal.SIGKILL)
    return 0.0


def refused(task: int) -> int:
    if task == 2:
        raise UserError(f"task {task}: expected another")
    return task


def broken(task: int) -> int:
    return [1][task + 1]


def sums(place: Path, number: int, takes_s: float = 0.0) -> list[Sum]:
    """Return some tasks, the same each time."""
    rng = np.random.default_rng(1)
    return [Sum(rng.random(5), place, takes_s) for _ in range(number)]


def wait_until(true: Callable[[], bool], at_most_s: float = 120.0) -> None:
    end = time.monotonic() + at_most_s
    while not true():
        assert time.monotonic() < end
        time.sleep(0.1)


def threads(_: int) -> tuple[int, int, str]:
    """Return the threads of torch, numba and OpenMP."""
    import numba
    import torch

    return torch.get_num_threads(), int(numba.config.NUMBA_NUM_THREADS), os.environ["OMP_NUM_THREADS"]


def spins(_: int) -> str | None:
    """Return how often an OpenMP thread checks for work before it sleeps."""
    return os.environ.get("GOMP_SPINCOUNT")


def here(_: int) -> tuple[int, str, str]:
    """Return the process, its working directory, and the executor that its own tasks would use."""
    return os.getpid(), str(Path.cwd()), os.environ["PIPELINE_EXECUTOR"]


def surroundings(_: int) -> tuple[tuple[int, int, str], str | None, tuple[int, str, str]]:
    """Return the results of the three functions above from one worker, since starting a worker takes seconds."""
    return threads(_), spins(_), here(_)


NO_TOKEN = {"RAY_AUTH_MODE": "disabled"}  # with a token in one home, Ray refuses processes with another home


@contextmanager
def ray_cluster(place: Path, **more: str) -> Iterator[str]:
    """Provide the address of a Ray cluster of two cores; `more` is added to its environment."""
    with own_ports(1) as (port,):
        ray = [sys.executable, "-m", "ray.scripts.scripts"]
        words = ["start", "--head", "--block", f"--port={port}", "--num-cpus=2", "--node-ip-address=127.0.0.1"]
        words += ["--include-dashboard=false", f"--object-store-memory={100 << 20}", f"--temp-dir={place}/r"]
        said = place / "ray.log"
        with said.open("w") as out:
            head = subprocess.Popen(
                [*ray, *words], env={**os.environ, **more}, stdout=out, stderr=out, start_new_session=True
            )
        try:
            wait_until(lambda: "Ray runtime started" in said.read_text() or head.poll() is not None)
            assert head.poll() is None, said.read_text()
            yield f"127.0.0.1:{port}"
        finally:
            os.killpg(head.pid, 9)
            head.wait()
