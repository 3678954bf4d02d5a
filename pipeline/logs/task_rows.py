"""Logs whose rows are tasks of several like instances: Alibaba's, and what CloudSimPy made of one.

Times are in seconds. None of them says whose a task is, nor which machines there were.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple, get_args

import numpy as np
import pandas as pd

from pipeline.config import Instances
from pipeline.core import BoolArray, FloatArray
from pipeline.errors import UserError
from pipeline.logs.gathering import Facts, Part, in_order, jobs, repeated
from pipeline.logs.lines import CHUNK
from pipeline.logs.raw_tables import ALIBABA2017, ALIBABA2018, CLOUDSIMPY
from pipeline.logs.rows import Layout, rows
from pipeline.logs.trace import CORES, PERCENT, Sieve, Trace, thousandths
from pipeline.progress import ProgressCallback, no_progress

NO_SUBMIT, NO_RUN, BACKWARDS = "time of submission unknown", "run time unknown", "run time below 0"
NOT_DONE, BEFORE = "status other than Terminated", "created before the log begins"
NO_DEMAND, BELOW_0, NO_INSTANCES = "CPU or memory unknown", "CPU or memory below 0", "no instances"
CORE = 100.0  # what one core is in plan_cpu
FACTS = Facts(("cpu", "memory"), (CORES, PERCENT))


class Tasks(NamedTuple):
    """Some rows as tasks; nan = unknown."""

    submit_s: FloatArray  # [J]
    run_s: FloatArray  # [J]
    cpu: FloatArray  # [J]  cores
    memory: FloatArray  # [J]  percent of a machine
    instances: FloatArray  # [J]
    causes: Mapping[str, BoolArray]  # why rows are set aside, before what is wrong with their numbers


class TaskLog(NamedTuple):
    """A log of tasks: its columns, and how its rows are taken."""

    layout: Layout
    taken: Callable[[pd.DataFrame], Tasks]

    def read(
        self,
        path: Path,
        on_progress: ProgressCallback = no_progress,
        *,
        instances: Instances = "one",
        chunk: int = CHUNK,
    ) -> Trace:
        """Read it, plain or .gz; with instances "each", every instance is a job, under the number of its task's row.

        Raises:
            UserError: it cannot be read, a row is not a task's, or no job is left.
        """
        if instances not in get_args(Instances):
            raise UserError(f"{path}: instances: expected one of {', '.join(get_args(Instances))}, found '{instances}'")
        parts, sieve, seen, found = list[Part](), Sieve(), 0, 0
        for frame in rows(path, self.layout, on_progress, chunk):
            tasks = self.taken(frame)
            lines = frame.index.to_numpy()
            kept = sieve.keep(lines, {**tasks.causes, **_causes(tasks)})
            number = np.arange(seen + 1, seen + len(frame) + 1)
            demand = thousandths(np.column_stack([tasks.cpu[kept], tasks.memory[kept]]))
            part = jobs(number[kept], tasks.submit_s[kept], sieve.lasting(tasks.run_s[kept], lines[kept]), demand)
            if instances == "each":
                part = repeated(part, tasks.instances[kept].astype(np.int64), found, path)
            parts.append(part)
            seen, found = seen + len(frame), found + len(part.id)
        return in_order(parts, sieve, FACTS, seen, path)


def _causes(tasks: Tasks) -> dict[str, BoolArray]:
    return {
        NO_SUBMIT: np.isnan(tasks.submit_s),
        NO_RUN: np.isnan(tasks.run_s),
        BACKWARDS: tasks.run_s < 0,
        NO_DEMAND: np.isnan(tasks.cpu) | np.isnan(tasks.memory),
        BELOW_0: (tasks.cpu < 0) | (tasks.memory < 0),
        NO_INSTANCES: ~(tasks.instances >= 1),
    }


def _of_2018(frame: pd.DataFrame) -> Tasks:
    """Take rows of Alibaba's cluster-trace-v2018; plan_cpu is 100 for a core, plan_mem in percent of a machine.

    The log has no time of submission, and a task counts as submitted when it starts: so waits are unknown, and arrivals
    carry the delays of the log's own scheduler.
    """
    start = frame["start_time"].to_numpy()
    return Tasks(
        submit_s=start,
        run_s=frame["end_time"].to_numpy() - start,
        cpu=frame["plan_cpu"].to_numpy() / CORE,
        memory=frame["plan_mem"].to_numpy(),
        instances=frame["instance_num"].to_numpy(),
        causes={NOT_DONE: np.asarray(frame["status"].ne("Terminated"))},
    )


def _of_2017(frame: pd.DataFrame) -> Tasks:
    """Take rows of Alibaba's cluster-trace-v2017; plan_cpu is 100 for a core, as its values show, plan_mem a share.

    A time of 0 and less is before the log begins, and such a task is set aside, for nobody knows how long it ran. A
    task is submitted when it is created and ends when its row is modified last: its run time is all that lies between,
    so that waits are in it.
    """
    create = frame["create_timestamp"].to_numpy()
    return Tasks(
        submit_s=create,
        run_s=frame["modify_timestamp"].to_numpy() - create,
        cpu=frame["plan_cpu"].to_numpy() / CORE,
        memory=frame["plan_mem"].to_numpy() * 100,
        instances=frame["instance_num"].to_numpy(),
        causes={NOT_DONE: np.asarray(frame["status"].ne("Terminated")), BEFORE: create <= 0},
    )


def _of_cloudsimpy(frame: pd.DataFrame) -> Tasks:
    """Take rows of CloudSimPy's `jobs.csv`, most likely from Alibaba's log of 2017: cores, and shares of a machine.

    Disk is 0 throughout and is not read.
    """
    return Tasks(
        submit_s=frame["submit_time"].to_numpy(),
        run_s=frame["duration"].to_numpy(),
        cpu=frame["cpu"].to_numpy(),
        memory=frame["memory"].to_numpy() * 100,
        instances=frame["instances_num"].to_numpy(),
        causes={},
    )


# The batch tasks, `batch_task.csv`, of which the columns have no header; CloudSimPy's first line names its own.
OF_2018 = "task_name instance_num job_name task_type status start_time end_time plan_cpu plan_mem"
OF_2017 = "create_timestamp modify_timestamp job_id task_id instance_num status plan_cpu plan_mem"
TASK_LOGS = {
    "alibaba2018": TaskLog(Layout(ALIBABA2018, tuple(OF_2018.split())), _of_2018),
    "alibaba2017": TaskLog(Layout(ALIBABA2017, tuple(OF_2017.split())), _of_2017),
    "cloudsimpy": TaskLog(Layout(CLOUDSIMPY), _of_cloudsimpy),
}
