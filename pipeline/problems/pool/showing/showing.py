"""One jobset on one pooled cluster under some policies."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from pipeline import storage
from pipeline.config import Params, PoolScenario
from pipeline.core import keys
from pipeline.errors import UserError
from pipeline.problems.pool.nouns import Cluster, JobSet
from pipeline.problems.pool.policies import policy_for
from pipeline.problems.pool.scheduling.playing import PATIENCE, must_end
from pipeline.problems.pool.showing.watching import watch
from pipeline.problems.pool.storage import read_jobsets
from pipeline.problems.pool.user_jobs import job_columns
from pipeline.showing.drawing import Box, Grid, Row, Window, bars, boxes, shade
from pipeline.showing.show import Chosen, Showing, ShowRequest, Viewer, Watched
from pipeline.showing.traces import Trace, queue_row, until, watched

if TYPE_CHECKING:
    from matplotlib.axes import Axes


GANTT, LINE = 2.3, 0.085  # inches; of a waiting job's line the last
MOST_LINES = 100  # that are still legible in one picture
WITHHELD = "#D55E00"
CAPTION = (
    "Each rectangle is a job on the units that it holds, with its number; the darker, the longer it runs. Rows only "
    "serve the picture: the cluster is one pool.\nBelow: jobs that wait in the slots and behind them; then each job "
    "that waits, from its arrival to its start. Hatched: it stood in a slot and fitted, but the policy withheld it."
)


def grid(chosen: Chosen[JobSet], scenario: PoolScenario, traces: Sequence[Trace], shown: Window) -> Grid:
    """Return the rows of the picture: each resource, the queue, and each job that waits."""
    from matplotlib.colors import Normalize

    jobs = chosen.jobs
    colour = shade(Normalize(1, max(2, int(jobs.duration.max()))))
    colours = colour.to_rgba(jobs.duration)
    late, waits = late_jobs(jobs, traces, shown)

    def resource(r: int, units: int) -> Row:
        def drawn(axes: "Axes", column: int) -> None:
            axes.set_ylim(0, units)
            boxes(axes, placed(traces[column], jobs, r, units), chosen.names, colours, shown, GANTT * 72 / units)

        return Row(f"{list(scenario.resources)[r]} (units)", GANTT, drawn)

    def lines(axes: "Axes", column: int) -> None:
        _lines(axes, chosen, traces[column], late, shown, colours)

    said = "Waiting jobs" if len(late) == waits else f"{len(late)} of {waits} waiting jobs"
    rows = [resource(r, units) for r, units in enumerate(scenario.resources.values())]
    rows += [
        queue_row(jobs.arrival, traces, scenario.slots, shown, partial(_mark, shown)),
        Row(said, max(0.8, LINE * len(late)), lines),
    ]
    return Grid(rows, "Step", CAPTION, 2.6, (colour, "Duration of a job (steps)"))


def placed(trace: Trace, jobs: JobSet, r: int, units: int) -> list[Box]:
    """Return where jobs are drawn that hold some of a resource."""
    some = np.flatnonzero(~np.isnan(trace.start) & (jobs.demand[:, r] > 0))
    found = bars(trace.start[some], trace.finish[some], jobs.demand[some, r], units)
    return [Box(int(some[bar.job]), bar.begin, bar.end, bar.bottom, bar.bottom + bar.height) for bar in found]


def late_jobs(jobs: JobSet, traces: Sequence[Trace], shown: Window) -> tuple[list[int], int]:
    """Return the jobs that wait in the window under any policy, in order of arrival, and how many there are.

    Of too many, those stay that are withheld, and those that wait longest.
    """
    waits, held = np.zeros(len(jobs.arrival)), np.zeros(len(jobs.arrival), dtype=bool)
    for trace in traces:
        inside = np.minimum(until(jobs.arrival, trace), shown.end) - np.maximum(jobs.arrival, shown.begin)
        waits = np.maximum(waits, inside)
        held |= [any(shown.begin <= step < shown.end for step in steps) for steps in trace.withheld]
    found = np.flatnonzero(waits > 0)
    kept = found[np.lexsort((-waits[found], ~held[found]))][:MOST_LINES]
    return sorted(kept.tolist()), len(found)


def _mark(shown: Window, axes: "Axes", trace: Trace) -> None:
    """Mark the steps in which a job is withheld."""
    marked = {step for steps in trace.withheld for step in steps if shown.begin <= step < shown.end}
    rows = [(step, 1) for step in sorted(marked)]
    axes.broken_barh(rows, (0, 0.06), transform=axes.get_xaxis_transform(), color=WITHHELD, label="a job is withheld")


def _lines(
    axes: "Axes", chosen: Chosen[JobSet], trace: Trace, late: Sequence[int], shown: Window, colours: "np.ndarray"
) -> None:
    left = until(chosen.jobs.arrival, trace)
    for line, job in enumerate(late):
        begin, end = max(chosen.jobs.arrival[job], shown.begin), min(left[job], shown.end)
        if begin < end:
            axes.barh(line, end - begin, 0.55, begin, color=colours[job], linewidth=0)
        spans = [(at, length) for at, length in _spans(trace.withheld[job]) if shown.begin <= at < shown.end]
        axes.broken_barh(
            spans, (line - 0.45, 0.9), facecolor="white", edgecolor=WITHHELD, hatch="//////", linewidth=0.7
        )
    axes.set_ylim(max(len(late), 1) - 0.4, -0.6)
    each = 1 if len(late) < 8 else 2
    axes.set_yticks(range(0, len(late), each), [chosen.names[job] for job in late[::each]])
    axes.grid(axis="x", color="#E5E5E5", linewidth=0.6)
    axes.set_axisbelow(True)


def _spans(steps: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Return (first, length) of each run of consecutive steps.

    >>> list(_spans([3, 4, 5, 9]))
    [(3, 3), (9, 1)]
    """
    runs = np.split(np.array(steps, dtype=np.int64), np.flatnonzero(np.diff(steps) > 1) + 1)
    return ((int(run[0]), len(run)) for run in runs if len(run))


