"""Logs whose rows are tasks, of several equal instances (Alibaba, CloudSimPy) or of one (openb, and see `slurm`).

Times are in seconds. The logs of Alibaba and CloudSimPy have no users or machines.

openb is Alibaba's cluster-trace-gpu-v2023: pods (`openb_pod_list_*.csv`) and nodes (`openb_node_list_*.csv`). The first
line names the columns. A pod is submitted when it is created, waits until it is scheduled, and runs until it is
deleted. It requests cpu_milli of a core, memory_mib, and num_gpu times gpu_milli of a GPU: the GPUs of a node are
pooled, and two pods may share one in any proportion. gpu_spec names the GPU models it may run on (default: all). The
kinds of machines are the models of the nodes, in order of appearance; kind "" has no GPU. Without a file of nodes they
are the models in the pods.
"""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from pipeline.core.config import Instances
from pipeline.core.logs.rows import Layout, rows, schema
from pipeline.core.logs.trace import OF_TASKS, WITH_GPUS, Facts, MachineTable, Sieve, Trace, in_order, jobs, thousandths
from pipeline.core.types import ANY_KIND, MOST_KINDS, THOUSANDTHS, BoolArray, FloatArray, IntArray, KeyArray
from pipeline.errors import UserError
from pipeline.progress import ProgressCallback, no_progress

NO_SUBMIT, NO_RUN, BACKWARDS = "time of submission unknown", "run time unknown", "run time below 0"
NOT_DONE, BEFORE = "status other than Terminated", "created before the log begins"
NO_DEMAND, BELOW_0, NO_INSTANCES = "CPU or memory unknown", "CPU or memory below 0", "no instances"
MOST_JOBS = 50_000_000  # some 4 GiB


class Tasks(NamedTuple):
    """Some rows as tasks; nan = unknown."""

    amount: FloatArray  # [J, R]  in the units of the log's resources
    causes: Mapping[str, BoolArray]  # reasons to drop rows, in the order of reports
    columns: dict[str, Any]  # [J]  other columns, as for `jobs`
    instances: FloatArray | None = None  # [J]  each a job; None: a task is one job


Taken = Callable[[pd.DataFrame], Tasks]


def read_tasks(path: Path, layout: Layout, taken: Taken, facts: Facts, on_progress: ProgressCallback) -> Trace:
    """Read a log whose rows are tasks, numbered by row; UserError for an invalid row, or if no job is left."""
    parts, sieve, seen, found = list[dict[str, Any]](), Sieve(), 0, 0
    for frame in rows(path, layout, on_progress):
        tasks, lines = taken(frame), frame.index.to_numpy()
        kept = sieve.keep(lines, tasks.causes)
        number = np.arange(seen + 1, seen + len(frame) + 1)
        part = jobs(sieve, lines, kept, tasks.amount, id=number, **tasks.columns)
        if tasks.instances is not None:
            instances = tasks.instances[kept].astype(np.int64)
            if found + int(instances.sum()) > MOST_JOBS:
                raise UserError(f"{path}: expected at most {MOST_JOBS:,} instances, found more: read one job a task")
            part = {name: np.repeat(column, instances, axis=0) for name, column in part.items()}
        parts.append(part)
        seen, found = seen + len(frame), found + len(part["id"])
    return in_order(parts, sieve, facts, seen, path)


class TaskLog(NamedTuple):
    """A log of tasks with instances: its columns, and their units."""

    layout: Layout
    submit: str
    run: str  # column of the end, or of the run time
    cpu: tuple[str, float]  # column, and its value for one core
    memory: tuple[str, float]  # column, and its percent of a machine's memory for a value of 1
    instances: str
    begins_at_0: bool = False  # times up to 0 are before the log

    def read(self, path: Path, on_progress: ProgressCallback = no_progress, *, instances: Instances = "one") -> Trace:
        """Read it, plain or .gz; with instances "each", every instance is a job."""
        return read_tasks(path, self.layout, partial(self._tasks, instances == "each"), OF_TASKS, on_progress)

    def _tasks(self, each: bool, frame: pd.DataFrame) -> Tasks:
        submit, instances = frame[self.submit], frame[self.instances]
        run = frame[self.run] if self.run == "duration" else frame[self.run] - submit
        amount = np.column_stack([frame[self.cpu[0]] / self.cpu[1], frame[self.memory[0]] * self.memory[1]])
        causes: dict[str, Any] = {NOT_DONE: frame["status"].ne("Terminated")} if "status" in frame else {}
        causes |= {BEFORE: submit <= 0} if self.begins_at_0 else {}
        causes |= {NO_SUBMIT: submit.isna(), NO_RUN: run.isna(), BACKWARDS: run < 0}
        causes |= {NO_DEMAND: np.isnan(amount).any(axis=1), BELOW_0: (amount < 0).any(axis=1)}
        causes |= {NO_INSTANCES: ~(instances >= 1)}
        every = {reason: np.asarray(wrong) for reason, wrong in causes.items()}
        columns = {"submit_s": submit.to_numpy(), "run_s": run.to_numpy()}
        return Tasks(amount, every, columns, instances.to_numpy() if each else None)


