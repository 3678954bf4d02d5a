"""One jobset of a shared cluster under some policies."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pipeline.comparing.plots import GREY, HATCHES, REFERENCE
from pipeline.core.config import Params
from pipeline.core.types import FloatArray, TimeArray
from pipeline.interactive.groups.scheduling import REFUSED, from_whole_interval, job_columns, policy_by_name
from pipeline.interactive.showing.drawing import Grid, Row, Window, whole_ticks
from pipeline.interactive.showing.show import Chosen, Ready, Showing, ShowRequest, Watched, unfinished
from pipeline.problems.groups.env.evaluation.play import Trajectory, trajectory
from pipeline.problems.groups.env.nouns import Jobs
from pipeline.problems.groups.env.workload.source import cluster_of
from pipeline.problems.groups.plots import COLOURS, EDGE, MOST_GROUPS, OTHERS, SHOWN

if TYPE_CHECKING:
    from matplotlib.axes import Axes


SHARES, QUEUE = 3.4, 1.8  # inches
PALE = 0.35  # opacity of an unused share
CAPTION = (
    "Pale: the share of each group in an interval, stacked. Full: the part of it that the group's jobs use, mean over "
    "the interval. Dashed: use by all jobs\n(it may exceed the full areas: jobs keep their units when their group's "
    "share falls, and may borrow). Below: waiting jobs at the beginning of each interval."
)


class Bands(NamedTuple):
    """The groups in the figure: all, or those with the largest use and the sum of the others."""

    names: list[str]
    colours: list[str]
    members: list[list[int]]  # groups of each band

    def sums(self, values: TimeArray) -> FloatArray:
        """Return values [N, G] summed [bands, N]."""
        return np.stack([values[:, some].sum(axis=1) for some in self.members])


def bands_of(trajectories: Sequence[Trajectory]) -> Bands:
    """Return the bands of a picture; of many groups, those with the largest use have one each."""
    used = np.asarray(sum(one.used.sum(axis=(0, 2)) for one in trajectories))
    kept, others = list(range(len(used))), list[int]()
    if len(used) > MOST_GROUPS:
        kept = sorted(np.argsort(-used, kind="stable")[:SHOWN].tolist())
        others = [g for g in range(len(used)) if g not in kept]
    names, colours, members = [f"group {g}" for g in kept], [*COLOURS[: len(kept)]], [[g] for g in kept]
    return Bands([*names, OTHERS], [*colours, GREY], [*members, others]) if others else Bands(names, colours, members)


def grid(
    resources: Mapping[str, int], interval: float, since: float, trajectories: Sequence[Trajectory], shown: Window
) -> Grid:
    """Return the rows of the picture: each resource, and the queue.

    Args:
        resources: units of each.
        interval: of the controller.
        since: origin of the trajectories' times.
        trajectories: of each policy.
        shown: the period in the picture.
    """
    bands, parts = bands_of(trajectories), []
    for one in trajectories:
        last = min(int(np.ceil((shown.end - since) / interval)), len(one.begin))
        first = min(int((shown.begin - since) // interval), last - 1)
        parts.append((slice(first, last), since + interval * np.arange(first, last + 1)))

    def resource(r: int, units: int, axes: "Axes", column: int) -> None:
        some, edges = parts[column]
        one = trajectories[column]
        share, used = bands.sums(one.share[some, :, r]), bands.sums(one.used[some, :, r])
        base = np.cumsum(share, axis=0) - share
        for k, (name, colour) in enumerate(zip(bands.names, bands.colours, strict=True)):
            axes.stairs(base[k] + share[k], edges, baseline=base[k], fill=True, color=colour, alpha=PALE, lw=0)
            top, hatch = base[k] + np.minimum(used[k], share[k]), HATCHES[k % len(HATCHES)]
            axes.stairs(top, edges, baseline=base[k], fill=True, fc=colour, ec=EDGE, hatch=hatch, lw=0, label=name)
        total = used.sum(axis=0)
        axes.stairs(total, edges, baseline=None, color="black", linewidth=0.9, linestyle="--", label="all jobs")
        axes.axhline(units, color=GREY, linewidth=0.8, gid=REFERENCE)
        axes.set_ylim(bottom=0)
        figure = axes.get_figure(root=True)
        if r == column == 0 and figure is not None:
            handles, names = axes.get_legend_handles_labels()
            figure.legend(handles[::-1], names[::-1], loc="outside right upper", fontsize=8, frameon=False)

    def waiting(axes: "Axes", column: int) -> None:
        some, edges = parts[column]
        jobs = bands.sums(trajectories[column].waiting[some])
        base = np.cumsum(jobs, axis=0) - jobs
        for k, colour in enumerate(bands.colours):
            top, hatch = base[k] + jobs[k], HATCHES[k % len(HATCHES)]
            axes.stairs(top, edges, baseline=base[k], fill=True, fc=colour, ec=EDGE, hatch=hatch, lw=0)
        whole_ticks(axes)
        axes.set_ylim(bottom=0)

    rows = [
        Row(f"{name} (units)", SHARES, partial(resource, r, units)) for r, (name, units) in enumerate(resources.items())
    ]
    return Grid([*rows, Row("Waiting (jobs)", QUEUE, waiting)], "Time (time units)", CAPTION, 1.9)


def ready(params: Params, asked: ShowRequest, policies: Sequence[str], names: Sequence[str]) -> Ready[Jobs]:
    """Return policies, ready for a jobset."""
    row = params.groups_scenario(asked.scenario)
    cluster = cluster_of(row)
    if asked.jobs is not None:
        cluster = cluster._replace(time_limit=np.inf)
    acts = [policy_by_name(name, params, asked.scenario) for name in policies]

    def watched(chosen: Chosen[Jobs]) -> Watched:
        jobs, since = from_whole_interval(chosen.jobs, row.interval) if asked.jobs is not None else (chosen.jobs, 0.0)
        found = [trajectory(act, jobs, cluster) for act in acts]
        last = max(float(one.begin[-1]) for one in found) + row.interval
        return Watched(
            [described(name, jobs, one) for name, one in zip(names, found, strict=True)],
            [float(np.nanmean(one.slowdown(jobs))) for one in found],
            since,
            since + last,
            lambda shown: 0,  # the figure shows sums, so it can show any number of jobs
            partial(grid, row.resources, row.interval, since, found),
        )

    return job_columns(row), watched


def described(name: str, jobs: Jobs, found: Trajectory) -> str:
    """Return the title of one policy's half, which also summarizes the picture in words."""
    cut = unfinished(int(np.isnan(found.finish).sum()))
    # Means over the jobs that finished or started; the values of the others are unknown.
    slowdown, wait = np.nanmean(found.slowdown(jobs)), np.nanmean(found.wait(jobs))
    changes = int((np.diff(found.share, axis=0) != 0).any(axis=(1, 2)).sum())
    last = np.nanmax(found.finish)
    return (
        f"{name}: mean slowdown {slowdown:.2f}, mean wait {wait:.1f}\n"
        f"last job ends at {last:.0f}{cut}, shares changed at {changes} of {len(found.begin)} intervals"
    )


SHOWING = Showing(ready, refused=REFUSED)
