"""Run any policy over a user's own jobs, and write when each starts; for every problem."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import pandas as pd
import pandera.pandas as pa

from pipeline.config import Params
from pipeline.core import FloatArray, IntArray, KeyArray, keys
from pipeline.errors import UserError
from pipeline.progress import ProgressCallback, progress, say
from pipeline.scheduling.user_jobs import (
    AT_ONCE,
    Columns,
    JobColumns,
    JobsInColumns,
    Part,
    UserJobs,
    parts,
    read_user_jobs,
)
from pipeline.storage.files import TABLE_SUFFIXES, check_out, check_table, write_table
from pipeline.storage.user_tables import write_chunks

LOOK_EVERY_S = 0.5
ROWS = 1 << 20  # of a chunk, as of a row group that pyarrow makes by itself
Column = pd.Series | FloatArray | IntArray
OPTIONS = {"search": "tries", "arrivals-end": "arrivals_end"}  # where the field of a request has another name


def must_apply(asked: Any, refused: Mapping[str, str]) -> None:
    """Refuse the options of a request, a NamedTuple, that mean nothing in the problem of its scenario.

    Raises:
        UserError: one of them is given; it says why.
    """
    given, unset = asked._asdict(), asked._field_defaults
    for option, reason in refused.items():
        field = OPTIONS.get(option, option)
        if field in given and given[field] != unset[field]:
            raise UserError(f"--{option}: not in scenario '{asked.scenario}': {reason}")


class ScheduleRequest(NamedTuple):
    """A user's own jobs, and who is to schedule them."""

    jobs: Path  # a job table or a log
    scenario: str
    policy: str  # a heuristic by name, a model directory, or <agent>_tree
    out: Path
    capacity: int | None = None  # units of each resource, slots, horizon: instead of the scenario's
    slots: int | None = None
    horizon: int | None = None
    samples: int = 0  # schedules that are drawn with all jobs known
    tries: int = 0  # schedules that are searched with all jobs known
    arrivals_end: int | None = None  # first step after all arrivals, as policies know it; None: they do not
    load: float | None = None  # percent of the cluster that arrives on average, as policies know it; None: they do not


class Scheduled(NamedTuple):
    """What a policy made of a user's jobs."""

    columns: Callable[[slice], Mapping[str, Column]]  # of the schedule, for some rows in the order of the file
    said: str  # for people, after the number of jobs
    # More tables, each with its schema and what is said of it, by what is added to the schedule's file name.
    extra: Mapping[str, tuple[pd.DataFrame, pa.DataFrameSchema, str]] = MappingProxyType({})


class Ready(NamedTuple, Generic[Columns]):
    """A policy on its cluster, ready for a user's jobs."""

    columns: JobColumns[Columns]
    run: Callable[[UserJobs[Columns]], Scheduled]


class Scheduling(NamedTuple, Generic[Columns]):
    """How a problem schedules a user's own jobs."""

    ready: Callable[[Params, ScheduleRequest], Ready[Columns]]
    schema: pa.DataFrameSchema  # of the schedule
    digits: int  # of times in text
    refused: Mapping[str, str]  # options that mean nothing here, and why
    extra: Sequence[str] = ()  # names of the tables that it adds


Going = TypeVar("Going")  # a simulator


def played(
    mine: UserJobs[Columns],
    most: int,
    begin: Callable[[Part[Columns], KeyArray], tuple[Going, Iterator[int], Callable[[], int]]],
    seed: int,
    on_progress: ProgressCallback,
    at_once: int = AT_ONCE,
) -> Iterator[tuple[Part[Columns], Going]]:
    """Play all jobsets, each on the whole cluster; yield each part with its simulator once it is over.

    Args:
        mine: the jobs.
        most: jobsets that are played side by side.
        begin: (part, random keys [B]) -> its simulator, what plays it to the end, how many of its jobs have started.
        seed: of the policy's draws, if it makes any.
        on_progress: told how far it is.
        at_once: jobs whose jobsets are played side by side.
    """
    done, count, due = 0, len(mine.number), time.monotonic() + LOOK_EVERY_S
    for part in parts(mine, most, at_once):
        simulator, left, started = begin(part, keys(seed, part.number, np.zeros_like(part.number)))
        for _ in left:
            if time.monotonic() >= due:
                on_progress(100 * (done + started()) / count, f"{done + started():,} jobs")
                due = time.monotonic() + LOOK_EVERY_S
        yield part, simulator
        done += int(part.first[-1])
    on_progress(100, f"{count:,} jobs")


def schedule(how: Scheduling[JobsInColumns], params: Params, asked: ScheduleRequest) -> None:
    """Write the schedule of a job table or log, and what the problem adds to it.

    Raises:
        UserError: an option, the policy, the jobs or the file to write cannot be.
    """
    must_apply(asked, how.refused)
    for place in (asked.out, *(added(asked.out, name) for name in how.extra)):
        check_out(place, inputs=[asked.jobs])
    ready = how.ready(params, asked)
    mine = read_user_jobs(asked.jobs, ready.columns)
    found = ready.run(mine)
    write(asked.out, mine, found, how)
    for name, (frame, schema, words) in found.extra.items():
        place = added(asked.out, name)
        write_table(place, frame, schema, how.digits)
        say(f"{place}: {words}")
    say(f"{asked.out}: {len(mine.number)} jobs{found.said}")


def added(out: Path, name: str) -> Path:
    """Return where more is written next to a schedule.

    >>> added(Path("mine/plan.csv.gz"), "shares").as_posix()
    'mine/plan_shares.csv.gz'
    """
    suffix = next((end for end in sorted(TABLE_SUFFIXES, key=len, reverse=True) if out.name.endswith(end)), "")
    return out.with_name(f"{out.name.removesuffix(suffix)}_{name}{suffix}")


def write(
    out: Path, mine: UserJobs[JobsInColumns], found: Scheduled, how: Scheduling[JobsInColumns], rows: int = ROWS
) -> None:
    """Write a schedule, `rows` rows at a time, in the order of the user's file."""
    with progress(f"write {out}, percent", 100, brief=True) as advance:
        write_chunks(out, _frames(out, mine, found, how, rows, advance), how.digits)


def _frames(
    out: Path,
    mine: UserJobs[JobsInColumns],
    found: Scheduled,
    how: Scheduling[JobsInColumns],
    rows: int,
    on_progress: ProgressCallback,
) -> Iterator[pd.DataFrame]:
    count = len(mine.number)
    for first in range(0, count, rows):
        frame = mine.ids.slice(first, rows).to_pandas()
        if isinstance(frame["jobset"].dtype, pd.CategoricalDtype):
            frame["jobset"] = frame["jobset"].astype(frame["jobset"].cat.categories.dtype)
        frame = frame.assign(**found.columns(slice(first, first + rows)))
        yield check_table(frame[list(how.schema.columns)], how.schema, str(out))
        done = first + len(frame)
        on_progress(100 * done / count, f"{done:,} jobs")
