"""Jobs of the comparison, and their files: the same for every simulator.

A queue's jobs are rigid: a job holds as many machines (of one processor) as it asks for. Sizes are powers of two up to
the cluster, all equally often; run times are log-normal, in whole seconds; arrivals are a Poisson process. Estimates
are exact. The load is low enough for a queue in strict order of arrival to be stable.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from pipeline.core.types import IntArray

MEDIAN_S, SPREAD, LONGEST_S = 20.0, 1.0, 500
LOAD = 0.45  # of the machines; strict order of arrival loses about half of them to large jobs that wait
FIELDS = 18  # of the Standard Workload Format


class QueueJobs(NamedTuple):
    """Jobs in order of arrival."""

    submit: IntArray  # [J]  s
    run: IntArray  # [J]  s
    size: IntArray  # [J]  machines


def draw(jobs: int, machines: int, serial: bool = False, seed: int = 1) -> QueueJobs:
    """Return the jobs of a queue.

    Args:
        jobs: their number.
        machines: of one processor each.
        serial: all jobs hold one machine, and the load is 90 %.
        seed: of the random numbers.
    """
    rng = np.random.default_rng([seed, machines])
    uniform, normal, gaps = rng.random(jobs), rng.standard_normal(jobs), rng.exponential(size=jobs)
    powers = np.zeros(1, np.int64) if serial else np.arange(int(np.log2(machines)) + 1)
    size = 2 ** powers[(uniform * len(powers)).astype(np.int64)]
    run = np.clip(np.rint(MEDIAN_S * np.exp(SPREAD * normal)), 1, LONGEST_S).astype(np.int64)
    mean_run = MEDIAN_S * np.exp(SPREAD**2 / 2)
    gap = (2.0**powers).mean() * mean_run / ((0.9 if serial else LOAD) * machines)
    return QueueJobs(np.floor(np.cumsum(gaps) * gap).astype(np.int64), run, size)


def write_swf(path: Path, jobs: QueueJobs, machines: int) -> None:
    """Write a queue in the Standard Workload Format, with tabs: one of the peers reads no other separator."""
    count = len(jobs.submit)
    rows = np.full((count, FIELDS), -1, np.int64)
    rows[:, 0], rows[:, 1], rows[:, 3] = np.arange(1, count + 1), jobs.submit, jobs.run
    rows[:, 4] = rows[:, 7] = jobs.size
    rows[:, 8] = jobs.run
    rows[:, 2] = 0
    rows[:, 10:16] = 1
    head = f"; MaxNodes: {machines}\n; MaxProcs: {machines}"
    np.savetxt(path, rows, fmt="%d", delimiter="\t", header=head, comments="")


def read_swf(path: Path) -> tuple[QueueJobs, int]:
    """Return a queue and its machines."""
    with path.open(encoding="utf-8") as lines:
        machines = int(next(lines).split(":")[1])
    rows = np.loadtxt(path, dtype=np.int64, comments=";", usecols=(1, 3, 4), ndmin=2)
    return QueueJobs(rows[:, 0], rows[:, 1], rows[:, 2]), machines
