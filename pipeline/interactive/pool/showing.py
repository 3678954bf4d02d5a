"""Pictures of one jobset on one pooled cluster under some policies.

A job is withheld in a step that passes while it is in a slot and fits. Withholding is a choice, so this can only be the
step after a decision of the policy; forced moves, which the simulator makes, withhold nothing and start jobs at once.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from pipeline.core.config import Params, PoolScenario
from pipeline.core.types import FloatArray, IntArray, KeyArray, Observation, Policy, keys
from pipeline.errors import UserError
from pipeline.interactive.pool.policies import cluster_for, policy_for
from pipeline.interactive.pool.scheduling import PATIENCE, job_columns, must_end
from pipeline.interactive.showing import show
from pipeline.interactive.showing.drawing import Box, Grid, Row, Window, bars, boxes, shade
from pipeline.problems.pool.env.evaluation.metrics import outcome
from pipeline.problems.pool.env.nouns import Cluster, JobSet, batch
from pipeline.problems.pool.env.simulator.batch import Batched
from pipeline.simulation.rollout import play

if TYPE_CHECKING:
    from matplotlib.axes import Axes


GANTT, LINE = 2.3, 0.085  # inches: height of a resource, and of a waiting job's line
MOST_LINES = 100  # that are still legible in one picture
WITHHELD = "#D55E00"
CAPTION = (
    "Each rectangle is a job on the units that it holds, with its number; the darker, the longer it runs. Rows only "
    "serve the picture: the cluster is one pool.\nBelow: jobs that wait in the slots and in the backlog; then each job "
    "that waits, from its arrival to its start. Hatched: it was in a slot and fitted, but the policy withheld it."
)


def watch(
    name: str, policy: Policy, jobs: JobSet, cluster: Cluster, step_limit: int, key: KeyArray, masked: bool = True
) -> show.Trace:
    """Return the trace of a policy on a jobset; `key` [1] is the random key of the episode.

    If `masked`, the policy keeps to the legal actions and skips forced moves.
    """
    jobset = batch([jobs])
    simulator = Batched(jobset, cluster, step_limit, skip_forced=masked)
    witness = Witness(simulator)
    play(simulator, policy, key, witness)
    witness.catch_up()
    end = simulator.schedule()
    steps = int(end.steps[0])
    _, slowdown, _, undone = outcome(jobset, end, step_limit)
    finish, start, left = (np.where(one < 0, np.nan, one) for one in (end.finish, end.start, witness.left))
    finish = np.where(np.isnan(finish), steps, finish)
    idle = len({step for held in witness.withheld for step in held})
    said = (
        f"makespan {steps}{show.unfinished(int(undone.sum()))}\n{idle} steps not work-conserving "
        f"({100 * idle / max(steps, 1):.0f} %), {sum(map(bool, witness.withheld))} jobs withheld"
    )
    return show.Trace(name, start, finish, left, slowdown, steps, said, witness.withheld)


class Witness:
    """Observer of an episode that records, at each decision, the result of the one before."""

    def __init__(self, simulator: Batched) -> None:
        self._simulator, self._before = simulator, simulator.schedule()
        self._asked_at, self._placed = -1, False
        self.left: IntArray = self._before.start.copy()
        self.withheld: list[list[int]] = [[] for _ in self._before.start]

    def __call__(self, rows: IntArray, view: Observation, actions: IntArray) -> None:
        """Record a decision before it is carried out."""
        self.catch_up()
        slot = int(actions[0])
        self._asked_at = int(view.now[0])
        self._placed = slot < view.legal.shape[1] and bool(view.legal[0, slot, 0])

    def catch_up(self) -> None:
        """Record the result of the last decision, and of the forced moves since."""
        now, before = self._simulator.schedule(), self._before
        for job in np.flatnonzero(now.withheld > before.withheld):
            self.withheld[job].append(self._asked_at)
        started = np.flatnonzero((now.start >= 0) & (before.start < 0))
        self.left[started] = now.start[started]
        if self._placed:  # it began before all forced starts, as these found the cluster idle
            self.left[started[np.argmin(now.start[started])]] = self._asked_at
        self._before, self._placed = now, False


def grid(chosen: show.Chosen[JobSet], scenario: PoolScenario, traces: Sequence[show.Trace], shown: Window) -> Grid:
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

    said = "Waiting jobs (names)" if len(late) == waits else f"{len(late)} of {waits} waiting jobs (names)"
    rows = [resource(r, units) for r, units in enumerate(scenario.resources.values())]
    rows += [
        show.queue_row(jobs.arrival, traces, scenario.slots, shown, partial(_mark, shown)),
        Row(said, max(0.8, LINE * len(late)), lines),
    ]
    return Grid(rows, "Time (steps)", CAPTION, 2.6, (colour, "Duration of a job (steps)"))


def placed(trace: show.Trace, jobs: JobSet, r: int, units: int) -> list[Box]:
    """Return the rectangles of jobs that hold some of a resource."""
    some = np.flatnonzero(~np.isnan(trace.start) & (jobs.demand[:, r] > 0))
    found = bars(trace.start[some], trace.finish[some], jobs.demand[some, r], units)
    return [box._replace(job=int(some[box.job])) for box in found]


def late_jobs(jobs: JobSet, traces: Sequence[show.Trace], shown: Window) -> tuple[list[int], int]:
    """Return the jobs that wait in the window under any policy, in order of arrival, and their number.

    If there are too many, withheld jobs are kept first, then those that wait longest.
    """
    waits, held = np.zeros(len(jobs.arrival)), np.zeros(len(jobs.arrival), dtype=bool)
    for trace in traces:
        inside = np.minimum(show.until(jobs.arrival, trace), shown.end) - np.maximum(jobs.arrival, shown.begin)
        waits = np.maximum(waits, inside)
        held |= [any(shown.begin <= step < shown.end for step in steps) for steps in trace.withheld]
    found = np.flatnonzero(waits > 0)
    kept = found[np.lexsort((-waits[found], ~held[found]))][:MOST_LINES]
    return sorted(kept.tolist()), len(found)


def _mark(shown: Window, axes: "Axes", trace: show.Trace) -> None:
    """Mark the steps in which a job is withheld."""
    marked = {step for steps in trace.withheld for step in steps if shown.begin <= step < shown.end}
    rows = [(step, 1) for step in sorted(marked)]
    axes.broken_barh(rows, (0, 0.06), transform=axes.get_xaxis_transform(), color=WITHHELD, label="a job is withheld")


def _lines(
    axes: "Axes", chosen: show.Chosen[JobSet], trace: show.Trace, late: list[int], shown: Window, colours: FloatArray
) -> None:
    left = show.until(chosen.jobs.arrival, trace)
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


def ready(params: Params, asked: show.ShowRequest, policies: Sequence[str], names: Sequence[str]) -> show.Ready[JobSet]:
    """Return policies that are ready for a jobset."""
    scenario = params.pool_scenario(asked.scenario)
    cluster = Cluster.of(scenario)
    if asked.jobs is not None:  # only the user knows the load and end of arrivals of own jobs
        cluster = cluster._replace(arrivals_end=asked.arrivals_end, load=asked.load, measured=None)
    elif asked.arrivals_end is not None:
        raise UserError("--arrivals-end is for your own jobs; of a scenario's jobsets policies know the scenario's")
    clusters = [cluster._replace(place_ahead=cluster_for(name, scenario).place_ahead) for name in policies]
    pairs = zip(policies, clusters, strict=True)
    known = [policy_for(params, name, scenario, asked.scenario, own) for name, own in pairs]

    def shown(chosen: show.Chosen[JobSet]) -> show.Watched:
        jobs, key = chosen.jobs, keys(params.seed, np.array([chosen.number]), np.array([0]))
        if asked.jobs is not None:
            must_end(jobs.arrival, cluster, str(asked.jobs))
            jobs = JobSet._make([*(None if column is None else column.astype(np.int64) for column in jobs[:-1]), None])
        traces = []
        for name, (policy, masked), own in zip(names, known, clusters, strict=True):
            longest = int(jobs.arrival.max() + (1 if masked else PATIENCE) * jobs.duration.sum() + cluster.horizon)
            limit = scenario.step_limit if asked.jobs is None else longest
            traces.append(watch(name, policy, jobs, own, limit, key, masked))
        return show.watched(traces, jobs.arrival, partial(grid, chosen._replace(jobs=jobs), scenario, traces))

    return job_columns(params, scenario), shown


SHOWING = show.Showing(ready, most_jobs=600, most_steps=400)
