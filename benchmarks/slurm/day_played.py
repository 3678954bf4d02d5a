"""A busy day on a real slurmctld with a fast clock, in order of arrival or with the settings of site advice.

If the machine is too busy, a message between Slurm's servers can be lost. Slurm repeats it after up to an hour of the
fast clock, in which the nodes of a job that has ended stay idle. A run in which this happens is refused.
"""

import re
import time
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.slurm.accelerated import accelerated
from benchmarks.slurm.busy_day import MINUTE_S, BusyDay, nodes_of
from benchmarks.slurm.clock import BEGIN_S, FastClock
from benchmarks.slurm.configuration import Cluster
from benchmarks.slurm.loopback import LoopbackSlurm
from pipeline.errors import UserError

LEAD_S = 6.0  # real time in which the jobs that run at the beginning of the day are started before it
LOOKED_S = 0.5  # real time between two looks at the queue
DRAINED_S = 3_600.0  # real time in which all jobs of the day must start
RELEASED, MOST_RELEASE_S = re.compile(r"completion process took (\d+) seconds"), 600  # of the fast clock
ENDED, LIVE = ("COMPLETED", "TIMEOUT"), ("RUNNING", "COMPLETING", "PENDING")
UNTIL = 'sleep $(awk "BEGIN {{ left = {end:.3f} - $(date +%s.%N); print (left > 0 ? left : 0) }}")'


def played(day: BusyDay, cluster: Cluster, speed: float, settings: Path | None) -> pd.DataFrame:
    """Play a day until all its jobs have started, and return its jobs as Slurm ran them.

    Args:
        day: the day.
        cluster: the cluster, as large as the site's.
        speed: seconds of Slurm's clock in a real one.
        settings: a folder that `advise --slurm` wrote; None: order of arrival.

    Raises:
        UserError: Slurm does not start here, a job fails, or the machine is too busy.
    """
    with accelerated(cluster, speed, settings) as (slurm, clock):
        begin = time.time() + LEAD_S  # real time of the day's beginning
        numbers = [_submit(slurm, day, job, cluster, speed, begin) for job in range(day.running)]
        slurm.until(lambda: all(slurm.states().get(one) == "R" for one in numbers), "the first jobs to run", LEAD_S)
        for job in range(day.running, len(day.job)):
            time.sleep(max(0.0, begin + day.queue.submit[job] / speed - time.time()))
            if job >= day.wanted and not _waiting(slurm, numbers[: day.wanted]):
                break
            numbers.append(_submit(slurm, day, job, cluster, speed, begin))
        end = time.monotonic() + DRAINED_S
        while _waiting(slurm, numbers[: day.wanted]):
            if time.monotonic() > end:
                raise UserError(f"Slurm on loopback: expected all jobs to start within {DRAINED_S:g} s")
            time.sleep(LOOKED_S)
        _check_releases(slurm)
        return _outcomes(slurm, day, numbers, clock, begin)


def _check_releases(slurm: LoopbackSlurm) -> None:
    found = RELEASED.findall((slurm.folder / "slurmctld.log").read_text(errors="replace"))
    longest = max(map(int, found), default=0)
    if longest > MOST_RELEASE_S:
        what = f"expected that nodes are released within {MOST_RELEASE_S} s of the fast clock, found {longest} s"
        raise UserError(f"Slurm on loopback: {what}: this machine is too busy; run again, or with a lower --speed")


def _submit(slurm: LoopbackSlurm, day: BusyDay, job: int, cluster: Cluster, speed: float, begin: float) -> str:
    """Submit a job on as few nodes as hold it, all of whose processors it has if it needs several nodes.

    Those that run at the beginning of the day end by the clock, however early they have started.
    """
    limit, script = day.queue.limit[job], f"sleep {day.queue.run[job] / speed:.4f}"
    if job < day.running:
        limit, script = limit + LEAD_S * speed, UNTIL.format(end=begin + day.queue.run[job] / speed)
    minutes, cpus = int(np.ceil(limit / MINUTE_S)), day.queue.cpus[job : job + 1].astype(np.int64)
    size = (f"--nodes={nodes_of(cpus, cluster)[0]}", f"--ntasks={cpus[0]}", "--mem-per-cpu=1")
    return slurm.submit(script, f"--time={minutes}", *size, "--no-requeue")


def _waiting(slurm: LoopbackSlurm, numbers: list[str]) -> bool:
    states = slurm.states()
    return any(states.get(number) == "PD" for number in numbers)


def _outcomes(
    slurm: LoopbackSlurm, day: BusyDay, numbers: list[str], clock: FastClock, begin: float
) -> pd.DataFrame:  # fmt: skip
    found, zero, rows = slurm.jobs(SLURM_TIME_FORMAT="%s"), BEGIN_S + clock.shows(begin), []
    for place, number in enumerate(numbers):
        one = found[number]
        if one["JobState"] not in (*ENDED, *LIVE):
            raise UserError(f"Slurm on loopback: job {number}: expected {ENDED[0]}, found {one['JobState']}")
        if one["JobState"] == "PENDING":
            continue
        submit, start, end = (float(one[key]) - zero for key in ("SubmitTime", "StartTime", "EndTime"))
        rows.append((place, submit, start, end if one["JobState"] in ENDED else np.nan))
    return rows_of(day, pd.DataFrame(rows, columns=["place", "submit_s", "start_s", "end_s"]))


def rows_of(day: BusyDay, times: pd.DataFrame) -> pd.DataFrame:
    """Return the table of some jobs, by their places in the day, with their requests."""
    place = times["place"].to_numpy()
    columns = {"run_s": day.queue.run, "limit_s": day.queue.limit, "cpus": day.queue.cpus.astype(np.int64)}
    return pd.DataFrame(
        {"part": np.array(day.parts)[place], "job": day.job[place], "planned_s": day.queue.submit[place]}
        | {name: column[place] for name, column in columns.items()}
        | {name: times[name].to_numpy() for name in ("submit_s", "start_s", "end_s")}
    )
