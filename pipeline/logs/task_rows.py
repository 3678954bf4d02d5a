"""Logs whose rows are tasks; those of Alibaba and CloudSimPy have several equal instances.

Times are in seconds. Neither log has users or machines.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple, get_args

import numpy as np
import pandas as pd

from pipeline.config import Instances
from pipeline.core import ANY_KIND, BoolArray, FloatArray, KeyArray
from pipeline.errors import UserError
from pipeline.logs.lines import CHUNK
from pipeline.logs.rows import Layout, rows, schema
from pipeline.logs.trace import CORES, PERCENT, Facts, Part, Sieve, Trace, in_order, jobs, thousandths
from pipeline.progress import ProgressCallback, no_progress

NO_SUBMIT, NO_RUN, BACKWARDS = "time of submission unknown", "run time unknown", "run time below 0"
NOT_DONE, BEFORE = "status other than Terminated", "created before the log begins"
NO_DEMAND, BELOW_0, NO_INSTANCES = "CPU or memory unknown", "CPU or memory below 0", "no instances"
CORE = 100.0  # plan_cpu of one core
MOST_JOBS = 50_000_000  # some 4 GiB
FACTS = Facts(("cpu", "memory"), (CORES, PERCENT))


class Tasks(NamedTuple):
    """Some rows as tasks; nan = unknown."""

    submit_s: FloatArray  # [J]
    run_s: FloatArray  # [J]
    amount: FloatArray  # [J, R]  in the units of the log's resources
    causes: Mapping[str, BoolArray]  # reasons to drop rows, in the order of reports
    wait_s: FloatArray | float = np.nan  # [J]
    kinds: KeyArray | np.uint64 = ANY_KIND  # [J]
    instances: FloatArray | None = None  # [J]  each a job; None: a task is one job


Taken = Callable[[pd.DataFrame], Tasks]


def read_tasks(
    path: Path, layout: Layout, taken: Taken, facts: Facts, on_progress: ProgressCallback, chunk: int
) -> Trace:
    """Read a log whose rows are tasks, numbered by row.

    Raises:
        UserError: it cannot be read, has an invalid row or too many instances, or no job is left.
    """
    parts, sieve, seen, found = list[Part](), Sieve(), 0, 0
    for frame in rows(path, layout, on_progress, chunk):
        tasks, lines = taken(frame), frame.index.to_numpy()
        kept = sieve.keep(lines, tasks.causes)
        number, amount = np.arange(seen + 1, seen + len(frame) + 1), np.where(kept[:, None], tasks.amount, 0.0)
        every = jobs(number, tasks.submit_s, tasks.run_s, thousandths(amount), wait_s=tasks.wait_s, kinds=tasks.kinds)
        part = Part._make(column[kept] for column in every)
        lasting = sieve.lasting(part.run_s, lines[kept])
        part = part._replace(run_s=lasting, estimate_s=lasting)
        if tasks.instances is not None:
            instances = tasks.instances[kept].astype(np.int64)
            if found + int(instances.sum()) > MOST_JOBS:
                raise UserError(f"{path}: expected at most {MOST_JOBS:,} instances, found more: read one job a task")
            part = Part._make(np.repeat(column, instances, axis=0) for column in part)
        parts.append(part)
        seen, found = seen + len(frame), found + len(part.id)
    return in_order(parts, sieve, facts, seen, path)


class TaskLog(NamedTuple):
    """A log of tasks with instances: its columns, and the conversion of its rows."""

    layout: Layout
    taken: Taken

    def read(
        self,
        path: Path,
        on_progress: ProgressCallback = no_progress,
        *,
        instances: Instances = "one",
        chunk: int = CHUNK,
    ) -> Trace:
        """Read it, plain or .gz; with instances "each", every instance is a job."""
        if instances not in get_args(Instances):
            raise UserError(f"{path}: instances: expected one of {', '.join(get_args(Instances))}, found '{instances}'")

        def taken(frame: pd.DataFrame) -> Tasks:
            tasks = self.taken(frame)
            return tasks if instances == "each" else tasks._replace(instances=None)

        return read_tasks(path, self.layout, taken, FACTS, on_progress, chunk)


def _tasks(
    submit: pd.Series,
    run: pd.Series,
    amounts: tuple[pd.Series, pd.Series],
    instances: pd.Series,
    causes: Mapping[str, pd.Series] = MappingProxyType({}),
) -> Tasks:
    """Return rows as tasks; amounts are cores, and percent of a machine's memory."""
    amount = np.column_stack(amounts)
    numbers = {
        NO_SUBMIT: submit.isna(),
        NO_RUN: run.isna(),
        BACKWARDS: run < 0,
        NO_DEMAND: np.isnan(amount).any(axis=1),
        BELOW_0: (amount < 0).any(axis=1),
        NO_INSTANCES: ~(instances >= 1),
    }
    every = {reason: np.asarray(wrong) for reason, wrong in {**causes, **numbers}.items()}
    return Tasks(submit.to_numpy(), run.to_numpy(), amount, every, instances=instances.to_numpy())


