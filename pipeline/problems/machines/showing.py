"""One jobset on many machines under some policies."""

from collections.abc import Sequence
from functools import partial
from math import inf, isnan
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pipeline import storage
from pipeline.config import Params
from pipeline.core import BoolArray, FloatArray, IntArray, KeyArray, Policy, keys
from pipeline.problems.machines.evaluation.metrics import outcome
from pipeline.problems.machines.evaluation.play import play_on
from pipeline.problems.machines.nouns import Jobs, Machines, end_to_end
from pipeline.problems.machines.policies import policy_for
from pipeline.problems.machines.scheduling import POOL_ONLY
from pipeline.problems.machines.simulator.compiled.batch import Simulator
from pipeline.problems.machines.storage import read_jobsets, read_park
from pipeline.problems.machines.user_jobs import job_columns, park_of
from pipeline.problems.machines.workload.park import machines_of
from pipeline.showing.drawing import Box, Grid, Row, Window, boxes, legend, queue, shade
from pipeline.showing.packing import bars
from pipeline.showing.show import Chosen, Showing, ShowRequest, Viewer, Watched
from pipeline.simulation.rollout import Insider

if TYPE_CHECKING:
    from matplotlib.axes import Axes


MOST_LANES = 40  # that are still legible in one picture
THINNEST = 0.04  # of a lane: what a job is drawn with that wants nothing of the resource
QUEUE = 1.6  # inches
HIGHEST, ALL_LANES = 0.9, 9.0  # inches of a lane at most, of all of them at most
GAP = 0.12  # of a lane, between it and the next


class Trace(NamedTuple):
    """What one policy did with a jobset."""

    policy: str  # its name for people
    start: FloatArray  # [J]  nan = never started
    finish: FloatArray  # [J]  of an unfinished job where the episode was cut
    held_first: IntArray  # [J + 1]  where the machines of each job stand in `held`
    held: IntArray
    slowdown: FloatArray  # [J]  of an unfinished job the lower bound
    wait: float  # mean over jobs
    end: float  # when the episode was over
    unfinished: int  # jobs

    def machines(self, job: int) -> IntArray:
        """Return the machines of a job; none if it never started."""
        if isnan(self.start[job]):
            return self.held[:0]
        return np.sort(self.held[self.held_first[job] : self.held_first[job + 1]])


def watch(name: str, policy: Policy | Insider, jobs: Jobs, machines: Machines, key: KeyArray) -> Trace:
    """Return what a policy does with a jobset.

    Args:
        name: of the policy, for people.
        policy: which decides.
        jobs: in order of arrival.
        machines: where they are scheduled.
        key: random key [1] of the episode.
    """
    batch = end_to_end([jobs])
    simulator = Simulator(batch, machines, np.zeros(len(jobs.arrival)))
    for _ in play_on(simulator, policy, key):
        pass
    placed, held = simulator.placed(), simulator.held
    found = outcome(batch, placed, machines)
    end = float(placed.end[0])
    finish = np.where(found.unfinished, end, placed.finish)
    wait, unfinished = float(found.wait.mean()), int(found.unfinished.sum())
    return Trace(name, placed.start, finish, *held, found.slowdown, wait, end, unfinished)


def waiting(jobs: Jobs, trace: Trace) -> tuple[FloatArray, IntArray]:
    """Return the times at which the number of waiting jobs changes, and how many wait from each of them on.

    >>> jobs = Jobs(np.array([0.0, 1.0, 1.0]), *[np.ones(3)] * 5)
    >>> nothing = np.zeros(3)
    >>> trace = Trace("sjf", np.array([0.0, 1.0, 2.5]), nothing, nothing, nothing, nothing, 0.5, 4.0, 0)
    >>> [column.tolist() for column in waiting(jobs, trace)]
    [[0.0, 1.0, 2.5], [0, 1, 0]]
    """
    started = np.sort(trace.start[~np.isnan(trace.start)])
    times = np.unique(np.concatenate([jobs.arrival, started]))
    come = np.searchsorted(jobs.arrival, times, side="right")
    return times, np.asarray(come - np.searchsorted(started, times, side="right"))


def grid(
    chosen: Chosen[Jobs], machines: Machines, resources: Sequence[str], traces: Sequence[Trace], shown: Window
) -> Grid:
    """Return the rows of the picture: the machines, and the queue."""
    from matplotlib.colors import LogNorm

    lanes = drawn_machines(machines, traces, shown)
    worst = max(float(trace.slowdown[inside(trace, shown)].max(initial=1.0)) for trace in traces)
    colour = shade(LogNorm(1, max(2.0, worst)))
    high, there = min(HIGHEST, ALL_LANES / len(lanes)), len(machines.kind)

    def drawn(axes: "Axes", column: int) -> None:
        trace = traces[column]
        found = placed(trace, chosen.jobs, machines, lanes, shown)
        boxes(axes, found, chosen.names, colour.to_rgba(trace.slowdown), shown, high * 72)
        for lane in range(len(lanes)):
            axes.axhline(lane + 1, color="#BBBBBB", linewidth=0.5, zorder=0)
        axes.set_ylim(len(lanes), 0)
        axes.set_yticks(np.arange(len(lanes)) + 0.5, [str(k) for k in lanes])

    def queued(axes: "Axes", column: int) -> None:
        queue(axes, *_queued(chosen.jobs, traces[column], shown), machines.slots)
        axes.set_ylim(bottom=0)
        if column == 0:
            legend(axes, 2)

    left_out = f": the {len(lanes)} busiest of {there}; {there - len(lanes)} are not drawn"
    label = f"Machine{left_out if there > len(lanes) else ''}"
    rows = [Row(label, max(high * len(lanes), 1.0), drawn), Row("Jobs waiting", QUEUE, queued)]
    names = [resources[r] for r in sorted(set(dominant(chosen.jobs, machines)[lanes].tolist()))]
    return Grid(rows, "Time", _caption(names), 2.2, (colour, "Slowdown of a job"))


