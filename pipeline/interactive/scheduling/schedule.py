"""Run any policy over a user's own jobs, and write when each starts; for every problem."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import pandas as pd
import pandera.pandas as pa

from pipeline.core.config import Params
from pipeline.core.storage.files import TABLE_SUFFIXES, check_out, check_table, write_table
from pipeline.core.storage.user_tables import write_chunks
from pipeline.core.types import FloatArray, IntArray, KeyArray, keys
from pipeline.errors import UserError
from pipeline.interactive.scheduling.user_jobs import AT_ONCE, Columns, JobColumns, Part, UserJobs, read_user_jobs
from pipeline.progress import ProgressCallback, progress, remark
from pipeline.simulation.rollout import CompiledEpisodes

LOOK_EVERY_S = 0.5
ROWS = 1 << 20  # of a chunk, equal to pyarrow's default row group
Column = pd.Series | FloatArray | IntArray
OPTIONS = {"search": "tries", "arrivals-end": "arrivals_end"}  # options whose field in a request has another name


def must_apply(request: Any, refused: Mapping[str, str]) -> None:
    """Refuse options of a request (a NamedTuple) that do not apply to the problem of its scenario."""
    given, unset = request._asdict(), request._field_defaults
    for option, reason in refused.items():
        field = OPTIONS.get(option, option)
        if field in given and given[field] != unset[field]:
            raise UserError(f"--{option}: not in scenario '{request.scenario}': {reason}")


class ScheduleRequest(NamedTuple):
    """A user's own jobs, and the policy that is to schedule them."""

    jobs: Path  # a job table or a log
    scenario: str
    policy: str  # a heuristic by name, a model directory, or <agent>_tree
    out: Path
    capacity: int | None = None  # units of each resource; like slots and horizon, None: the scenario's
    slots: int | None = None
    horizon: int | None = None
    samples: int = 0  # schedules that are drawn with all jobs known
    tries: int = 0  # schedules that are searched with all jobs known
    arrivals_end: int | None = None  # first step after all arrivals, if policies know it
    load: float | None = None  # percent of the cluster that arrives on average, if policies know it


class Scheduled(NamedTuple):
    """A policy's schedule of a user's jobs."""

    columns: Callable[[slice], Mapping[str, Column]]  # of the schedule, for some rows in the order of the file
    said: str  # for people, after the number of jobs
    # More tables, by a suffix of the schedule's file name: (table, schema, description)
    extra: Mapping[str, tuple[pd.DataFrame, pa.DataFrameSchema, str]] = MappingProxyType({})


# How a user's jobs are read, and a function that schedules them.
Ready = tuple[JobColumns[Columns], Callable[[UserJobs[Columns]], Scheduled]]


class Scheduling(NamedTuple, Generic[Columns]):
    """How a problem schedules a user's own jobs."""

    ready: Callable[[Params, ScheduleRequest], Ready[Columns]]
    schema: pa.DataFrameSchema  # of the schedule
    digits: int  # of times in text
    refused: Mapping[str, str]  # options that do not apply, with reasons
    extra: Sequence[str] = ()  # suffixes of additional tables


Simulation = TypeVar("Simulation", bound=CompiledEpisodes[Any])


def played(
    mine: UserJobs[Columns],
    most: int,
    begin: Callable[[Part[Columns], KeyArray], tuple[Simulation, Iterator[int]]],
    seed: int,
    on_progress: ProgressCallback,
    at_once: int = AT_ONCE,
) -> Iterator[tuple[Part[Columns], Simulation]]:
    """Run all jobsets, each on the whole cluster; yield each part with its finished simulator.

    Args:
        mine: the jobs.
        most: maximum number of jobsets that run in parallel.
        begin: (part, random keys [B]) -> its simulator, and an iterator that runs it.
        seed: seed of the policy's draws.
        on_progress: called with the percentage.
        at_once: maximum number of jobs of the jobsets that run in parallel.
    """
    done, count, due = 0, len(mine.number), time.monotonic() + LOOK_EVERY_S
    for part in mine.parts(most, at_once):
        simulator, left = begin(part, keys(seed, part.number, np.zeros_like(part.number)))
        for _ in left:
            if time.monotonic() >= due:
                started = done + simulator.started
                on_progress(100 * started / count, f"{started:,} jobs")
                due = time.monotonic() + LOOK_EVERY_S
        yield part, simulator
        done += int(part.first[-1])
    on_progress(100, f"{count:,} jobs")


def schedule(how: Scheduling[Columns], params: Params, request: ScheduleRequest) -> None:
    """Write the schedule of a job table or log, and the problem's additional tables."""
    must_apply(request, how.refused)
    for place in (request.out, *(added(request.out, name) for name in how.extra)):
        check_out(place, inputs=[request.jobs])
    columns, run = how.ready(params, request)
    mine = read_user_jobs(request.jobs, columns)
    found = run(mine)
    write(request.out, mine, found, how)
    for name, (frame, schema, description) in found.extra.items():
        place = added(request.out, name)
        write_table(place, frame, schema, how.digits)
        remark(f"{place}: {description}")
    remark(f"{request.out}: {len(mine.number)} jobs{found.said}")


def added(out: Path, name: str) -> Path:
    """Return the file of an additional table.

    >>> added(Path("mine/plan.csv.gz"), "shares").as_posix()
    'mine/plan_shares.csv.gz'
    """
    suffix = next((end for end in sorted(TABLE_SUFFIXES, key=len, reverse=True) if out.name.endswith(end)), "")
    return out.with_name(f"{out.name.removesuffix(suffix)}_{name}{suffix}")


def write(out: Path, mine: UserJobs[Columns], found: Scheduled, how: Scheduling[Columns], rows: int = ROWS) -> None:
    """Write a schedule, `rows` rows at a time, in the order of the user's file."""

    def frames(on_progress: ProgressCallback) -> Iterator[pd.DataFrame]:
        count = len(mine.number)
        for first in range(0, count, rows):
            frame = mine.ids.slice(first, rows).to_pandas()
            if isinstance(frame["jobset"].dtype, pd.CategoricalDtype):
                frame["jobset"] = frame["jobset"].astype(frame["jobset"].cat.categories.dtype)
            frame = frame.assign(**found.columns(slice(first, first + rows)))
            yield check_table(frame[list(how.schema.columns)], how.schema, str(out))
            done = first + len(frame)
            on_progress(100 * done / count, f"{done:,} jobs")

    with progress(f"write {out}, percent", 100, brief=True) as advance:
        write_chunks(out, frames(advance), how.digits)
