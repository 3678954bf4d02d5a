"""Google's clusterdata-2011: the task events, in one `part-*.csv[.gz]` or a folder of them, which form one log.

The thirteen columns have no header. A row is an event of a task, which has its job's number and an index in that job.
A task is submitted (event 0), is scheduled on a machine (1) and finishes (4). Its run time is the time between the last
two. Its demand is the request at submission; cores and memory are shares of the largest machine, here in percent.

A task that was ever evicted (2), failed (3), killed (5) or lost (6) is dropped for the first of these, because its run
time is unknown. So is a task from before the log (time 0), or one that did not finish before the log ended. If a task
finished and was submitted again, its first run counts. Changes of requests (7, 8) are ignored. The counted rows are
tasks, each at the line of its first event; in a folder, line numbers continue from file to file.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
import pandera.pandas as pa

from pipeline.core.logs.rows import MOST, NUMBER, Layout, number, rows, schema
from pipeline.core.logs.trace import PERCENT, Columns, Facts, Sieve, Trace, in_order, jobs, select, together
from pipeline.core.types import BoolArray, IntArray
from pipeline.errors import UserError
from pipeline.progress import ProgressCallback, no_progress

NAMES = "time missing job task machine event user class priority cpu memory disk different_machine"
BEYOND = 1e19  # limit of times, above AFTER
SCHEMA = schema("google2011", amounts="cpu memory", words="user").add_columns(
    {
        "time": number(BEYOND, nullable=False),
        "job": number(MOST, nullable=False),
        "task": number(MOST, nullable=False),
        "event": pa.Column("float64", pa.Check.isin(range(9), error=f"{NUMBER} of an event, 0 to 8"), coerce=True),
    }
)
LAYOUT = Layout(SCHEMA, tuple(NAMES.split()))
FACTS = Facts(("cpu", "memory"), (PERCENT, PERCENT))
# Compact types, because there are many events; `task` is the task's index in its job, `time` is in microseconds.
TYPES: Mapping[str, type[np.generic]] = {
    **{"job": np.int64, "task": np.int32, "time": np.float64, "event": np.int8},
    **{"cpu": np.float32, "memory": np.float32},
}
SUBMIT, SCHEDULE, FINISH = 0, 1, 4
BROKEN = {2: "evicted", 3: "failed", 5: "killed", 6: "lost"}
MICRO = 1e-6
AFTER = float(2**63 - 1)  # a time that stands for "when the log had ended"
NO_SUBMIT, BEFORE = "no event of submission", "submitted before the log begins"
NEVER, NOT_DONE = "never scheduled", "not finished when the log ends"
NO_DEMAND, BELOW_0, BACKWARDS = "CPU or memory unknown", "CPU or memory below 0", "run time below 0"
AGAIN = "submitted again after it finished: first run taken"


def read(path: Path, on_progress: ProgressCallback = no_progress) -> Trace:
    """Read the tasks of a file of events, or of a folder of such files."""
    sieve, parts = Sieve(), _events(path, on_progress)
    if not parts:
        raise UserError(f"{path}: expected jobs, found an empty log")
    events = together(parts)
    select(events, np.lexsort((events["task"], events["job"])))  # task by task, with a task's events in their order
    first = np.flatnonzero(np.diff(events["job"], prepend=-1) | np.diff(events["task"], prepend=-1))
    return in_order([_tasks(events, first, sieve)], sieve, FACTS, len(first), path)


def _events(path: Path, on_progress: ProgressCallback) -> list[Columns]:
    """Return all events in parts: columns [E] of `TYPES`, the user, and the event's line and row, each from 1."""
    files = sorted(path.glob("part-*.csv*")) if path.is_dir() else [path]
    if not files:
        raise UserError(f"{path}: expected files part-*.csv or part-*.csv.gz, found none")
    parts, users, seen, lines = list[Columns](), dict[str, int](), 0, 0
    for place, file in enumerate(files):

        def of_all(percent: float, note: str, done: int = place) -> None:
            on_progress((100 * done + percent) / len(files), note)

        before = lines
        for frame in rows(file, LAYOUT, of_all):
            codes, names = pd.factorize(frame["user"])
            known = np.array([users.setdefault(name, len(users)) for name in names] + [-1], dtype=np.int32)
            part = {name: frame[name].to_numpy(dtype=kind) for name, kind in TYPES.items()}
            part["user"] = known[codes]  # an unknown user has the code -1: the last index
            part["line"] = (frame.index.to_numpy() + before).astype(np.int32)
            part["row"] = np.arange(seen + 1, seen + len(frame) + 1, dtype=np.int32)
            parts.append(part)
            seen, lines = seen + len(frame), before + int(frame.index[-1])
    return parts


def _tasks(events: Columns, first: IntArray, sieve: Sieve) -> Columns:
    submit, start, finish = (_place(events["event"] == event, first) for event in (SUBMIT, SCHEDULE, FINISH))
    time = np.append(events["time"], np.nan)
    causes = {NO_SUBMIT: submit < 0, BEFORE: time[submit] <= 0}
    broken = _place(np.isin(events["event"], list(BROKEN)), first)
    ended_by = np.where(broken < 0, -1, events["event"][broken])
    causes |= {reason: ended_by == event for event, reason in BROKEN.items()}
    causes |= {NEVER: start < 0, NOT_DONE: (finish < 0) | (time[finish] >= AFTER)}
    cpu, memory = (np.append(events[name], np.nan)[submit].astype(np.float64) for name in FACTS.resources)
    causes |= {BACKWARDS: time[finish] < time[start], NO_DEMAND: np.isnan(cpu) | np.isnan(memory)}
    line = events["line"][first]
    kept = sieve.keep(line, causes | {BELOW_0: (cpu < 0) | (memory < 0)})
    submissions = np.add.reduceat(events["event"] == SUBMIT, first, dtype=np.int64)
    sieve.repair(AGAIN, line[kept & (submissions > 1)])
    return jobs(
        sieve, line, kept, 100 * np.column_stack([cpu, memory]),
        id=events["row"][submit],
        submit_s=time[submit] * MICRO,
        run_s=(time[finish] - time[start]) * MICRO,
        wait_s=np.where(time[start] >= time[submit], time[start] - time[submit], np.nan) * MICRO,
        user=events["user"][submit],
    )  # fmt: skip


def _place(events: BoolArray, first: IntArray) -> IntArray:
    """Return the index of each task's first event of a kind; -1 = none.

    >>> _place(np.array([False, True, True, False, False, True]), np.array([0, 3, 4]))
    array([ 1, -1,  5])
    """
    places = np.where(events, np.arange(len(events)), len(events))
    found = np.minimum.reduceat(places, first)
    return np.where(found == len(events), -1, found)
