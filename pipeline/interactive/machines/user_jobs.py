"""A user's own jobs on the machines of a scenario: read from a job table, or from a log of any format.

Amounts of a table are units, counted in thousandths as everywhere. A job of a table that no machine could hold is
refused; those of a log are left out and counted, as for jobsets cut from one. Policies know what the scenario says: run
times, the users' estimates, or predictions learned from a log's own first jobs.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pandera.pandas as pa

from pipeline.core import storage
from pipeline.core.config import MachinePark, MachinesLog, MachinesScenario, Params, Sampled
from pipeline.core.logs.registry import read
from pipeline.core.logs.trace import MachineTable, Trace, holders, thousandths
from pipeline.core.logs.windows import periods
from pipeline.core.schemas.columns import above_zero, integers, numbers, table
from pipeline.core.types import ANY_KIND, THOUSANDTHS, IntArray
from pipeline.errors import UserError
from pipeline.interactive.scheduling.user_jobs import JobColumns, UserJobs, of_log
from pipeline.problems.machines.env.nouns import Jobs
from pipeline.problems.machines.env.storage import read_park
from pipeline.problems.machines.env.workload.park import grouped, kinds_at
from pipeline.problems.machines.env.workload.windows import what_policies_know
from pipeline.progress import ProgressCallback

LATEST, MOST_NODES, MOST_UNITS = 1e12, 1_000_000, 1e9


def user_job_columns(resources: Iterable[str]) -> dict[str, pa.Column]:
    """Return the columns of a job table; amounts of `resources` are units, on each of a job's nodes."""

    def up_to(most: float, column: pa.Column) -> pa.Column:
        column.checks = [*column.checks, pa.Check.le(most, error=f"at most {most:g}")]
        return column

    return {
        "arrival": up_to(LATEST, numbers(0.0)),
        **{name: up_to(LATEST, above_zero()) for name in ("duration", "estimate")},
        "nodes": integers(1, MOST_NODES),
        **{name: up_to(MOST_UNITS, numbers(0.0)) for name in resources},
    }


# What `schedule` writes, in the order of the job table; times are those of the jobs.
MEASURED = ("start", "finish", "wait", "slowdown", "bounded_slowdown")
SCHEDULE = table(
    "Schedule",
    {"jobset": pa.Column(), "job": pa.Column()}
    | {name: numbers(1.0 if "slowdown" in name else 0.0) for name in MEASURED}
    | {"machine": integers(0), "nodes": integers(1)},  # the first that it runs on, from 0, and how many in all
    ["jobset", "job"],
)


def park_of(params: Params, scenario: str) -> MachinePark:
    """Return the machines of a scenario; where they are drawn from a log's file, as `generate` drew them.

    Raises:
        UserError: they are drawn, and `generate` has not run yet.
    """
    row = params.machines_scenario(scenario)
    if isinstance(row.machines, Sampled):
        return read_park(storage.jobsets_folder(scenario))
    return grouped(row.machines, unit=1.0)


def job_columns(scenario: MachinesScenario, park: MachinePark) -> JobColumns[Jobs]:
    """Return how a user's jobs are read; a log of the format of the scenario's own, by the same settings."""

    def log(path: Path, format: str, on_progress: ProgressCallback) -> UserJobs[Jobs]:
        own, settings = scenario.workload, dict[str, Any]()
        if isinstance(own, MachinesLog) and own.format == format:
            settings = {"instances": own.instances, "per_node": own.per_node}
        return _of_log(read(path, format, on_progress, **settings), scenario, park, str(path))

    columns = user_job_columns(park.resources)
    return JobColumns(scenario.policies_know, columns, lambda frame, where: _of_table(frame, park, where), log)


def _of_table(frame: pd.DataFrame, park: MachinePark, where: str) -> Jobs:
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
        amounts = zip(park.resources, jobs.demand[job], strict=True)
        wants = ", ".join(f"{name} {amount / THOUSANDTHS:g}" for name, amount in amounts)
        raise UserError(
            f"{where}: job {frame['job'].iloc[job]} wants {wants} on {jobs.nodes[job]} machines at once; "
            f"{able[job]} of {len(park.kind)} can hold it"
        )
    return jobs


def _of_log(trace: Trace, scenario: MachinesScenario, park: MachinePark, where: str) -> UserJobs[Jobs]:
    lacking = [name for name in park.resources if name not in trace.resources]
    if lacking:
        raise UserError(
            f"{where}: the log has no resource '{lacking[0]}', which the scenario's machines have; "
            f"there are: {', '.join(trace.resources)}"
        )
    if scenario.policies_know == "estimates" and not trace.has_estimates:
        raise UserError(f"{where}: the log has no estimates (policies_know: estimates)")
    columns = [trace.resources.index(name) for name in park.resources]
    own = scenario.workload
    # The first jobs, from which predictions are learned; params.yaml's check allows them only for logs.
    learned = max(1, periods(len(trace.id), own)["train"][1]) if isinstance(own, MachinesLog) else 0
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
    ids, notes = trace.id[runs], trace.notes[1:]
    if len(np.unique(ids)) < len(ids):
        ids = np.arange(1, len(ids) + 1)
        notes.append("several jobs have the same name: they are numbered in order of arrival, from 1")
    if scenario.policies_know == "predictions":
        notes.append(f"run times are predicted from the first {learned:,} jobs: judge by the jobs after them")
    if not runs.all():
        notes.append(f"left out: {(~runs).sum():,} of {len(runs):,} jobs, which the scenario's machines could not run")
    return of_log(ids, Jobs._make(column[runs] for column in jobs), [f"{where}: {note}" for note in notes])


def _holders(jobs: Jobs, park: MachinePark) -> IntArray:
    machines = MachineTable(np.array(park.capacity, dtype=np.int64), np.array(park.kind), park.resources)
    return holders(machines, jobs.demand, jobs.kinds)