def _of_2018(frame: pd.DataFrame) -> Tasks:
    """Convert rows of Alibaba's cluster-trace-v2018; plan_cpu is 100 for a core, plan_mem in percent of a machine.

    The log has no submission times. A task counts as submitted when it starts: waits are unknown, and arrivals include
    the delays of the log's own scheduler.
    """
    start, run = frame["start_time"], frame["end_time"] - frame["start_time"]
    amounts = frame["plan_cpu"] / CORE, frame["plan_mem"]
    return _tasks(start, run, amounts, frame["instance_num"], {NOT_DONE: frame["status"].ne("Terminated")})


def _of_2017(frame: pd.DataFrame) -> Tasks:
    """Convert rows of Alibaba's cluster-trace-v2017; plan_cpu is 100 for a core, as its values show, plan_mem a share.

    Times up to 0 are before the log, and such a task is dropped, because its run time is unknown. A task is submitted
    at its creation and ends at the last change of its row, so that its run time includes its wait.
    """
    create, run = frame["create_timestamp"], frame["modify_timestamp"] - frame["create_timestamp"]
    amounts = frame["plan_cpu"] / CORE, frame["plan_mem"] * 100
    causes = {NOT_DONE: frame["status"].ne("Terminated"), BEFORE: create <= 0}
    return _tasks(create, run, amounts, frame["instance_num"], causes)


def _of_cloudsimpy(frame: pd.DataFrame) -> Tasks:
    """Convert rows of CloudSimPy's `jobs.csv`, most likely from Alibaba's log of 2017: cores, shares of a machine."""
    amounts = frame["cpu"], frame["memory"] * 100
    return _tasks(frame["submit_time"], frame["duration"], amounts, frame["instances_num"])


# The batch tasks, `batch_task.csv`, of which the columns have no header; CloudSimPy's first line names its own.
OF_2018 = "task_name instance_num job_name task_type status start_time end_time plan_cpu plan_mem"
OF_2017 = "create_timestamp modify_timestamp job_id task_id instance_num status plan_cpu plan_mem"
AMOUNTS = "instance_num plan_cpu plan_mem"
ALIBABA2018 = schema("alibaba2018", times="start_time end_time", amounts=AMOUNTS, words="status")
ALIBABA2017 = schema("alibaba2017", times="create_timestamp modify_timestamp", amounts=AMOUNTS, words="status")
CLOUDSIMPY = schema("cloudsimpy", times="submit_time duration", amounts="cpu memory instances_num")
TASK_LOGS = {
    "alibaba2018": TaskLog(Layout(ALIBABA2018, tuple(OF_2018.split())), _of_2018),
    "alibaba2017": TaskLog(Layout(ALIBABA2017, tuple(OF_2017.split())), _of_2017),
    "cloudsimpy": TaskLog(Layout(CLOUDSIMPY), _of_cloudsimpy),
}
