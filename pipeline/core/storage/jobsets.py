"""Jobsets as tables with one row per job, for every problem, and records of their origin."""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np
import pandas as pd

from pipeline.core.config import Params, PoolScenario
from pipeline.core.storage.files import write
from pipeline.core.storage.paths import LOG, REPORTS, jobsets_folder, scenario_log, sha256_of
from pipeline.core.types import SPLITS, FloatArray, IntArray, Json, KeyArray
from pipeline.errors import UserError

ORIGIN = "origin.json"  # next to a scenario's jobsets
COMPARED = REPORTS / "compared.json"
SECTIONS = ("seed", "workload", "evaluation", "scenarios", "agents", "transfers", "plans", "policies")
Jobs = TypeVar("Jobs")  # of one jobset


def write_origin(params: Params, scenario: str) -> None:
    """Write the origin of a scenario's jobsets: rows of params.yaml, and the digest of the log.

    Later stages depend on the jobsets instead of these rows: when a row changes, `generate` runs, and later stages only
    if the jobsets or this record have changed.
    """
    whole, row = params.model_dump(mode="json"), params.scenario(scenario)
    found = {"seed": whole["seed"], "scenario": whole["scenarios"][scenario]}
    logs = [scenario_log(scenario)]
    if isinstance(row, PoolScenario):
        found |= {"workload": params.workload_of(row).model_dump(mode="json"), "demand": whole["demands"][row.demand]}
        logs.append(LOG)
    found["logs"] = {path.as_posix(): sha256_of(path) for path in logs if path.exists()}
    write(jobsets_folder(scenario) / ORIGIN, _text(found))


def write_compared(params: Params) -> None:
    """Write the rows of params.yaml that define the comparison: scenarios, agents, transfers, plans, policies."""
    whole = params.model_dump(mode="json")
    write(COMPARED, _text({name: whole.get(name) for name in SECTIONS if name in whole or name != "policies"}))


def _text(values: Json) -> bytes:
    return (json.dumps(values, indent=2) + "\n").encode()


def jobsets_file(folder: Path, split: str) -> Path:
    """Return the file of the jobsets of a split, one of SPLITS."""
    if split not in SPLITS:
        raise ValueError(f"expected one of {SPLITS}, got {split!r}")
    return folder / f"{split}.parquet"


def jobs_frame(
    jobsets: Mapping[int, Sequence[Jobs]],
    columns: Callable[[Jobs], Mapping[str, IntArray | FloatArray]],
    times: Collection[str] = (),
) -> pd.DataFrame:
    """Return jobsets as a table: load, jobset, number of the job, and own columns [J]; whole numbers except `times`."""
    parts = [
        pd.DataFrame({"load": load, "jobset": k, "job": np.arange(len(rows))}).join(rows)
        for load, group in jobsets.items()
        for k, jobs in enumerate(group)
        for rows in [pd.DataFrame(columns(jobs))]
    ]
    frame = pd.concat(parts, ignore_index=True)
    return frame.astype({name: "float64" if name in times else "int64" for name in frame.columns})


def jobsets_of(
    frame: pd.DataFrame, columns: Sequence[IntArray | FloatArray | KeyArray], make: Callable[..., Jobs]
) -> dict[int, list[Jobs]]:
    """Return the jobsets of a table by load; `make` gets a jobset's part of each column [J] or [J, R]."""
    edges = np.flatnonzero(np.diff(frame["load"]) | np.diff(frame["jobset"])) + 1
    loads = frame["load"].to_numpy()[np.concatenate([[0], edges])] if len(frame) else []
    found: dict[int, list[Jobs]] = {}
    for load, *parts in zip(loads, *(np.split(column, edges) for column in columns), strict=True):
        found.setdefault(int(load), []).append(make(*parts))
    return found


def check_can_run(jobsets: Mapping[int, Sequence[Jobs]], check: Callable[[Jobs], None], path: Path) -> None:
    """Refuse, with a UserError, jobs that could never run: in the simulator they would wait for ever."""
    for load, group in jobsets.items():
        for k, jobs in enumerate(group):
            try:
                check(jobs)
            except ValueError as error:
                raise UserError(f"{path}: load {load}, jobset {k}: {error}: run 'dvc repro'") from error
