"""Small scenarios of user groups for tests: rows of params.yaml, and jobs by hand."""

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
from builders import REPOSITORY
from ruamel.yaml import YAML

from pipeline.core.config import Params, check_params
from pipeline.problems.groups.env.nouns import Jobs, SharedCluster

SINUSOIDAL: dict[str, Any] = {
    "name": "sinusoidal",
    "intervals": 6,
    "period": 3.0,
    "amplitude": 0.9,
    "run": {"short": 3.0, "long": 12.0},
    "spread": 0.5,
    "demand": {"cpu": [1, 2], "memory": [1, 2]},
    "mixes": [{"short": 0.8, "long": 0.2}, {"short": 0.4, "long": 0.6}],
}
ROW: dict[str, Any] = {
    "problem": "groups",
    "resources": {"cpu": 8, "memory": 6},
    "groups": 2,
    "queues": ["short", "long"],
    "orders": [["short", "long"], ["long", "short"]],
    "levels": [0, 0.5, 1, 2],
    "interval": 5.0,
    "borrowing": False,
    "policies_know": "durations",
    "time_limit": 500.0,
    "workload": SINUSOIDAL,
    "loads": [60, 120],
    "jobsets": {"train": 4, "validation": 2, "test": 4},
}
LOG: dict[str, Any] = {"name": "log", "format": "swf", "path": "log.swf", "bounds": [10.0], "window": 2}
RECIPE: dict[str, Any] = {
    "algorithm": "dqn",
    "learning_rate": 0.01,
    "falling": True,
    "clip": 1.0,
    "gamma": 0.5,
    "against": "zero",
    "batch": 4,
    "memory": 200,
    "target": 3,
    "double": True,
    "huber": True,
    "bootstrap": "joint",
    "conservative": 0.0,
}
REPLAY: dict[str, Any] = {
    "name": "replay",
    "loads": [60, 120],
    "jobsets": 4,
    "updates": 2,
    "steps": 2,
    "random": 0.5,
    "noise": 0.2,
}
AGENT: dict[str, Any] = {
    "problem": "groups",
    "scenario": "shared",
    "objective": "delay",
    "network": {"name": "q_network", "hidden": [8, 8], "weights": "shared"},
    "pretrain": REPLAY,
    "finetune": {
        "name": "dqn",
        "recipe": "by_value",
        "loads": [60, 120],
        "updates": 4,
        "jobsets": 2,
        "every": 2,
        "epsilon": 0.1,
        "validate_every": 1,
    },
}


def rows() -> dict[str, Any]:
    """params.yaml with a small scenario of user groups, `shared`, and its agent `mine` added."""
    loaded: dict[str, Any] = YAML(typ="safe").load(REPOSITORY / "params.yaml")
    loaded["scenarios"]["shared"] = copy.deepcopy(ROW)
    loaded["recipes"]["by_value"] = copy.deepcopy(RECIPE)
    loaded["agents"]["mine"] = copy.deepcopy(AGENT)
    return loaded


def shared(**changes: Any) -> Params:
    """These rows after validation; `changes` apply to the scenario."""
    loaded = rows()
    loaded["scenarios"]["shared"] |= changes
    return check_params(loaded, "params.yaml")


def cluster(
    *capacity: int, groups: int = 2, interval: float = 10.0, borrowing: bool = False, time_limit: float = 1000.0
) -> SharedCluster:
    """A small cluster of two queues in two orders, by default of one resource with 2 units."""
    orders = np.array([[0, 1], [1, 0]])
    return SharedCluster(np.array(capacity or (2,)), groups, orders, interval, borrowing, time_limit)


def group_jobs(*jobs: Sequence[float]) -> Jobs:
    """Jobs of (arrival, duration, demand, group, queue) on one resource; the queue is 0 by default."""
    table = np.array([(*job, 0)[:5] for job in jobs], dtype=float)
    whole = table[:, 2:].astype(np.int64)
    return Jobs(table[:, 0], table[:, 1], table[:, 1].copy(), whole[:, :1], whole[:, 1], whole[:, 2])
