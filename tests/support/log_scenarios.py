"""Rows of params.yaml for scenarios of logs with periods, as `site` writes them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any


def log_scenario(cpus: float, path: Path | str, log: Mapping[str, Any] = {}, **others: Any) -> dict[str, Any]:
    """The row of one machine and a log in the Standard Workload Format; `log` and `others` are changed keys."""
    workload = {"name": "log", "format": "swf", "path": str(path), "window": 2}
    return {
        "problem": "machines",
        "machines": [{"count": 1, "has": {"cpu": cpus}}],
        "slots": 4,
        "dispatch": "easy_dynamic",
        "policies_know": "estimates",
        "pause": 16,
        "time_limit": 1_000_000,
        "workload": {**workload, "train_share": 0.4, "validation_share": 0.2, **log},
        "loads": [100],
        "jobsets": {"train": 1, "validation": 1, "test": 10},
        **others,
    }