def _caption(names: Sequence[str]) -> str:
    return (
        f"Each lane is a machine. Each rectangle is a job on it: as high as its share of the machine's "
        f"{' or '.join(names)}, of which jobs want most; the darker, the larger its slowdown.\n"
        "A job on several machines stands in the lane of each. Places within a lane only serve the picture. "
        "Below: jobs that wait in the slots and behind them."
    )


def inside(trace: Trace, shown: Window) -> BoolArray:
    """Return which jobs [J] run in the window."""
    return np.asarray((trace.start < shown.end) & (trace.finish > shown.begin))


def drawn_machines(machines: Machines, traces: Sequence[Trace], shown: Window) -> IntArray:
    """Return the machines that get a lane, by number: all, or of too many those busiest in the window."""
    busy = np.zeros(len(machines.kind))
    for trace in traces:
        length = np.minimum(trace.finish, shown.end) - np.maximum(trace.start, shown.begin)
        for job in np.flatnonzero(inside(trace, shown)).tolist():
            busy[trace.machines(job)] += length[job]
    return np.asarray(np.sort(np.argsort(-busy, kind="stable")[:MOST_LANES]))


def dominant(jobs: Jobs, machines: Machines) -> IntArray:
    """Return for each machine [K] the resource that all jobs want most of, among those that it has."""
    total = np.maximum(machines.capacity.sum(axis=0), 1)
    wanted = (jobs.nodes * jobs.duration) @ jobs.demand / total
    return np.asarray(np.where(machines.capacity > 0, wanted, -1.0).argmax(axis=1))


def placed(trace: Trace, jobs: Jobs, machines: Machines, lanes: IntArray, shown: Window) -> list[Box]:
    """Return where jobs are drawn: lanes go downwards, what is in them upwards."""
    on: dict[int, list[int]] = {int(k): [] for k in lanes}
    for job in np.flatnonzero(inside(trace, shown)).tolist():
        for k in trace.machines(job):
            on.get(int(k), []).append(job)
    share, found, room = dominant(jobs, machines), [], 1 - GAP
    for lane, (k, mine) in enumerate(on.items()):
        amount = jobs.demand[mine, share[k]] / max(int(machines.capacity[k, share[k]]), 1)
        for bar in bars(trace.start[mine], trace.finish[mine], amount):
            top, floor = min(bar.bottom + max(bar.height, THINNEST), 1.0), lane + 1 - GAP / 2
            found.append(Box(mine[bar.job], bar.begin, bar.end, floor - room * bar.bottom, floor - room * top))
    return found


def _queued(jobs: Jobs, trace: Trace, shown: Window) -> tuple[FloatArray, IntArray]:
    """Return the times in a window between which the queue is of one length, and these lengths."""
    times, number = waiting(jobs, trace)
    kept = (times > shown.begin) & (times < shown.end)
    before = number[np.searchsorted(times, shown.begin, side="right") - 1] if times[0] <= shown.begin else 0
    return np.concatenate([[shown.begin], times[kept], [shown.end]]), np.concatenate([[before], number[kept]])


def ready(params: Params, asked: ShowRequest, policies: Sequence[str], names: Sequence[str]) -> Viewer[Jobs]:
    """Return policies, ready for a jobset."""
    scenario, folder = params.machines_scenario(asked.scenario), storage.jobsets_folder(asked.scenario)
    park = read_park(folder) if asked.jobs is None else park_of(params, asked.scenario)
    machines = machines_of(scenario, park)
    if asked.jobs is not None:
        machines = machines._replace(time_limit=inf)
    known = [policy_for(params, name, scenario, park, asked.scenario) for name in policies]

    def watched(chosen: Chosen[Jobs]) -> Watched:
        key = keys(params.seed, np.array([chosen.number]), np.array([0]))
        traces = [watch(name, policy, chosen.jobs, machines, key) for name, policy in zip(names, known, strict=True)]
        return Watched(
            [described(trace) for trace in traces],
            [float(trace.slowdown.mean()) for trace in traces],
            float(chosen.jobs.arrival.min()),
            max(trace.end for trace in traces),
            lambda shown: max(int(inside(trace, shown).sum()) for trace in traces),
            partial(grid, chosen, machines, park.resources, traces),
        )

    return Viewer(job_columns(scenario, park), partial(read_jobsets, folder, "test", park), watched)


def described(trace: Trace) -> str:
    """Return the title of one policy's half, which is also the picture in words."""
    cut = f", {trace.unfinished} jobs unfinished" if trace.unfinished else ""
    return (
        f"{trace.policy}: mean slowdown {trace.slowdown.mean():.2f}, worst {trace.slowdown.max():.1f}, "
        f"mean wait {trace.wait:.4g}{cut}"
    )


SHOWING = Showing(ready, most_jobs=1500, refused=POOL_ONLY)
