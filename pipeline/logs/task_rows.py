"""Logs whose rows are tasks of several like instances (Alibaba's, and what was made of them)."""

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
from pipeline.logs.rows import Layout, rows
from pipeline.logs.trace import CORES, PERCENT, Sieve, Trace, thousandths
from pipeline.progress import ProgressCallback, no_progress

NO_SUBMIT, NO_RUN, BACKWARDS = "time of submission unknown", "run time unknown", "run time below 0"
NO_DEMAND, BELOW_0, NO_INSTANCES = "CPU or memory unknown", "CPU or memory below 0", "no instances"
FACTS = Facts(("cpu", "memory"), (CORES, PERCENT))


class Tasks(NamedTuple):
    """Some rows as tasks; nan = unknown."""

    submit_s: FloatArray  # [J]
    run_s: FloatArray  # [J]
    cpu: FloatArray  # [J]  cores
    memory: FloatArray  # [J]  percent of a machine
    instances: FloatArray  # [J]
    causes: Mapping[str, BoolArray]  # why rows are set aside, before what is wrong with their numbers


def read_tasks(
    path: Path,
    layout: Layout,
    taken: Callable[[pd.DataFrame], Tasks],
    on_progress: ProgressCallback = no_progress,
    instances: Instances = "one",
    chunk: int = CHUNK,
) -> Trace:
    """Read a log of tasks.

    With instances "each", every instance is a job, under the number of its task's row.

    Raises:
        UserError: it cannot be read, a row is not a task's, or no job is left.
    """
    if instances not in get_args(Instances):
        raise UserError(f"{path}: instances: expected one of {', '.join(get_args(Instances))}, found '{instances}'")
    parts, sieve, seen, found = list[Part](), Sieve(), 0, 0
    for frame in rows(path, layout, on_progress, chunk):
        tasks = taken(frame)
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
