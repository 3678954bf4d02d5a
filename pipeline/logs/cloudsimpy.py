"""CloudSimPy's `jobs.csv`: tasks of several like instances, most likely from Alibaba's log of 2017.

The first line names the columns. Times are in seconds, cpu is in cores, memory is a share of a machine, here in
percent. Disk is 0 throughout and is not read. The log does not say whose a task is, nor which machines there were.
"""

from pathlib import Path

import pandas as pd

from pipeline.config import Instances
from pipeline.logs.lines import CHUNK
from pipeline.logs.raw_tables import CLOUDSIMPY
from pipeline.logs.rows import Layout
from pipeline.logs.task_rows import Tasks, read_tasks
from pipeline.logs.trace import Trace
from pipeline.progress import ProgressCallback, no_progress

LAYOUT = Layout(CLOUDSIMPY)


def read(
    path: Path, on_progress: ProgressCallback = no_progress, *, instances: Instances = "one", chunk: int = CHUNK
) -> Trace:
    """Read the tasks of the log, plain or .gz."""
    return read_tasks(path, LAYOUT, _tasks, on_progress, instances, chunk)


def _tasks(frame: pd.DataFrame) -> Tasks:
    return Tasks(
        submit_s=frame["submit_time"].to_numpy(),
        run_s=frame["duration"].to_numpy(),
        cpu=frame["cpu"].to_numpy(),
        memory=frame["memory"].to_numpy() * 100,
        instances=frame["instances_num"].to_numpy(),
        causes={},
    )
