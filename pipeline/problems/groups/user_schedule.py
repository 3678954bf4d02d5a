"""Run any policy over a user's own jobs; write when each starts, and what each group was given and used over time."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from pipeline.config import Params
from pipeline.errors import UserError
from pipeline.problems.groups.evaluation.watching import Course, watch
from pipeline.problems.groups.policies import policy_by_name
from pipeline.problems.groups.tables import SCHEDULE, shares_schema
from pipeline.problems.groups.user_jobs import UserJobs, UserJobset, read_jobs
from pipeline.problems.groups.workload.source import cluster_of
from pipeline.problems.parts import ScheduleRequest, must_have_no_end
from pipeline.progress import Advance, ShareCallback, progress, say
from pipeline.storage.files import check_out, write_table
from pipeline.storage.user_tables import TABLE_SUFFIXES

DIGITS = 12  # of times in text, which may be those of a clock
REFUSED = {
    "capacity": "queues, levels and shares of groups go with the scenario's resources: change those in params.yaml",
    "slots": "a controller sees all queues of its groups, which have no slots",
    "horizon": "jobs of groups start at once or wait; nothing is placed within a horizon",
    "samples": "a controller draws nothing: it sets the same shares every time",
    "search": "shares are set interval by interval, and no schedule with all jobs known is made",
}


def schedule_jobs(params: Params, asked: ScheduleRequest) -> None:
    """Write the schedule of a job table or log, and beside it the shares."""
    row = params.groups_scenario(asked.scenario)
    _must_make_sense(asked)
    check_out(asked.out, inputs=[asked.jobs])
    beside = shares_file(asked.out)
    check_out(beside, inputs=[asked.jobs])
    act = policy_by_name(asked.policy, params, asked.scenario)
    with progress(f"read {asked.jobs}, percent", 100, brief=True) as advance:
        mine = read_jobs(asked.jobs, row, advance)
    for note in mine.notes:
        say(note)
    cluster = cluster_of(row)._replace(time_limit=np.inf)  # of jobs that are drawn; a user's own are all run
    jobsets, courses = mine.jobsets(row.interval), list[Course]()
    with progress(f"schedule by {asked.policy}, percent", 100, brief=True) as advance:
        for k, one in enumerate(jobsets):
            courses.append(watch(act, one.jobs, cluster, _part(advance, k, len(jobsets))))
        advance(100)
    table = scheduled(mine, jobsets, courses, row.queues)
    write_table(asked.out, table, SCHEDULE, DIGITS)
    resources = list(row.resources)
    write_table(beside, shares(jobsets, courses, resources), shares_schema(resources), DIGITS)
    say(f"{beside}: what each group was given, and what it used, in every interval of {row.interval:g}")
    say(f"{asked.out}: {told(table)} under {asked.policy}")


def shares_file(out: Path) -> Path:
    """Return where shares are written beside a schedule.

    >>> shares_file(Path("mine/plan.csv.gz")).as_posix()
    'mine/plan_shares.csv.gz'
    """
    suffix = next(suffix for suffix in sorted(TABLE_SUFFIXES, key=len, reverse=True) if out.name.endswith(suffix))
    return out.with_name(f"{out.name.removesuffix(suffix)}_shares{suffix}")


def scheduled(
    mine: UserJobs, jobsets: Sequence[UserJobset], courses: Sequence[Course], queues: Sequence[str]
) -> pd.DataFrame:
    """Return SCHEDULE, in the order of the file."""
    columns = {name: np.full(len(mine.ids), np.nan) for name in ("start", "finish", "slowdown", "wait")}
    for one, course in zip(jobsets, courses, strict=True):
        columns["start"][one.rows] = course.start + one.since
        columns["finish"][one.rows] = course.finish + one.since
        columns["slowdown"][one.rows] = course.slowdown(one.jobs)
        columns["wait"][one.rows] = course.wait(one.jobs)
    queue = np.array(queues, dtype=object)[mine.jobs.queue]
    return mine.ids.assign(group=mine.jobs.group.astype(np.int64), queue=pd.Series(queue, dtype="str"), **columns)


def shares(jobsets: Sequence[UserJobset], courses: Sequence[Course], resources: Sequence[str]) -> pd.DataFrame:
    """Return the shares of every jobset: a row an interval and group."""
    frames = []
    for one, course in zip(jobsets, courses, strict=True):
        intervals, groups = course.waiting.shape
        columns = {
            "jobset": one.name,
            "begin": np.repeat(course.begin + one.since, groups),
            "group": np.tile(np.arange(groups), intervals),
            "waiting": course.waiting.ravel().astype(np.int64),
        }
        columns |= {f"share_{name}": course.share[:, :, r].ravel().astype(np.int64) for r, name in enumerate(resources)}
        columns |= {f"used_{name}": course.used[:, :, r].ravel() for r, name in enumerate(resources)}
        frames.append(pd.DataFrame(columns))
    return pd.concat(frames, ignore_index=True)


def told(table: pd.DataFrame) -> str:
    """Return a schedule in a few words."""
    never = int(table["start"].isna().sum())
    left = f", {never} of them never started, for their groups are given too little" if never else ""
    means = " and ".join(f"mean {name} {table[name].mean():.4g}" for name in ("slowdown", "wait"))
    return f"{len(table)} jobs{left}, {means}"


def _part(advance: Advance, done: int, count: int) -> ShareCallback:
    """Return what is called with the share of one jobset that is done, and shows that of all."""
    return lambda share: advance(100 * (done + share) / count)


def _must_make_sense(asked: ScheduleRequest) -> None:
    must_have_no_end(asked)
    given = {"capacity": asked.capacity, "slots": asked.slots, "horizon": asked.horizon}
    for name, value in (given | {"samples": asked.samples or None, "search": asked.tries or None}).items():
        if value is not None:
            raise UserError(f"--{name}: not in scenario '{asked.scenario}': {REFUSED[name]}")
