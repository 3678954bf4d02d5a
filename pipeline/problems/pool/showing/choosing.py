"""Choose the one jobset to show: of the pipeline's own, by load and number, or of a user's table, by its id."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pipeline.core import KeyArray, keys
from pipeline.errors import UserError
from pipeline.problems.pool.nouns import Cluster, JobSet
from pipeline.problems.pool.scheduling.playing import PATIENCE
from pipeline.problems.pool.workload.job_table import JobTable
from pipeline.simulation.results import MOST_JOBSETS

MOST_NAMED = 12  # ids in a line of refusal


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


def test_jobset(
    jobsets: Mapping[int, Sequence[JobSet]], scenario: str, load: int | None, jobset: str | None, step_limit: int
) -> Chosen:
    """Return one of a scenario's test jobsets.

    Raises:
        UserError: there is no such load or jobset.
    """
    loads = ", ".join(str(known) for known in jobsets)
    if load is None and len(jobsets) > 1:
        raise UserError(f"scenario '{scenario}': choose a load by --load; there are: {loads}")
    at = next(iter(jobsets)) if load is None else load
    if at not in jobsets:
        raise UserError(f"scenario '{scenario}': unknown load {at}; there are: {loads}")
    count = len(jobsets[at])
    number = next((k for k in range(count) if str(k) == (jobset or "0")), None)
    if number is None:
        raise UserError(
            f"scenario '{scenario}', load {at}: unknown test jobset '{jobset}'; there are: 0 to {count - 1}"
        )
    jobs = jobsets[at][number]
    title = f"Scenario {scenario}, load {at} %, test jobset {number}: {len(jobs.arrival)} jobs"
    names = [str(job) for job in range(len(jobs.arrival))]
    return Chosen(title, jobs, names, at * MOST_JOBSETS + number, step_limit)


def user_jobset(table: JobTable, where: str, scenario: str, jobset: str | None) -> Chosen:
    """Return one jobset of a checked job table.

    Raises:
        UserError: there is no such jobset, or several and none is named.
    """
    _, first = np.unique(table.jobset, return_index=True)
    known = [str(table.ids["jobset"][int(row)].as_py()) for row in first]
    more = f" and {len(known) - MOST_NAMED} more" if len(known) > MOST_NAMED else ""
    there = f"there are: {', '.join(known[:MOST_NAMED])}{more}"
    if jobset is None and len(known) > 1:
        raise UserError(f"{where}: choose a jobset by --jobset; {there}")
    name = known[0] if jobset is None else jobset
    if name not in known:
        raise UserError(f"{where}: unknown jobset '{name}'; {there}")
    number = known.index(name)
    rows = np.flatnonzero(table.jobset == number)
    rows = rows[np.argsort(table.arrival[rows], kind="stable")]
    estimate = None if table.estimate is None else table.estimate[rows].astype(np.int64)
    arrival, duration, demand = (
        column[rows].astype(np.int64) for column in (table.arrival, table.duration, table.demand)
    )
    jobs = JobSet(arrival, duration, demand, estimate)
    title = f"{Path(where).name}, jobset {name}, on the cluster of scenario {scenario}: {len(rows)} jobs"
    return Chosen(title, jobs, [str(job) for job in table.ids["job"].take(rows).to_pylist()], number, None)
