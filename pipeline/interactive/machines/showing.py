"""One jobset on many machines under some policies."""

from collections.abc import Sequence
from functools import partial
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from pipeline.comparing.plots import REFERENCE
from pipeline.core import storage
from pipeline.core.config import Params
from pipeline.core.types import IntArray, KeyArray, Policy, keys
from pipeline.interactive.machines.scheduling import POOL_ONLY, any_policy, job_columns, park_of
from pipeline.interactive.showing import show
from pipeline.interactive.showing.drawing import Box, Grid, Row, Window, bars, boxes, shade
from pipeline.problems.machines.env.evaluation.metrics import outcome
from pipeline.problems.machines.env.evaluation.play import play_on
from pipeline.problems.machines.env.nouns import Jobs, Machines, end_to_end
from pipeline.problems.machines.env.simulator.batch import Simulator
from pipeline.problems.machines.env.storage import machines_of, read_park
from pipeline.simulation.rollout import Insider

if TYPE_CHECKING:
    from matplotlib.axes import Axes


MOST_LANES = 40  # that are still legible in one picture
THINNEST = 0.04  # of a lane: the height of a job without demand of the resource
HIGHEST, ALL_LANES = 0.9, 9.0  # inches: largest height of a lane, and of all lanes
GAP = 0.12  # of a lane, between it and the next


CAPTION = (
    "Each lane is a machine. Each rectangle is a job on it: as high as its share of the machine's {names}, of which "
    "jobs want most; the darker, the larger its slowdown.\n"
    "A job on several machines has a rectangle in each of their lanes. Positions within a lane have no meaning. "
    "Below: waiting jobs in the slots and in the backlog."
)


def watch(name: str, policy: Policy | Insider, jobs: Jobs, machines: Machines, key: KeyArray) -> show.Trace:
    """Return a policy's schedule of a jobset; `name` is its name for people, `key` [1] a random key."""
    batch = end_to_end([jobs])
    simulator = Simulator(batch, machines, np.zeros(len(jobs.arrival)))
    for _ in play_on(simulator, policy, key):
        pass
    placed, (first, held) = simulator.placed(), simulator.held
    found, end = outcome(batch, placed), float(placed.end[0])
    finish = np.where(found.unfinished, end, placed.finish)

    def on(job: int) -> IntArray:
        return np.sort(held[first[job] : first[job + 1]]) if placed.machine[job] >= 0 else held[:0]

    cut = show.unfinished(int(found.unfinished.sum()))
    said = f"worst {found.slowdown.max():.1f}, mean wait {found.wait.mean():.4g}{cut}"
    return show.Trace(name, placed.start, finish, placed.start, found.slowdown, end, said, machines=on)


def grid(
    chosen: show.Chosen[Jobs], machines: Machines, resources: Sequence[str], traces: Sequence[show.Trace], shown: Window
) -> Grid:
    """Return the rows of the picture: the machines, and the queue."""
    from matplotlib.colors import LogNorm

    lanes = drawn_machines(machines, traces, shown)
    worst = max(float(trace.slowdown[show.inside(trace, shown)].max(initial=1.0)) for trace in traces)
    colour = shade(LogNorm(1, max(2.0, worst)))
    high, there = min(HIGHEST, ALL_LANES / len(lanes)), len(machines.kind)

    def drawn(axes: "Axes", column: int) -> None:
        trace = traces[column]
        found = placed(trace, chosen.jobs, machines, lanes, shown)
        boxes(axes, found, chosen.names, colour.to_rgba(trace.slowdown), shown, high * 72)
        for lane in range(len(lanes)):
            axes.axhline(lane + 1, color="#BBBBBB", linewidth=0.5, zorder=0, gid=REFERENCE)
        axes.set_ylim(len(lanes), 0)
        axes.set_yticks(np.arange(len(lanes)) + 0.5, [str(k) for k in lanes])

    drawn_of = f": the {len(lanes)} busiest of {there}; {there - len(lanes)} are not drawn"
    rows = [
        Row(f"Machine (number){drawn_of if there > len(lanes) else ''}", max(high * len(lanes), 1.0), drawn),
        show.queue_row(chosen.jobs.arrival, traces, machines.slots, shown),
    ]
    names = [resources[r] for r in sorted(set(dominant(chosen.jobs, machines)[lanes].tolist()))]
    caption, unit = CAPTION.format(names=" or ".join(names)), "Time (time units of the jobs)"
    return Grid(rows, unit, caption, 2.2, (colour, "Slowdown of a job (ratio)"))


def drawn_machines(machines: Machines, traces: Sequence[show.Trace], shown: Window) -> IntArray:
    """Return the machines that get a lane, by number: all or, if too many, those busiest in the window."""
    busy = np.zeros(len(machines.kind))
    for trace in traces:
        length = np.minimum(trace.finish, shown.end) - np.maximum(trace.start, shown.begin)
        for job in np.flatnonzero(show.inside(trace, shown)).tolist():
            busy[trace.machines(job)] += length[job]
    return np.asarray(np.sort(np.argsort(-busy, kind="stable")[:MOST_LANES]))


def dominant(jobs: Jobs, machines: Machines) -> IntArray:
    """Return, for each machine [K], the resource that jobs want most of, among those that the machine has."""
    total = np.maximum(machines.capacity.sum(axis=0), 1)
    wanted = (jobs.nodes * jobs.duration) @ jobs.demand / total
    return np.asarray(np.where(machines.capacity > 0, wanted, -1.0).argmax(axis=1))


def placed(trace: show.Trace, jobs: Jobs, machines: Machines, lanes: IntArray, shown: Window) -> list[Box]:
    """Return where jobs are drawn: lanes go downwards, jobs within a lane upwards."""
    on: dict[int, list[int]] = {int(k): [] for k in lanes}
    for job in np.flatnonzero(show.inside(trace, shown)).tolist():
        for k in trace.machines(job):
            on.get(int(k), []).append(job)
    share, found, room = dominant(jobs, machines), [], 1 - GAP
    for lane, (k, mine) in enumerate(on.items()):
        amount = jobs.demand[mine, share[k]] / max(int(machines.capacity[k, share[k]]), 1)
        floor = lane + 1 - GAP / 2
        for job, begin, end, bottom, top in bars(trace.start[mine], trace.finish[mine], amount):
            visible = min(max(top, bottom + THINNEST), 1.0)
            found.append(Box(mine[job], begin, end, floor - room * bottom, floor - room * visible))
    return found


def ready(params: Params, asked: show.ShowRequest, policies: Sequence[str], names: Sequence[str]) -> show.Ready[Jobs]:
    """Return a viewer that runs the policies on a chosen jobset."""
    scenario, folder = params.machines_scenario(asked.scenario), storage.jobsets_folder(asked.scenario)
    park = read_park(folder) if asked.jobs is None else park_of(params, asked.scenario)
    machines = machines_of(scenario, park)
    if asked.jobs is not None:
        machines = machines._replace(time_limit=inf, measured=None)
    known = [any_policy(params, name, scenario, park, asked.scenario) for name in policies]

    def shown(chosen: show.Chosen[Jobs]) -> show.Watched:
        key = keys(params.seed, np.array([chosen.number]), np.array([0]))
        traces = [watch(name, policy, chosen.jobs, machines, key) for name, policy in zip(names, known, strict=True)]
        return show.watched(traces, chosen.jobs.arrival, partial(grid, chosen, machines, park.resources, traces))

    return job_columns(scenario, park), shown


SHOWING = show.Showing(ready, most_jobs=1500, refused=POOL_ONLY)
