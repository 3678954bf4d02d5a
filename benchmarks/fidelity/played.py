"""Plays on a real Slurm: jobs are submitted on arrival, and ordered by `--nice`, which they have from submission on.

Each order has its own cluster. All clusters run at the same time, because jobs that sleep use no processor.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack

import numpy as np
import pandas as pd

from benchmarks.fidelity.jobs import ORDERS, ShortJobs, are_short
from benchmarks.slurm.configuration import Cluster
from benchmarks.slurm.loopback import LoopbackSlurm, slurm
from pipeline.core.types import FloatArray
from pipeline.errors import UserError
from pipeline.progress import ProgressCallback

FIRST = 10_000  # more than any rank: `--nice` is rank - FIRST; if it were positive, Slurm would treat all jobs equally
PATIENCE = 10.0  # limit on the duration of a play, in multiples of the sum of its jobs' run times


def plays(
    jobs: ShortJobs, orders: tuple[str, ...], repeats: int, cluster: Cluster, on_progress: ProgressCallback
) -> pd.DataFrame:
    """Return the table PLAYS: what Slurm on loopback did with the jobs, on one cluster per order."""
    parts = []
    with ExitStack() as running:
        slurms = {order: running.enter_context(slurm(cluster)) for order in orders}
        for repeat in range(repeats):
            on_progress(repeat, f"repeat {repeat + 1}")
            parts += [part.assign(repeat=repeat) for part in _play(jobs, slurms, cluster)]
        on_progress(repeats, "")
    return pd.concat(parts, ignore_index=True)


def _play(jobs: ShortJobs, slurms: Mapping[str, LoopbackSlurm], cluster: Cluster) -> Iterator[pd.DataFrame]:
    nice, short = {order: ORDERS[order](jobs) - FIRST for order in slurms}, are_short(jobs, cluster)
    numbers: dict[str, list[str]] = {order: [] for order in slurms}
    begun, began_s = time.monotonic(), time.time()
    for job, arrival in enumerate(jobs.arrival_s):
        time.sleep(max(0.0, begun + arrival - time.monotonic()))
        for order, one in slurms.items():
            numbers[order].append(submitted(one, jobs, job, int(nice[order][job]), short[job]))
    for order, one in slurms.items():
        await_end(one, order, PATIENCE * float(jobs.run_s.sum()))
        yield told(one, numbers[order], jobs, began_s).assign(order=order)


def await_end(slurm: LoopbackSlurm, order: str, at_most_s: float) -> None:
    """Wait until a cluster has no jobs."""
    slurm.until(lambda: not slurm.states(), f"the jobs of {order} to end", at_most_s)


def submitted(slurm: LoopbackSlurm, jobs: ShortJobs, job: int, nice: int, short: bool = False) -> str:
    """Submit a job, and return its number."""
    options = (
        f"--time={jobs.limit_min[job]}",
        f"--nodes={jobs.nodes[job]}",
        "--ntasks-per-node=1",
        f"--cpus-per-task={jobs.cpus[job]}",
        "--mem=1",
        f"--nice={nice}",
        f"--partition={'short' if short else 'work'}",
    )
    return slurm.submit(f"sleep {jobs.run_s[job]}", *options)


def told(slurm: LoopbackSlurm, numbers: list[str], jobs: ShortJobs, began_s: float) -> pd.DataFrame:
    """Return when Slurm submitted, started and ended the jobs.

    Raises:
        UserError: a job did not complete.
    """
    found = slurm.jobs(SLURM_TIME_FORMAT="%s")
    for number in numbers:
        if (state := found[number]["JobState"]) != "COMPLETED":
            raise UserError(f"a Slurm on loopback: job {number}: expected COMPLETED, found {state}")

    def moments(field: str) -> FloatArray:
        return np.array([float(found[number][field]) for number in numbers]) - float(int(began_s))

    columns = jobs._asdict() | {
        name: moments(field)
        for name, field in (("submit_s", "SubmitTime"), ("start_s", "StartTime"), ("end_s", "EndTime"))
    }
    return pd.DataFrame({"job": np.arange(len(numbers)), **columns})
