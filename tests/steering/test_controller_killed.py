"""Killed at twenty random moments: no job is lost or held for ever, and no factor stays."""

import random
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from steered import Steered, killed, steered, until_free

from benchmarks.slurm.configuration import Cluster
from benchmarks.slurm.loopback import slurm, why_not

pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not())
SEED, CLUSTERS, KILLS, JOBS = 23, 4, 5, 4  # kills of each cluster, and jobs that come before each
KILLED = ("controller", "slurmctld", "slurmd", "both")
SAVED_S = 6.0  # in which slurmctld has saved what it was told; else it loses jobs by itself
LONG_S = 240.0
LIMITS_MIN = (60, 99)  # longer than this test may take: else what Slurm takes for running ends as TIMEOUT
# A job may still wait when all is done: Slurm drains nodes that it found at odds, and takes jobs for running whose end
# a killed server did not hear of. What a killed slurmd could not begin Slurm holds itself (`launch failed`).
KNOWN = {"COMPLETED", "COMPLETING", "RUNNING", "PENDING"}


def test_twenty_kills_lose_no_job_and_hold_none(tmp_path: Path) -> None:
    """The clusters play side by side, for most of it is waiting."""
    with ThreadPoolExecutor(CLUSTERS) as pool:
        played = list(pool.map(lambda number: _played(number, tmp_path / str(number)), range(CLUSTERS)))
    states = Counter(state for jobs, _ in played for state in jobs)
    assert states.total() == CLUSTERS * KILLS * JOBS
    assert set(states) <= KNOWN
    assert states["COMPLETED"] > CLUSTERS
    assert sum(factors for _, factors in played) > CLUSTERS * KILLS  # there was something to take back


def _played(number: int, folder: Path) -> tuple[list[str], int]:
    """Kill servers of one cluster again and again; return how its jobs stand, and how many factors were set then."""
    rng, jobs, factors = random.Random(SEED + number), list[str](), 0
    folder.mkdir()
    with slurm(Cluster()) as cluster, steered(cluster, folder / "steering") as one:
        one.steer()
        for _ in range(KILLS):
            one.until_steering(LONG_S)
            jobs += [_short(one, rng) for _ in range(JOBS)]
            time.sleep(SAVED_S + rng.uniform(0.0, 2.0))
            factors += len(one.in_order())
            _kill(one, rng.choice(KILLED), rng.uniform(0.0, 1.0))
            cluster.until(lambda: not one.held(), "no job that is held", LONG_S)
        one.until_steering(LONG_S)
        assert one.started[-1].poll() is None
        one.started[-1].terminate()
        one.ended(one.started[-1])
        assert not one.in_order()
        rows = cluster.jobs()
        return [rows.get(job, {}).get("JobState", "LOST") for job in jobs], factors


def _short(one: Steered, rng: random.Random) -> str:
    options = (f"--time={rng.randint(*LIMITS_MIN)}", f"--nodes={rng.randint(2, 4)}", "--exclusive")
    return one.slurm.submit(f"sleep {rng.randint(1, 2)}", *options)


def _kill(one: Steered, what: str, away_s: float) -> None:
    """Kill the controller, servers of Slurm, or both; what is Slurm's begins again a little later."""
    if what in ("controller", "both"):
        killed(one.started[-1])
    if what != "controller":
        words = one.slurm.kill("slurmd" if what == "slurmd" else "slurmctld")
        time.sleep(away_s)
        for server in words:
            one.slurm.begin(*server)
    if what in ("controller", "both"):
        one.slurm.until(lambda: one.answers() and not one.in_order(), "factors taken back", LONG_S)
        until_free(one.folder, LONG_S)
        one.steer()
