"""Small event-driven scenarios for tests: rows of params.yaml, logs, and traces."""

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from builders import REPOSITORY
from ruamel.yaml import YAML

from pipeline.core.config import MachinesScenario, Params, check_params
from pipeline.core.logs.trace import MachineTable, Trace, thousandths
from pipeline.core.types import ANY_KIND

TRACES = REPOSITORY.parent / "shared" / "traces"
TASKS: dict[str, Any] = {
    "name": "tasks",
    "median": 5.0,
    "spread": 1.0,
    "longest": 50.0,
    "demand": {"cpu": [1, 2], "memory": [1, 5]},
    "jobs": 20,
}
ROW: dict[str, Any] = {
    "problem": "machines",
    "machines": [{"count": 3, "has": {"cpu": 4, "memory": 10}}],
    "slots": 4,
    "dispatch": "greedy",
    "policies_know": "durations",
    "pause": 16,
    "time_limit": 10000,
    "workload": TASKS,
    "loads": [60, 120],
    "jobsets": {"train": 4, "validation": 3, "test": 3},
}
LOG: dict[str, Any] = {"name": "log", "format": "cloudsimpy", "path": "log.csv", "window": 20}
PPO_RECIPE: dict[str, Any] = {
    "algorithm": "ppo",
    "play": "greedy",
    "optimizer": "adam",
    "learning_rate": 0.001,
    "falling": False,
    "clip": None,
    "entropy": 0.01,
    "epochs": 2,
    "minibatches": 2,
    "ratio": 0.2,
    "gamma": 1.0,
    "trace": 1.0,
    "critic": 0.5,
    "advantage": "critic",
}
DAGGER_RECIPE: dict[str, Any] = {
    "algorithm": "dagger",
    "play": "greedy",
    "optimizer": "adam",
    "learning_rate": 0.001,
    "falling": False,
    "clip": None,
    "entropy": 0.01,
    "pool": 100,
    "batch": 10,
    "steps": 2,
}
AGENT: dict[str, Any] = {
    "problem": "machines",
    "scenario": "few",
    "objective": "slowdown",
    "network": {"name": "deepsets", "hidden": 8},
    "pretrain": {"name": "none"},
    "finetune": {
        "name": "ppo",
        "recipe": "clipped",
        "loads": [120],
        "updates": 2,
        "jobsets": 2,
        "episodes": 2,
        "validate_every": 1,
    },
}


def rows() -> dict[str, Any]:
    """params.yaml with a small scenario of events, `few`, added."""
    loaded: dict[str, Any] = YAML(typ="safe").load(REPOSITORY / "params.yaml")
    loaded["scenarios"]["few"] = copy.deepcopy(ROW)
    return loaded


def few(**changes: Any) -> Params:
    """These rows after validation; `changes` apply to the scenario."""
    loaded = rows()
    loaded["scenarios"]["few"] |= changes
    return check_params(loaded, "params.yaml")


def scenario(**changes: Any) -> MachinesScenario:
    """The small scenario."""
    return few(**changes).machines_scenario("few")


def write_log(path: Path, jobs: int, run: float = 10.0) -> None:
    """Write a log of jobs that arrive every three seconds, run for one to five times `run`, and hold two cores."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [f"{3 * k},{run * (1 + k % 5)},2,0.01,{k},{k},1,0" for k in range(jobs)]
    path.write_text("\n".join(["submit_time,duration,cpu,memory,job_id,task_id,instances_num,disk", *lines]) + "\n")


def trace(
    arrival: Sequence[float],
    run: Sequence[float],
    cpu: Sequence[float],
    kinds: Sequence[int] | None = None,
    kind_names: tuple[str, ...] = ("",),
    estimate: Sequence[float] | None = None,
    machines: MachineTable | None = None,
) -> Trace:
    """A log of one resource."""
    jobs = len(arrival)
    return Trace(
        id=np.arange(jobs),
        submit_s=np.array(arrival, dtype=float),
        wait_s=np.full(jobs, np.nan),
        run_s=np.array(run, dtype=float),
        estimate_s=np.array(run if estimate is None else estimate, dtype=float),
        demand=thousandths(np.array(cpu, dtype=float))[:, None],
        nodes=np.ones(jobs, dtype=np.int64),
        user=np.full(jobs, -1),
        kinds=np.full(jobs, ANY_KIND) if kinds is None else np.array(kinds, dtype=np.uint64),
        partition=np.zeros(jobs, dtype=np.int64),
        group=np.zeros(jobs, dtype=np.int64),
        resources=("cpu",),
        kind_names=kind_names,
        has_estimates=estimate is not None,
        machines=machines,
        dropped=(),
        repaired=(),
        units=("cores",),
        rows=jobs,
    )
