"""The machines of scenarios: from params.yaml, and their storage with the jobsets."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from pydantic import ValidationError

from pipeline.core.config import Group, MachinePark, MachinesScenario, Tasks
from pipeline.core.logs.trace import thousandths
from pipeline.core.storage import jobsets as tables
from pipeline.core.storage.files import missing, one_line, read_table, write, write_table
from pipeline.core.types import FloatArray, IntArray
from pipeline.errors import UserError
from pipeline.problems.machines.env.nouns import DISPATCH, Jobs, Machines, check_jobs
from pipeline.problems.machines.env.tables import jobs_schema

PARK = "machines.json"
TIMES = ("arrival", "duration", "estimate")
STALL = 10.0  # default: median run times without an arrival after which void is refused


def write_jobsets(folder: Path, split: str, jobsets: Mapping[int, Sequence[Jobs]], park: MachinePark) -> None:
    """Write the jobsets of one split."""

    def columns(jobs: Jobs) -> dict[str, IntArray | FloatArray]:
        own = {name: getattr(jobs, name) for name in TIMES} | {"nodes": jobs.nodes, "kinds": jobs.kinds.astype("int64")}
        return own | {name: jobs.demand[:, r] for r, name in enumerate(park.resources)}

    frame = tables.jobs_frame(jobsets, columns, TIMES)
    write_table(tables.jobsets_file(folder, split), frame, jobs_schema(park.resources))


def read_jobsets(folder: Path, split: str, park: MachinePark) -> dict[int, list[Jobs]]:
    """Read the jobsets of one split, by load.

    Raises:
        UserError: the table is missing or damaged, or a job could not run on any of the machines.
    """
    path = tables.jobsets_file(folder, split)
    frame = read_table(path, jobs_schema(park.resources))
    columns = [frame[name].to_numpy() for name in (*TIMES, list(park.resources), "nodes")]
    found = tables.jobsets_of(frame, [*columns, frame["kinds"].to_numpy().astype(np.uint64)], Jobs)
    machines = Machines(np.array(park.capacity), np.array(park.kind), slots=1, dispatch=0, pause=1.0, time_limit=1.0)
    tables.check_can_run(found, lambda jobs: check_jobs(jobs, machines), path)
    return found


def write_park(folder: Path, park: MachinePark) -> None:
    """Write the machines of a scenario, and its unit of time."""
    write(folder / PARK, (park.model_dump_json() + "\n").encode())


def read_park(folder: Path) -> MachinePark:
    """Read the machines of a scenario, and its unit of time.

    Raises:
        UserError: the file is missing or invalid.
    """
    path = folder / PARK
    try:
        return MachinePark.model_validate_json(path.read_bytes(), strict=True)
    except OSError as error:
        raise missing(path) from error
    except (ValidationError, ValueError) as error:
        raise UserError(f"{path}: not the machines of a scenario ({one_line(error)}): run 'dvc repro'") from error


def grouped(groups: Sequence[Group], unit: float) -> MachinePark:
    """Return the machines of some groups, with kinds in the order of their first appearance."""
    kinds = list(dict.fromkeys(group.kind for group in groups))
    amounts = [tuple(thousandths(np.array(list(group.has.values()))).tolist()) for group in groups]
    return MachinePark(
        resources=tuple(groups[0].has),
        capacity=tuple(amount for amount, group in zip(amounts, groups, strict=True) for _ in range(group.count)),
        kind=tuple(kinds.index(group.kind) for group in groups for _ in range(group.count)),
        kind_names=tuple(kinds),
        unit=unit,
    )


def machines_of(scenario: MachinesScenario, park: MachinePark) -> Machines:
    """Return machines and dispatch of a scenario; the scenario's times are in the park's unit."""
    # For a log, the unit is the median run time.
    usual = STALL * (scenario.workload.median if isinstance(scenario.workload, Tasks) else 1.0)
    return Machines(
        capacity=np.array(park.capacity, dtype=np.int64),
        kind=np.array(park.kind, dtype=np.int64),
        slots=scenario.slots,
        dispatch=DISPATCH.index(scenario.dispatch),
        pause=scenario.pause * park.unit,
        time_limit=scenario.time_limit * park.unit,
        stall=(usual if scenario.stall is None else scenario.stall) * park.unit,
        measured=scenario.workload.measured if isinstance(scenario.workload, Tasks) else None,
    )


def time_scale(scenario: MachinesScenario, park: MachinePark) -> float:
    """Return the time that features encode as 0.5: the median run time."""
    return scenario.workload.median if isinstance(scenario.workload, Tasks) else park.unit
