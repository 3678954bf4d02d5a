"""A user's own jobs on the machines of a scenario: read from a job table, or from a log of any format.

Amounts of a table are units, counted in thousandths as everywhere. A job of a table that no machine could hold is
refused; those of a log are left out and counted, as where jobsets are cut from one. Policies are told what the scenario
says: run times, the users' estimates, or predictions, which a log's own first jobs teach.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from pipeline import storage
from pipeline.config import MachinePark, MachinesLog, MachinesScenario, Params, Sampled
from pipeline.core import ANY_KIND, THOUSANDTHS, IntArray
from pipeline.errors import UserError
from pipeline.logs.registry import read
from pipeline.logs.trace import MachineTable, Trace, holders, thousandths
from pipeline.logs.user_files import log_format
from pipeline.logs.windows import periods
from pipeline.problems.machines.nouns import Jobs
from pipeline.problems.machines.storage import read_park
from pipeline.problems.machines.user_tables import OPTIONAL, user_jobs_schema
from pipeline.problems.machines.workload.park import grouped, kinds_at
from pipeline.problems.machines.workload.windows import what_policies_know
from pipeline.progress import ProgressCallback, progress, say
from pipeline.storage.files import check_table, line_of
from pipeline.storage.user_tables import as_told, user_table

IDS = ("jobset", "job")


class UserJobs(NamedTuple):
    """Jobs in the order in which they were read."""

    ids: pd.DataFrame  # jobset and job, as the user wrote them
    number: IntArray  # [J]  of each job's jobset, by first appearance
    jobs: Jobs  # all of them, of any jobset
    notes: Sequence[str] = ()  # for people

    @property
    def jobsets(self) -> list[str]:
        """Return the names of the jobsets, by their number."""
        return [str(name) for name in self.ids["jobset"].drop_duplicates()]

    def rows(self, number: int) -> IntArray:
        """Return the rows of a jobset's jobs in order of arrival; those of one time stay as they are."""
        mine = np.flatnonzero(self.number == number)
        return np.asarray(mine[np.argsort(self.jobs.arrival[mine], kind="stable")])

    def taken(self, rows: IntArray) -> Jobs:
        """Return the jobs of some rows."""
        return Jobs._make(column[rows] for column in self.jobs)


def park_of(params: Params, scenario: str) -> MachinePark:
    """Return the machines of a scenario; where they are drawn from a log's file, as `generate` drew them.

    Raises:
        UserError: they are drawn, and `generate` has not run yet.
    """
    row = params.machines_scenario(scenario)
    if isinstance(row.machines, Sampled):
        return read_park(storage.jobsets_folder(scenario))
    return grouped(row.machines, unit=1.0)


def read_user_jobs(path: Path, scenario: MachinesScenario, park: MachinePark) -> UserJobs:
    """Read a job table or a log, and say what became of it.

    Raises:
        UserError: it cannot be read, or its jobs do not go with the scenario.
    """
    with progress(f"read {path}, percent", 100, brief=True) as advance:
        format = log_format(path)
        if format is None:
            found = _of_table(*_whole(path, park, scenario, advance), park, str(path))
        else:
            found = _of_log(_trace(path, format, scenario, advance), scenario, park, str(path))
    for note in found.notes:
        say(note)
    return found


def _trace(path: Path, format: str, scenario: MachinesScenario, on_progress: ProgressCallback) -> Trace:
    """Read a log: by the settings of the scenario's own, if that is of the same format."""
    own = scenario.workload
    if isinstance(own, MachinesLog) and own.format == format:
        return read(path, format, on_progress, instances=own.instances, per_node=own.per_node)
    return read(path, format, on_progress)


def _whole(
    path: Path, park: MachinePark, scenario: MachinesScenario, on_progress: ProgressCallback
) -> tuple[pd.DataFrame, list[str]]:
    """Return a job table that keeps to its schema, as policies are told of it, and what there is to say."""
    chunks, seen = [], 0
    for frame, percent in user_table(path, IDS):
        chunks.append(frame)
        seen += len(frame)
        on_progress(percent, f"{seen:,} jobs")
    if not seen:
        raise UserError(f"{path}: expected jobs, found none")
    frame, notes = as_told(pd.concat(chunks), scenario.policies_know, str(path))
    schema = user_jobs_schema(park.resources, [name for name in OPTIONAL if name in frame])
    numbers = [name for name in schema.columns if name in frame and name not in IDS]
    read = frame.assign(**{name: _numbers(frame[name], f"{path}: {name}") for name in numbers})
    return check_table(read, schema, str(path)), notes


