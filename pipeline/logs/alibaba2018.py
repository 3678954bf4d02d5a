"""Alibaba's cluster-trace-v2018: the batch tasks, `batch_task.csv`.

The nine columns have no header. Times are in seconds, a plan_cpu of 100 is one core, plan_mem is in percent of a
machine. The log has no time of submission, and a task counts as submitted when it starts: so waits are unknown, and
arrivals carry the delays of the log's own scheduler. It does not say which machines there were, nor whose a task is.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from pipeline.config import Instances
from pipeline.logs.lines import CHUNK
from pipeline.logs.raw_tables import ALIBABA2018
from pipeline.logs.rows import Layout
from pipeline.logs.task_rows import Tasks, read_tasks
from pipeline.logs.trace import Trace
from pipeline.progress import ProgressCallback, no_progress

NAMES = "task_name instance_num job_name task_type status start_time end_time plan_cpu plan_mem"
LAYOUT = Layout(ALIBABA2018, tuple(NAMES.split()))
NOT_DONE = "status other than Terminated"
CORE = 100.0  # what one core is in plan_cpu


def read(
    path: Path, on_progress: ProgressCallback = no_progress, *, instances: Instances = "one", chunk: int = CHUNK
) -> Trace:
    """Read the batch tasks of the log, plain or .gz."""
    return read_tasks(path, LAYOUT, _tasks, on_progress, instances, chunk)


def _tasks(frame: pd.DataFrame) -> Tasks:
    start = frame["start_time"].to_numpy()
    return Tasks(
        submit_s=start,
        run_s=frame["end_time"].to_numpy() - start,
        cpu=frame["plan_cpu"].to_numpy() / CORE,
        memory=frame["plan_mem"].to_numpy(),
        instances=frame["instance_num"].to_numpy(),
        causes={NOT_DONE: np.asarray(frame["status"].ne("Terminated"))},
    )
