"""Alibaba's cluster-trace-gpu-v2023: pods (`openb_pod_list_*.csv`) and nodes (`openb_node_list_*.csv`).

The first line names the columns. A pod is submitted when it is created, waits until it is scheduled, and runs until it
is deleted. It requests cpu_milli of a core, memory_mib, and num_gpu times gpu_milli of a GPU: the GPUs of a node are
pooled, and two pods may share one in any proportion. gpu_spec names the GPU models it may run on (default: all).

The kinds of machines are the models of the nodes, in order of appearance; kind "" has no GPU. Without a file of nodes
they are the models in the pods.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from pipeline.core.logs.rows import Layout, rows, schema
from pipeline.core.logs.task_rows import Tasks, read_tasks
from pipeline.core.logs.trace import WITH_GPUS, MachineTable, Trace, thousandths
from pipeline.core.types import ANY_KIND, MOST_KINDS, THOUSANDTHS, IntArray, KeyArray
from pipeline.errors import UserError
from pipeline.progress import ProgressCallback, no_progress

TIMES, AMOUNTS = "creation_time deletion_time scheduled_time", "cpu_milli memory_mib num_gpu gpu_milli"
PODS = Layout(schema("openb pods", times=TIMES, amounts=AMOUNTS, words="gpu_spec"))
NODES = Layout(schema("openb nodes", amounts="cpu_milli memory_mib gpu", words="model", nullable=False))
NO_SUBMIT, NO_END, BACKWARDS = "time of creation unknown", "time of deletion unknown", "run time below 0"
NEVER, EARLY = "never scheduled", "scheduled before it was created"
NO_DEMAND, BELOW_0 = "CPU, memory or GPU unknown", "CPU, memory or GPU below 0"
NO_MODEL = "wants GPU models that no node has"


def read(path: Path, on_progress: ProgressCallback = no_progress, *, nodes: Path | None = None) -> Trace:
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
        NO_SUBMIT: np.isnan(create),
        NEVER: np.isnan(start),
        EARLY: start < create,
        NO_END: np.isnan(end),
        BACKWARDS: end < start,
        NO_DEMAND: np.isnan(amount).any(axis=1),
        BELOW_0: (amount < 0).any(axis=1),
        NO_MODEL: kinds == 0,
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