def _numbers(column: pd.Series, where: str) -> pd.Series:
    if column.dtype.kind in "Mmbc":  # pandas would make numbers of dates and of yes and no
        raise UserError(f"{where}: expected numbers, got {column.dtype}")
    read = pd.to_numeric(column, errors="coerce").astype("float64")
    whole = column.name == "nodes"
    wrong = np.flatnonzero(read.isna() | (whole & (read != np.floor(read))))
    if len(wrong):
        kind = "a whole number" if whole else "a number"
        raise UserError(
            f"{where}: expected {kind} in {line_of(where, column.index[wrong[0]])}, got {column.iloc[wrong[0]]!s}"
        )
    return read.astype("int64") if whole else read


def _of_table(frame: pd.DataFrame, notes: list[str], park: MachinePark, where: str) -> UserJobs:
    count, duration = len(frame), frame["duration"].to_numpy()
    jobs = Jobs(
        arrival=frame["arrival"].to_numpy(),
        duration=duration,
        estimate=frame["estimate"].to_numpy() if "estimate" in frame else duration,
        demand=thousandths(frame[list(park.resources)].to_numpy()),
        nodes=frame["nodes"].to_numpy() if "nodes" in frame else np.ones(count, dtype=np.int64),
        kinds=np.full(count, ANY_KIND),
    )
    able = _holders(jobs, park)
    homeless = np.flatnonzero(able < jobs.nodes)
    if len(homeless):
        job = homeless[0]
        wants = ", ".join(f"{name} {_units(jobs.demand[job, r])}" for r, name in enumerate(park.resources))
        raise UserError(
            f"{where}: job {frame['job'].iloc[job]} wants {wants} on {jobs.nodes[job]} machines at once; "
            f"{able[job]} of {len(park.kind)} can hold it"
        )
    ids = frame[["job"]].assign(jobset=frame.get("jobset", "0"))[list(IDS)]
    return UserJobs(ids.reset_index(drop=True), pd.factorize(ids["jobset"])[0], jobs, notes)


def _of_log(trace: Trace, scenario: MachinesScenario, park: MachinePark, where: str) -> UserJobs:
    lacking = [name for name in park.resources if name not in trace.resources]
    if lacking:
        raise UserError(
            f"{where}: the log has no resource '{lacking[0]}', which the scenario's machines have; "
            f"there are: {', '.join(trace.resources)}"
        )
    if scenario.policies_know == "estimates" and not trace.has_estimates:
        raise UserError(f"{where}: the log has no estimates (policies_know: estimates)")
    columns = [trace.resources.index(name) for name in park.resources]
    learned = _learned(trace, scenario)
    jobs = Jobs(
        arrival=trace.submit_s,
        duration=trace.run_s,
        estimate=what_policies_know(scenario, trace, np.arange(learned)),
        demand=np.ascontiguousarray(trace.demand[:, columns]),
        nodes=np.asarray(trace.nodes, dtype=np.int64),
        kinds=kinds_at(park, trace.kinds, trace.kind_names),
    )
    runs = _holders(jobs, park) >= jobs.nodes
    if not runs.any():
        raise UserError(f"{where}: none of its {len(runs):,} jobs could run on the scenario's machines")
    ids = pd.DataFrame({"jobset": 0, "job": trace.id[runs]})
    notes = trace.notes[1:]
    if ids["job"].duplicated().any():
        ids["job"] = np.arange(1, len(ids) + 1)
        notes.append("it names several jobs alike: they are numbered in order of arrival, from 1")
    if scenario.policies_know == "predictions":
        notes.append(f"run times are predicted as the first {learned:,} jobs teach: judge by the jobs behind them")
    if not runs.all():
        notes.append(f"left out: {(~runs).sum():,} of {len(runs):,} jobs, which the scenario's machines could not run")
    found = UserJobs(ids, np.zeros(len(ids), dtype=np.int64), Jobs._make(column[runs] for column in jobs))
    return found._replace(notes=[f"{where}: {note}" for note in notes])


def _learned(trace: Trace, scenario: MachinesScenario) -> int:
    """Return how many of a log's first jobs teach predictions."""
    own = scenario.workload
    if not isinstance(own, MachinesLog):  # params.yaml's check lets only logs be predicted
        return 0
    return max(1, periods(len(trace.id), own)["train"][1])


def _holders(jobs: Jobs, park: MachinePark) -> IntArray:
    machines = MachineTable(np.array(park.capacity, dtype=np.int64), np.array(park.kind), park.resources)
    return holders(machines, jobs.demand, jobs.kinds)


def _units(amount: int) -> str:
    return f"{amount / THOUSANDTHS:g}"
