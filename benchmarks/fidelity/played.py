"""Plays on a real Slurm cluster: jobs are submitted on arrival, and ordered by their `--nice` from submission on.

Each order has its own cluster. All clusters run at the same time, because jobs that sleep use no processor.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager

import numpy as np
import pandas as pd

from benchmarks.fidelity.jobs import ORDERS, USERS, ShortJobs, are_short
from benchmarks.fidelity.simulated import HALF_LIFE_S
from benchmarks.slurm.accelerated import accelerated
from benchmarks.slurm.clock import BEGIN_S, FastClock
from benchmarks.slurm.configuration import Cluster
from benchmarks.slurm.loopback import LoopbackSlurm, slurm
from pipeline.core.types import FloatArray
from pipeline.errors import UserError
from pipeline.progress import ProgressCallback

FIRST = 10_000  # more than any rank: `--nice` is rank - FIRST; if it were positive, Slurm would treat all jobs equally
ACCOUNTS, SACCTMGR = tuple(f"user{k}" for k in range(len(USERS))), ("sacctmgr", "--immediate", "--quiet")
PATIENCE = 10.0  # limit on the duration of a play, in multiples of the sum of its jobs' run times


def plays(
    jobs: ShortJobs, orders: tuple[str, ...], repeats: int, cluster: Cluster, on_progress: ProgressCallback
) -> pd.DataFrame:
    """Return the table PLAYS: what Slurm on loopback did with the jobs, on one cluster per order."""
    parts = []
    with ExitStack() as running:
        slurms = {order: running.enter_context(_started(cluster)) for order in orders}
        for repeat in range(repeats):
            on_progress(repeat, f"repeat {repeat + 1}")
            parts += [part.assign(repeat=repeat) for part in _play(jobs, slurms, cluster)]
        on_progress(repeats, "")
    return pd.concat(parts, ignore_index=True)


@contextmanager
def _started(cluster: Cluster) -> Iterator[tuple[LoopbackSlurm, FastClock | None]]:
    """Start a cluster; with fair-share, it has an account for each user, next to root's own."""
    if not cluster.fair_share:
        with slurm(cluster) as found:
            yield found, None
        return
    hours, rest = divmod(int(HALF_LIFE_S), 3600)
    more = {"PriorityType": "priority/multifactor", "PriorityWeightFairShare": str(cluster.fair_share)}
    more |= {"PriorityCalcPeriod": "1", "PriorityDecayHalfLife": f"{hours}:{rest // 60:02}:00"}
    with accelerated(cluster, cluster.speed, None, more) as (found, clock):
        for account in ACCOUNTS:
            found.ask(*SACCTMGR, "add", "account", account)
            found.ask(*SACCTMGR, "add", "user", "root", f"account={account}")
        yield found, clock


def _play(
    jobs: ShortJobs, slurms: Mapping[str, tuple[LoopbackSlurm, FastClock | None]], cluster: Cluster
) -> Iterator[pd.DataFrame]:
    for one, _ in slurms.values():
        for account in ACCOUNTS if cluster.fair_share else ():
            one.ask(*SACCTMGR, "modify", "account", account, "set", "RawUsage=0")
    nice, short = {order: ORDERS[order](jobs) - FIRST for order in slurms}, are_short(jobs, cluster)
    numbers: dict[str, list[str]] = {order: [] for order in slurms}
    begun, began_s = time.monotonic(), time.time()
    for job, arrival in enumerate(jobs.arrival_s):
        time.sleep(max(0.0, begun + arrival / cluster.speed - time.monotonic()))
        for order, (one, _) in slurms.items():
            numbers[order].append(submitted(one, jobs, job, int(nice[order][job]), cluster, short[job]))
    for order, (one, clock) in slurms.items():
        await_end(one, order, PATIENCE * float(jobs.run_s.sum()) / cluster.speed)
        zero = BEGIN_S + clock.shows(began_s) if clock else float(int(began_s))
        yield told(one, numbers[order], jobs, zero).assign(order=order)


def await_end(slurm: LoopbackSlurm, order: str, at_most_s: float) -> None:
    """Wait until a cluster has no jobs."""
    slurm.until(lambda: not slurm.states(), f"the jobs of {order} to end", at_most_s)


def submitted(slurm: LoopbackSlurm, jobs: ShortJobs, job: int, nice: int, cluster: Cluster, short: bool = False) -> str:
    """Submit a job, and return its number."""
    options = (
        f"--time={jobs.limit_min[job]}",
        f"--nodes={jobs.nodes[job]}",
        "--ntasks-per-node=1",
        f"--cpus-per-task={jobs.cpus[job]}",
        "--mem=1",
        f"--nice={nice}",
        f"--partition={'short' if short else 'work'}",
        *([f"--account={ACCOUNTS[jobs.user[job]]}"] if cluster.fair_share else []),
    )
    return slurm.submit(f"sleep {jobs.run_s[job] / cluster.speed:g}", *options)


def told(slurm: LoopbackSlurm, numbers: list[str], jobs: ShortJobs, zero: float) -> pd.DataFrame:
    """Return when Slurm submitted, started and ended the jobs, from a time of its clock on.

    Raises:
        UserError: a job did not complete.
    """
    found = slurm.jobs(SLURM_TIME_FORMAT="%s")
    for number in numbers:
        if (state := found[number]["JobState"]) != "COMPLETED":
            raise UserError(f"Slurm on loopback: job {number}: expected COMPLETED, found {state}")

    def moments(field: str) -> FloatArray:
        return np.array([float(found[number][field]) for number in numbers]) - zero

    columns = jobs._asdict() | {
        name: moments(field)
        for name, field in (("submit_s", "SubmitTime"), ("start_s", "StartTime"), ("end_s", "EndTime"))
    }
    return pd.DataFrame({"job": np.arange(len(numbers)), **columns})
