"""The one jobset to show, with what a policy must be given there; one of a user's table by its id."""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from pipeline.core import KeyArray, keys
from pipeline.problems.one_jobset import place_of
from pipeline.problems.pool.nouns import Cluster, JobSet
from pipeline.problems.pool.scheduling.playing import PATIENCE
from pipeline.problems.pool.workload.job_table import JobTable


class Chosen(NamedTuple):
    """A jobset, and what a policy must be given so that it does there what it does in the tables."""

    title: str
    jobs: JobSet
    names: list[str]  # [J]  of jobs
    number: int  # of its random draws
    step_limit: int | None  # None: as many steps as its jobs may take

    def key(self, seed: int) -> KeyArray:
        """Return its random key [1]."""
        return keys(seed, np.array([self.number]), np.array([0]))

    def limit(self, cluster: Cluster, masked: bool) -> int:
        """Return the step at which its episode is cut."""
        if self.step_limit is not None:
            return self.step_limit
        return int(self.jobs.arrival.max() + (1 if masked else PATIENCE) * self.jobs.duration.sum() + cluster.horizon)


def user_jobset(table: JobTable, where: str, scenario: str, jobset: str | None) -> Chosen:
    """Return one jobset of a checked job table.

    Raises:
        UserError: there is no such jobset, or several and none is named.
    """
    _, first = np.unique(table.jobset, return_index=True)
    known = [str(table.ids["jobset"][int(row)].as_py()) for row in first]
    number = place_of(known, where, jobset)
    name = known[number]
    rows = np.flatnonzero(table.jobset == number)
    rows = rows[np.argsort(table.arrival[rows], kind="stable")]
    estimate = None if table.estimate is None else table.estimate[rows].astype(np.int64)
    arrival, duration, demand = (
        column[rows].astype(np.int64) for column in (table.arrival, table.duration, table.demand)
    )
    jobs = JobSet(arrival, duration, demand, estimate)
    title = f"{Path(where).name}, jobset {name}, on the cluster of scenario {scenario}: {len(rows)} jobs"
    return Chosen(title, jobs, [str(job) for job in table.ids["job"].take(rows).to_pylist()], number, None)
