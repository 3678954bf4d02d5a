"""One jobset of a shared cluster under some policies."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pipeline import storage
from pipeline.comparing.plots import GREY
from pipeline.config import Params
from pipeline.core import FloatArray, TimeArray
from pipeline.problems.groups.evaluation.watching import Course, watch
from pipeline.problems.groups.nouns import Jobs
from pipeline.problems.groups.plots import COLOURS, MOST_GROUPS, OTHERS, SHOWN
from pipeline.problems.groups.policies import policy_by_name
from pipeline.problems.groups.scheduling import REFUSED, from_whole_interval, job_columns
from pipeline.problems.groups.storage import read_jobsets
from pipeline.problems.groups.workload.source import cluster_of
from pipeline.showing.drawing import Grid, Row, Window, whole_ticks
from pipeline.showing.show import Chosen, Showing, ShowRequest, Viewer, Watched

if TYPE_CHECKING:
    from matplotlib.axes import Axes


SHARES, QUEUE = 3.4, 1.8  # inches
PALE = 0.35  # of a share that is not used
CAPTION = (
    "Pale: what a group may use in an interval, one group upon the other. Full: what its jobs hold of that, mean over "
    "the interval. Dashed: what all jobs\nhold; it may be above the full areas, for jobs keep their units when their "
    "group's share falls, and may borrow. Below: jobs that wait as an interval begins."
)


class Bands(NamedTuple):
    """The groups that are drawn: all, or those that use most and the sum of the others."""

    names: list[str]
    colours: list[str]
    members: list[list[int]]  # groups of each band

    def sums(self, values: TimeArray) -> FloatArray:
        """Return values [N, G] summed [bands, N]."""
        return np.stack([values[:, some].sum(axis=1) for some in self.members])


def grid(resources: Mapping[str, int], interval: float, since: float, courses: Sequence[Course], shown: Window) -> Grid:
    """Return the rows of the picture: each resource, and the queue.

    Args:
        resources: units of each.
        interval: of the controller.
        since: what times of the courses count from.
        courses: of each policy.
        shown: the time that is drawn.
    """
    bands = bands_of(courses)
    parts = [_shown(interval, course, shown.begin - since, shown.end - since) for course in courses]

    def resource(r: int, units: int) -> Row:
        def drawn(axes: "Axes", column: int) -> None:
            some, edges = parts[column]
            _shares(axes, courses[column], r, units, bands, some, since + edges)
            axes.set_ylim(bottom=0)
            if r == column == 0:
                handles, names = axes.get_legend_handles_labels()
                figure = axes.get_figure(root=True)
                if figure is not None:
                    figure.legend(handles[::-1], names[::-1], loc="outside right upper", fontsize=8, frameon=False)

        return Row(f"{list(resources)[r]} (units)", SHARES, drawn)

    def waiting(axes: "Axes", column: int) -> None:
        some, edges = parts[column]
        _waiting(axes, bands.sums(courses[column].waiting[some]), since + edges, bands.colours)
        axes.set_ylim(bottom=0)

    rows = [resource(r, units) for r, units in enumerate(resources.values())]
    return Grid([*rows, Row("Jobs waiting", QUEUE, waiting)], "Time", CAPTION, 1.9)


def bands_of(courses: Sequence[Course]) -> Bands:
    """Return the bands of a picture; of many groups, those that use most have one each."""
    used = sum(course.used.sum(axis=(0, 2)) for course in courses)
    groups = range(len(np.asarray(used)))
    if len(groups) <= MOST_GROUPS:
        kept, others = list(groups), list[int]()
    else:
        kept = sorted(np.argsort(-np.asarray(used), kind="stable")[:SHOWN].tolist())
        others = [g for g in groups if g not in kept]
    names, colours = [f"group {g}" for g in kept], [COLOURS[k] for k in range(len(kept))]
    if others:
        names, colours = [*names, OTHERS], [*colours, GREY]
    return Bands(names, colours, [*([g] for g in kept), *([others] if others else [])])


def _shares(axes: "Axes", course: Course, r: int, units: int, bands: Bands, some: slice, edges: FloatArray) -> None:
    share, used = bands.sums(course.share[some, :, r]), bands.sums(course.used[some, :, r])
    base = np.cumsum(share, axis=0) - share
    for k, (name, colour) in enumerate(zip(bands.names, bands.colours, strict=True)):
        axes.stairs(base[k] + share[k], edges, baseline=base[k], fill=True, color=colour, alpha=PALE, lw=0)
        top = base[k] + np.minimum(used[k], share[k])
        axes.stairs(top, edges, baseline=base[k], fill=True, color=colour, lw=0, label=name)
    axes.stairs(used.sum(axis=0), edges, baseline=None, color="black", linewidth=0.9, linestyle="--", label="all jobs")
    axes.axhline(units, color=GREY, linewidth=0.8)


def _waiting(axes: "Axes", waiting: FloatArray, edges: FloatArray, colours: Sequence[str]) -> None:
    base = np.cumsum(waiting, axis=0) - waiting
    for k, colour in enumerate(colours):
        axes.stairs(base[k] + waiting[k], edges, baseline=base[k], fill=True, color=colour, lw=0)
    whole_ticks(axes)


def _shown(interval: float, course: Course, begin: float, end: float) -> tuple[slice, FloatArray]:
    """Return the intervals that are at least partly shown, and their edges in time."""
    last = min(int(np.ceil(end / interval)), len(course.begin))
    first = min(int(begin // interval), last - 1)
    return slice(first, last), interval * np.arange(first, last + 1)


def ready(params: Params, asked: ShowRequest, policies: Sequence[str], names: Sequence[str]) -> Viewer[Jobs]:
    """Return policies, ready for a jobset."""
    row = params.groups_scenario(asked.scenario)
    cluster = drawn = cluster_of(row)
    if asked.jobs is not None:
        cluster = cluster._replace(time_limit=np.inf)
    acts = [policy_by_name(name, params, asked.scenario) for name in policies]

    def watched(chosen: Chosen[Jobs]) -> Watched:
        jobs, since = from_whole_interval(chosen.jobs, row.interval) if asked.jobs is not None else (chosen.jobs, 0.0)
        courses = [watch(act, jobs, cluster) for act in acts]
        last = max(float(course.begin[-1]) for course in courses) + row.interval
        return Watched(
            [described(name, jobs, course) for name, course in zip(names, courses, strict=True)],
            [float(np.nanmean(course.slowdown(jobs))) for course in courses],
            since,
            since + last,
            lambda shown: 0,  # however many there are, what is drawn is sums
            partial(grid, row.resources, row.interval, since, courses),
        )

    test = partial(read_jobsets, storage.jobsets_folder(asked.scenario), "test", row.resources, drawn)
    return Viewer(job_columns(row), test, watched)


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


SHOWING = Showing(ready, refused=REFUSED)
