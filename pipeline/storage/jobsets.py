"""Jobsets as tables, one row a job: what is the same whatever jobs are; and beside them what they came from."""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np
import pandas as pd

from pipeline.config import Params, PoolScenario
from pipeline.core import SPLITS, FloatArray, IntArray, Json, KeyArray
from pipeline.errors import UserError
from pipeline.storage.files import write
from pipeline.storage.paths import LOG, REPORTS, jobsets_folder, scenario_log, sha256_of

ORIGIN = "origin.json"  # beside a scenario's jobsets
COMPARED = REPORTS / "compared.json"
SECTIONS = ("seed", "workload", "evaluation", "scenarios", "agents", "transfers", "plans", "policies")
Jobs = TypeVar("Jobs")  # of one jobset


def write_origin(params: Params, scenario: str) -> None:
    """Write the rows of params.yaml and the digest of the log that a scenario's jobsets come from.

    Later stages list the jobsets in place of these: when a row changes, `generate` runs, and all that plays or learns
    from the jobsets if they or this record are other ones then.
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
    """Write the rows of params.yaml that say what was compared: those of the scenarios, agents, transfers and plans."""
    whole = params.model_dump(mode="json")
    write(COMPARED, _text({name: whole.get(name) for name in SECTIONS if name in whole or name != "policies"}))


def _text(values: Json) -> bytes:
    return (json.dumps(values, indent=2) + "\n").encode()


def jobsets_file(folder: Path, split: str) -> Path:
    """Return the table of one of SPLITS."""
    if split not in SPLITS:
        raise ValueError(f"expected one of {SPLITS}, got {split!r}")
    return folder / f"{split}.parquet"


def jobs_frame(
    jobsets: Mapping[int, Sequence[Jobs]],
    columns: Callable[[Jobs], Mapping[str, IntArray | FloatArray]],
    times: Collection[str] = (),
) -> pd.DataFrame:
    """Return jobsets as a table: load, jobset, number of the job in it, and its own columns, each [J] of a jobset.

    All columns but `times` are whole numbers.
    """
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
    """Return the jobsets of a table by load; what makes one is given its part of each of the columns [J] or [J, R]."""
    edges = np.flatnonzero(np.diff(frame["load"]) | np.diff(frame["jobset"])) + 1
    loads = frame["load"].to_numpy()[np.concatenate([[0], edges])] if len(frame) else []
    found: dict[int, list[Jobs]] = {}
    for load, *parts in zip(loads, *(np.split(column, edges) for column in columns), strict=True):
        found.setdefault(int(load), []).append(make(*parts))
    return found


def check_can_run(jobsets: Mapping[int, Sequence[Jobs]], check: Callable[[Jobs], None], path: Path) -> None:
    """Refuse jobs that could never run: in the simulator they would wait for ever.

    Raises:
        UserError: there is one.
    """
    for load, group in jobsets.items():
        for k, jobs in enumerate(group):
            try:
                check(jobs)
            except ValueError as error:
                raise UserError(f"{path}: load {load}, jobset {k}: {error}: run 'dvc repro'") from error
