"""Alibaba's cluster-trace-v2017: the batch tasks, `batch_task.csv`.

The eight columns have no header. Times are in seconds; 0 and less is before the log begins, and such a task is set
aside, for nobody knows how long it ran. plan_cpu is 100 for one core, as its values show; plan_mem is a share of a
machine, here in percent. A task is submitted when it is created and ends when its row is modified last: its run time
is all that lies between, so that waits are in it. The log does not say whose a task is.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from pipeline.config import Instances
from pipeline.logs.lines import CHUNK
from pipeline.logs.raw_tables import ALIBABA2017
from pipeline.logs.rows import Layout
from pipeline.logs.task_rows import Tasks, read_tasks
from pipeline.logs.trace import Trace
from pipeline.progress import ProgressCallback, no_progress

NAMES = "create_timestamp modify_timestamp job_id task_id instance_num status plan_cpu plan_mem"
LAYOUT = Layout(ALIBABA2017, tuple(NAMES.split()))
NOT_DONE, BEFORE = "status other than Terminated", "created before the log begins"
CORE = 100.0  # what one core is in plan_cpu


def read(
    path: Path, on_progress: ProgressCallback = no_progress, *, instances: Instances = "one", chunk: int = CHUNK
) -> Trace:
    """Read the batch tasks of the log, plain or .gz."""
    return read_tasks(path, LAYOUT, _tasks, on_progress, instances, chunk)


def _tasks(frame: pd.DataFrame) -> Tasks:
    create = frame["create_timestamp"].to_numpy()
    return Tasks(
        submit_s=create,
        run_s=frame["modify_timestamp"].to_numpy() - create,
        cpu=frame["plan_cpu"].to_numpy() / CORE,
        memory=frame["plan_mem"].to_numpy() * 100,
        instances=frame["instance_num"].to_numpy(),
        causes={NOT_DONE: np.asarray(frame["status"].ne("Terminated")), BEFORE: create <= 0},
    )