# Alibaba's batch tasks, `batch_task.csv`, have no header; the first line of CloudSimPy's log names its columns.
OF_2018 = "task_name instance_num job_name task_type status start_time end_time plan_cpu plan_mem"
OF_2017 = "create_timestamp modify_timestamp job_id task_id instance_num status plan_cpu plan_mem"
AMOUNTS = "instance_num plan_cpu plan_mem"
ALIBABA2018 = schema("alibaba2018", times="start_time end_time", amounts=AMOUNTS, words="status")
ALIBABA2017 = schema("alibaba2017", times="create_timestamp modify_timestamp", amounts=AMOUNTS, words="status")
CLOUDSIMPY = schema("cloudsimpy", times="submit_time duration", amounts="cpu memory instances_num")
CPU = ("plan_cpu", 100.0)
TASK_LOGS = {
    # Alibaba's cluster-trace-v2018; plan_mem is percent of a machine. The log has no submission times. A task counts as
    # submitted when it starts: waits are unknown, and arrivals include the delays of the log's own scheduler.
    "alibaba2018": TaskLog(
        Layout(ALIBABA2018, tuple(OF_2018.split())), "start_time", "end_time", CPU, ("plan_mem", 1.0), "instance_num"
    ),
    # Alibaba's cluster-trace-v2017; plan_cpu is 100 for a core, as its values show, plan_mem a share. A task from
    # before the log is dropped, because its run time is unknown. A task is submitted at its creation and ends at the
    # last change of its row, so that its run time includes its wait.
    "alibaba2017": TaskLog(
        Layout(ALIBABA2017, tuple(OF_2017.split())),
        "create_timestamp",
        "modify_timestamp",
        CPU,
        ("plan_mem", 100.0),
        "instance_num",
        begins_at_0=True,
    ),
    # CloudSimPy's `jobs.csv`, most likely from Alibaba's log of 2017: cores, and shares of a machine.
    "cloudsimpy": TaskLog(
        Layout(CLOUDSIMPY), "submit_time", "duration", ("cpu", 1.0), ("memory", 100.0), "instances_num"
    ),
}

TIMES, POD_AMOUNTS = "creation_time deletion_time scheduled_time", "cpu_milli memory_mib num_gpu gpu_milli"
PODS = Layout(schema("openb pods", times=TIMES, amounts=POD_AMOUNTS, words="gpu_spec"))
NODES = Layout(schema("openb nodes", amounts="cpu_milli memory_mib gpu", words="model", nullable=False))


def read_pods(path: Path, on_progress: ProgressCallback = no_progress, *, nodes: Path | None = None) -> Trace:
    """Read the pods of a log, and its machines from a file of nodes, if given; UserError if no job is left."""
    names: dict[str, int] = {}
    machines = None if nodes is None else _read_nodes(nodes, names)

    def taken(frame: pd.DataFrame) -> Tasks:
        return _pods(frame, _kinds(frame["gpu_spec"], names, machines is not None, path))

    trace = read_tasks(path, PODS, taken, WITH_GPUS._replace(machines=machines), on_progress)
    return trace._replace(kind_names=tuple(names) or ("",))


def _read_nodes(path: Path, names: dict[str, int]) -> MachineTable:
    """Read the machines, and enter their kinds by name."""
    capacity, kind = list[IntArray](), list[int]()
    for frame in rows(path, NODES):
        amount = np.column_stack([frame["cpu_milli"] / THOUSANDTHS, frame["memory_mib"] / 1024, frame["gpu"]])
        below = np.flatnonzero((amount < 0).any(axis=1))
        if len(below):
            raise UserError(f"{path}:{frame.index[below[0]]}: expected amounts of at least 0, found less")
        capacity.append(thousandths(amount))
        kind += [_entered(model, names, path) for model in frame["model"].fillna("")]
    if not capacity:
        raise UserError(f"{path}: expected nodes, found none")
    return MachineTable(np.concatenate(capacity), np.array(kind, dtype=np.int64), WITH_GPUS.resources)


def _pods(frame: pd.DataFrame, kinds: KeyArray) -> Tasks:
    column = {name: frame[name].to_numpy() for name in frame.columns.drop("gpu_spec")}
    create, start, end = (column[f"{name}_time"] for name in ("creation", "scheduled", "deletion"))
    # A pod without a GPU may lack the share of one.
    gpus = np.where(column["num_gpu"] == 0, 0, column["num_gpu"] * column["gpu_milli"] / THOUSANDTHS)
    amount = np.column_stack([column["cpu_milli"] / THOUSANDTHS, column["memory_mib"] / 1024, gpus])
    causes = {
        "time of creation unknown": np.isnan(create),
        "never scheduled": np.isnan(start),
        "scheduled before it was created": start < create,
        "time of deletion unknown": np.isnan(end),
        BACKWARDS: end < start,
        "CPU, memory or GPU unknown": np.isnan(amount).any(axis=1),
        "CPU, memory or GPU below 0": (amount < 0).any(axis=1),
        "wants GPU models that no node has": kinds == 0,
    }
    columns = {"submit_s": create, "run_s": end - start, "wait_s": start - create, "kinds": kinds}
    return Tasks(amount, causes, columns)


def _kinds(specs: pd.Series, names: dict[str, int], fixed: bool, path: Path) -> KeyArray:
    """Return the kinds that jobs may run on; new models are entered, unless the nodes fixed them."""
    codes, specs_found = pd.factorize(specs)
    bits = [ANY_KIND] * (len(specs_found) + 1)  # a missing spec has the code -1: the last index
    for place, spec in enumerate(specs_found):
        models = {model for model in spec.split("|") if model and (model in names or not fixed)}
        bits[place] = np.uint64(sum(1 << _entered(model, names, path) for model in sorted(models)))
    return np.array(bits, dtype=np.uint64)[codes]


def _entered(model: str, names: dict[str, int], path: Path) -> int:
    if model not in names and len(names) == MOST_KINDS:
        raise UserError(f"{path}: expected at most {MOST_KINDS} models of GPUs, found '{model}' as well")
    return names.setdefault(model, len(names))
