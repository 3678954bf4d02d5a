"""Jobs among the rows of accounting, with arrival and run time, and the reasons for dropping other rows.

- A job is a run: machines were held from Start to End. Each run of a requeued job is a job.
- It arrives when it may start: at Submit, or at Eligible if that is later (dependencies, begin times, holds).
- Its run time is ElapsedRaw if known, which clock changes do not affect; Slurm counts whole seconds.
- No limit counts as a year, as in Slurm's own backfill (22.05 then writes 525600 as the limit).
"""

from collections.abc import Sequence
from sys import intern

import numpy as np
import pandas as pd
import pandera.pandas as pa

from pipeline.accounting import fields
from pipeline.core.logs.trace import Sieve
from pipeline.core.schemas.columns import above_zero, integers, numbers, table
from pipeline.core.storage.files import check_table

YEAR = 365 * 86400.0  # s
COMPLETED = "COMPLETED"
RUN_AGAIN = ("PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "PREEMPTED", "NODE_FAIL", "RESIZING")
SAME_TIME = 1.0  # s: a requeued job is submitted again when its run ends


JOBS = table(
    "AccountedJobs",
    {
        **{name: pa.Column(str) for name in ("job", "user", "account", "partition", "qos", "state")},
        "arrival": numbers(0.0),  # s since 1970
        "start": numbers(0.0),
        "duration": above_zero(),  # s
        "limit": above_zero(),  # s
        "cpus": above_zero(),  # on all nodes of the job, like the next two
        "memory": numbers(0.0),  # GiB
        "gpus": numbers(0.0),
        "nodes": integers(1),
    },
    unique=["job"],
)


MORE = ("submit", "end", "listed", "cluster")


def jobs_among(records: pd.DataFrame, sieve: Sieve, cluster: str | None = None) -> pd.DataFrame:
    """Return the rows that are jobs, of one cluster if given, with the columns of JOBS (names may repeat) and MORE."""
    start, end, elapsed = (records[name].to_numpy() for name in ("start", "end", "elapsed"))
    known = ~np.isnan(elapsed)
    causes = {
        "a job of another cluster": ((records["cluster"] != cluster) & (cluster is not None)).to_numpy(),
        "a step of a job": records["step"].to_numpy(),
        "waiting or running when the dump was made": records["state"].isin(fields.NOT_ENDED).to_numpy(),
        "ended before it started, as when cancelled": np.isnan(start) | ~records["placed"].to_numpy(),
        "no time of its end": np.isnan(end),
        "no time of submission (old versions of jobcomp/filetxt write none)": np.isnan(records["submit"].to_numpy()),
        "no CPUs": ~(records["cpus"].to_numpy() > 0),
        "ended before it started by the clock, and no ElapsedRaw": (end < start) & ~known,
    }
    kept = sieve.keep(records.index.to_numpy(), causes)
    return _fixed(records[kept], sieve)


def _fixed(jobs: pd.DataFrame, sieve: Sieve) -> pd.DataFrame:
    submit, start, limit, elapsed, cpus = (
        jobs[name].to_numpy() for name in ("submit", "start", "limit", "elapsed", "cpus")
    )
    span = jobs["end"].to_numpy() - start
    run = np.where(np.isnan(elapsed), span, elapsed)
    eligible = np.fmax(submit, jobs["eligible"].to_numpy())
    nodes, memory = jobs["nodes"].to_numpy(), jobs["memory"].to_numpy()
    endless, limitless, changed = limit >= YEAR, ~(limit > 0), np.abs(span - run) > SAME_TIME
    causes = {
        "task of an array: a job of its own": jobs["array"].to_numpy(),
        "part of a heterogeneous job: a job of its own": jobs["het"].to_numpy(),
        "End less Start is not ElapsedRaw (clock changed, or suspended): ElapsedRaw taken": changed,
        "ran less than a second: 1 s taken": run == 0,
        "eligible after its submission (dependency, begin time, hold): arrives when eligible": eligible > submit,
        "started before it could: arrives when it started": eligible > start,
        f"time limit without end: {YEAR / 86400:.0f} days taken, as backfill does": endless,
        f"time limit unknown: {YEAR / 86400:.0f} days taken": limitless,
        "number of nodes unknown: 1 taken": ~(nodes >= 1),
        "memory unknown: holds none": ~(memory > 0),
        "CPUs are no multiple of nodes: each node holds the mean": cpus % np.fmax(nodes, 1) > 0,
    }
    sieve.repair_each(jobs.index.to_numpy(), causes)
    fixed = jobs.assign(
        arrival=np.minimum(eligible, start),
        duration=np.fmax(run, 1.0),
        limit=np.where(endless | limitless, YEAR, limit),
        memory=np.nan_to_num(memory),
        gpus=np.nan_to_num(jobs["gpus"].to_numpy()),
        nodes=np.fmax(nodes, 1).astype(np.int64),
    )
    words = {name: fixed[name].map(intern) for name in ("user", "account", "partition", "qos", "cluster", "state")}
    return fixed.assign(**words)[[*JOBS.columns, *MORE]]  # only these columns: a log may have many millions of jobs


def one_by_one(jobs: pd.DataFrame, sieves: Sequence[Sieve]) -> pd.DataFrame:
    """Return jobs in order of arrival, each run once, with unique names.

    `jobs` come from all dumps: the column `file` is the number of the dump's sieve, the index is the line in the dump.
    """
    again = jobs.duplicated(["job", "listed", "submit", "start", "end"]).to_numpy()
    lines, files = jobs.index.to_numpy(), jobs["file"].to_numpy()
    for file, sieve in enumerate(sieves):
        sieve.keep(lines[files == file], {"the same run again, as in dumps that overlap": again[files == file]})
    jobs = jobs[~again]
    several = jobs.groupby("job")["listed"].transform("nunique") > 1  # array tasks with the array's number
    jobs = jobs.assign(job=jobs["listed"].where(several, jobs["job"])).sort_values(["job", "start"], kind="stable")
    number = np.asarray(jobs.groupby("job").cumcount(), dtype=np.int64)
    ended, state = jobs["end"].shift().to_numpy(), jobs["state"].shift()
    rerun = state.isin(RUN_AGAIN).to_numpy() | (np.abs(jobs["submit"].to_numpy() - ended) <= SAME_TIME)
    causes = {"ran again after a requeue: each run is a job": rerun, "id given again: another job": ~rerun}
    for file, sieve in enumerate(sieves):
        mine = (jobs["file"] == file).to_numpy() & (number > 0)
        sieve.repair_each(jobs.index.to_numpy(), {why: mine & found for why, found in causes.items()})
    names = [f"{job}-{run + 1}" if run else job for job, run in zip(jobs["job"], number, strict=True)]
    jobs = jobs.assign(job=names).sort_values("arrival", kind="stable")
    return check_table(jobs[list(JOBS.columns)].reset_index(drop=True), JOBS, "jobs")
