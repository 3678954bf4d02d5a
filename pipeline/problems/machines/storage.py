"""Jobsets of scenarios of many machines as tables, and beside them the machines that their jobs run on."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from pydantic import ValidationError

from pipeline.config import MachinePark
from pipeline.core import SPLITS
from pipeline.errors import UserError
from pipeline.problems.machines.nouns import Jobs, Machines, check_jobs
from pipeline.problems.machines.tables import jobs_schema
from pipeline.storage.files import missing, one_line, read_table, write, write_table

PARK = "machines.json"
TIMES = ("arrival", "duration", "estimate")

JobSets = Mapping[int, Sequence[Jobs]]  # by load


def write_jobsets(folder: Path, split: str, jobsets: JobSets, park: MachinePark) -> None:
    """Write the jobsets of one split."""
    frame = jobs_frame(jobsets, park.resources)
    write_table(folder / f"{split}.parquet", frame, jobs_schema(park.resources))


def read_jobsets(folder: Path, split: str, park: MachinePark) -> dict[int, list[Jobs]]:
    """Read the jobsets of one split, by load.

    Raises:
        UserError: the table is missing or damaged, or a job could run on none of the machines.
    """
    if split not in SPLITS:
        raise ValueError(f"expected one of {SPLITS}, got {split!r}")
    path = folder / f"{split}.parquet"
    frame = read_table(path, jobs_schema(park.resources))
    edges = np.flatnonzero(np.diff(frame["load"]) | np.diff(frame["jobset"])) + 1
    times = [frame[name].to_numpy() for name in TIMES]
    demand, kinds = frame[list(park.resources)].to_numpy(), frame["kinds"].to_numpy().astype(np.uint64)
    columns = [*times, demand, frame["nodes"].to_numpy(), kinds]
    loads = frame["load"].to_numpy()[np.concatenate([[0], edges])] if len(frame) else []
    found: dict[int, list[Jobs]] = {}
    for load, *parts in zip(loads, *(np.split(column, edges) for column in columns), strict=True):
        found.setdefault(int(load), []).append(Jobs(*parts))
    _must_run(found, park, path)
    return found


def _must_run(jobsets: JobSets, park: MachinePark, path: Path) -> None:
    """Refuse jobs that no machine can hold: in the simulator they would wait for ever."""
    machines = Machines(np.array(park.capacity), np.array(park.kind), slots=1, dispatch=0, pause=1.0, time_limit=1.0)
    for load, group in jobsets.items():
        for k, jobs in enumerate(group):
            try:
                check_jobs(jobs, machines)
            except ValueError as error:
                raise UserError(f"{path}: load {load}, jobset {k}: {error}: run 'dvc repro'") from error


def jobs_frame(jobsets: JobSets, resources: Sequence[str]) -> pd.DataFrame:
    """Return jobsets as a table, one row a job."""
    rows = [
        {"load": load, "jobset": k, "job": np.arange(len(jobs.arrival))}
        | {name: getattr(jobs, name) for name in TIMES}
        | {"nodes": jobs.nodes, "kinds": jobs.kinds.astype(np.int64)}
        | {name: jobs.demand[:, r] for r, name in enumerate(resources)}
        for load, group in jobsets.items()
        for k, jobs in enumerate(group)
    ]
    frame = pd.concat([pd.DataFrame(row) for row in rows], ignore_index=True)
    return frame.astype({name: "float64" if name in TIMES else "int64" for name in frame.columns})


def write_park(folder: Path, park: MachinePark) -> None:
    """Write the machines of a scenario, and its unit of time."""
    write(folder / PARK, (park.model_dump_json() + "\n").encode())


def read_park(folder: Path) -> MachinePark:
    """Read the machines of a scenario, and its unit of time.

    Raises:
        UserError: the file is missing, or is no such record.
    """
    path = folder / PARK
    try:
        return MachinePark.model_validate_json(path.read_bytes(), strict=True)
    except OSError as error:
        raise missing(path) from error
    except (ValidationError, ValueError) as error:
        raise UserError(f"{path}: not the machines of a scenario ({one_line(error)}): run 'dvc repro'") from error
