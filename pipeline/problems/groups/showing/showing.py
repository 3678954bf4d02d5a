"""One jobset under two policies, side by side, as a picture."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pipeline import storage
from pipeline.comparing.plots import png
from pipeline.config import GroupsScenario, Params
from pipeline.errors import UserError
from pipeline.problems.groups.evaluation.watching import Course, watch
from pipeline.problems.groups.nouns import Jobs, SharedCluster
from pipeline.problems.groups.policies import policy_by_name
from pipeline.problems.groups.showing.drawing import Half, Scene, side_by_side
from pipeline.problems.groups.storage import read_jobsets
from pipeline.problems.groups.user_jobs import chosen, read_jobs
from pipeline.problems.groups.workload.source import cluster_of
from pipeline.problems.one_jobset import test_jobset
from pipeline.problems.parts import Picture, ShowRequest, must_have_no_end
from pipeline.progress import progress, say


class Jobset(NamedTuple):
    """The jobset that is shown."""

    title: str
    jobs: Jobs
    cluster: SharedCluster
    since: float  # what its times count from


def draw(params: Params, asked: ShowRequest, policies: Sequence[str], names: Sequence[str]) -> Picture:
    """Return the picture of a jobset under some policies."""
    row = params.groups_scenario(asked.scenario)
    must_have_no_end(asked)
    acts = [policy_by_name(name, params, asked.scenario) for name in policies]
    one = _choose(asked, row)
    courses = [watch(act, one.jobs, one.cluster) for act in acts]
    halves = [
        Half(described(name, one.jobs, course), course) for name, course in zip(names or policies, courses, strict=True)
    ]
    begin, end = _window(asked, one, courses)
    scene = Scene(one.title, row.resources, row.interval, one.since, begin, end)
    means = [float(np.nanmean(course.slowdown(one.jobs))) for course in courses]
    return Picture(png(side_by_side(scene, halves)), one.title, [half.title for half in halves], means)


def described(name: str, jobs: Jobs, course: Course) -> str:
    """Return the title of one policy's half, which is also the picture in words."""
    unfinished = int(np.isnan(course.finish).sum())
    cut = f", {unfinished} jobs unfinished" if unfinished else ""
    # Over the jobs that it has finished, or started: what others will come to is not known.
    slowdown, wait = np.nanmean(course.slowdown(jobs)), np.nanmean(course.wait(jobs))
    changes = int((np.diff(course.share, axis=0) != 0).any(axis=(1, 2)).sum())
    last = np.nanmax(course.finish)
    return (
        f"{name}: mean slowdown {slowdown:.2f}, mean wait {wait:.1f}\n"
        f"last job ends at {last:.0f}{cut}, shares changed at {changes} of {len(course.begin)} intervals"
    )


def _choose(asked: ShowRequest, row: GroupsScenario) -> Jobset:
    cluster = cluster_of(row)
    if asked.jobs is None:
        folder = storage.jobsets_folder(asked.scenario)
        title, jobs, _ = test_jobset(read_jobsets(folder, "test", row.resources, cluster), asked)
        return Jobset(title, jobs, cluster, 0.0)
    if asked.load is not None:
        raise UserError("--load is one of the scenario's own jobsets; a job table has none")
    with progress(f"read {asked.jobs}, percent", 100, brief=True) as advance:
        mine = read_jobs(asked.jobs, row, advance)
    for note in mine.notes:
        say(note)
    one = chosen(mine.jobsets(row.interval), asked.jobs, asked.jobset)
    title = f"{asked.jobs.name}, jobset {one.name}, on the cluster of scenario {asked.scenario}: {len(one.rows)} jobs"
    return Jobset(title, one.jobs, cluster._replace(time_limit=np.inf), one.since)


def _window(asked: ShowRequest, one: Jobset, courses: Sequence[Course]) -> tuple[float, float]:
    """Return the times that are drawn, by the simulator's clock: those asked for, or all.

    Raises:
        UserError: nothing happens in them.
    """
    first, last = one.since, one.since + max(float(course.begin[-1]) for course in courses) + one.cluster.interval
    begin, end = (default if given is None else given for given, default in ((asked.begin, first), (asked.end, last)))
    if not first <= begin < min(end, last):
        raise UserError(f"times {begin:g} to {end:g}: nothing to draw; the jobset runs from time {first:g} to {last:g}")
    return begin - one.since, min(end, last) - one.since