def ready(params: Params, asked: ShowRequest, policies: Sequence[str], names: Sequence[str]) -> Viewer[JobSet]:
    """Return policies, ready for a jobset."""
    scenario = params.pool_scenario(asked.scenario)
    cluster = Cluster.of(scenario)
    if asked.jobs is not None:  # of a user's own jobs only the user knows when arrivals end
        cluster = cluster._replace(arrivals_end=asked.arrivals_end)
    elif asked.arrivals_end is not None:
        raise UserError("--arrivals-end is for your own jobs; of a scenario's jobsets policies know the scenario's")
    known = [policy_for(params, name, scenario, asked.scenario, cluster) for name in policies]

    def shown(chosen: Chosen[JobSet]) -> Watched:
        jobs, key = chosen.jobs, keys(params.seed, np.array([chosen.number]), np.array([0]))
        if asked.jobs is not None:
            must_end(jobs.arrival, cluster, str(asked.jobs))
            jobs = JobSet._make(None if column is None else column.astype(np.int64) for column in jobs)
        traces = []
        for name, (policy, masked) in zip(names, known, strict=True):
            longest = int(jobs.arrival.max() + (1 if masked else PATIENCE) * jobs.duration.sum() + cluster.horizon)
            limit = scenario.step_limit if asked.jobs is None else longest
            traces.append(watch(name, policy, jobs, cluster, limit, key, masked))
        return watched(traces, jobs.arrival, partial(grid, chosen._replace(jobs=jobs), scenario, traces))

    test = partial(read_jobsets, storage.jobsets_folder(asked.scenario), "test", scenario.resources)
    return Viewer(job_columns(params, scenario), test, shown)


SHOWING = Showing(ready, most_jobs=600, most_steps=400)
