"""Tasks for tests of the executor; of a module, so that every worker finds them."""

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
    """A sum to be made, and where a task notes that it was begun."""

    values: FloatArray
    notes: Path
    takes_s: float = 0.0


def total(task: Sum, factor: float = 1.0) -> FloatArray:
    """The cumulative sums, times a factor."""
    note(task.notes, "begun")
    time.sleep(task.takes_s)
    return np.asarray(np.cumsum(task.values) * factor)


def note(folder: Path, word: str) -> None:
    (folder / f"{word}-{os.getpid()}-{time.monotonic_ns()}").touch()


def count(folder: Path, word: str = "begun") -> int:
    return len(list(folder.glob(f"{word}-*")))


def killed_once(task: Sum) -> float:
    """Kill the worker, the first time that it is asked."""
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
    """Some tasks, the same each time."""
    rng = np.random.default_rng(1)
    return [Sum(rng.random(5), place, takes_s) for _ in range(number)]


def wait_until(true: Callable[[], bool], at_most_s: float = 120.0) -> None:
    end = time.monotonic() + at_most_s
    while not true():
        assert time.monotonic() < end
        time.sleep(0.1)


def threads(_: int) -> tuple[int, int, str]:
    """Of torch, numba and OpenMP."""
    import numba
    import torch

    return torch.get_num_threads(), int(numba.config.NUMBA_NUM_THREADS), os.environ["OMP_NUM_THREADS"]


def spins(_: int) -> str | None:
    """How often a thread of OpenMP looks before it sleeps."""
    return os.environ.get("GOMP_SPINCOUNT")


def here(_: int) -> tuple[int, str, str]:
    """The process, its working directory, and where it would send tasks of its own."""
    return os.getpid(), str(Path.cwd()), os.environ["PIPELINE_EXECUTOR"]


def surroundings(_: int) -> tuple[tuple[int, int, str], str | None, tuple[int, str, str]]:
    """Return the three above of one worker, since starting it takes seconds."""
    return threads(_), spins(_), here(_)


NO_TOKEN = {"RAY_AUTH_MODE": "disabled"}  # where a home has Ray's token, who has another home is refused


@contextmanager
def ray_cluster(place: Path, **more: str) -> Iterator[str]:
    """The address of a Ray cluster of two cores that runs by itself; `more` its environment has."""
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
