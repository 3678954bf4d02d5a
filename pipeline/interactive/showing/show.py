"""Choose a jobset, run policies on it, and draw the result and the queue's length, for every problem."""

from collections.abc import Callable, Mapping, Sequence
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Generic, NamedTuple, cast

import numpy as np

from pipeline.comparing.plots import png
from pipeline.core.config import Params
from pipeline.core.types import BoolArray, FloatArray, IntArray, TimeArray
from pipeline.errors import UserError
from pipeline.interactive.scheduling.schedule import must_apply
from pipeline.interactive.scheduling.user_jobs import Columns, JobColumns, read_user_jobs
from pipeline.interactive.showing.drawing import Grid, Row, Window, side_by_side, whole_ticks
from pipeline.problems import problem_of
from pipeline.simulation.results import MOST_JOBSETS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_NAMED = 12  # ids in an error message
QUEUE = 1.5  # inches
ROOM = 1.4  # times the longest queue, for the legend
SLOTS, BACKLOG = "#9FB6CF", "#3B5B7E"


class ShowRequest(NamedTuple):
    """The jobset and the time to draw."""

    jobs: Path | None  # a job table or log; None: the test jobsets of the scenario
    scenario: str
    load: float | None = None  # of the test jobset, in percent; of a user's own jobs, as in ScheduleRequest
    jobset: str | None = None
    begin: int | None = None
    end: int | None = None
    arrivals_end: int | None = None  # as in ScheduleRequest, of a user's own jobs


class Picture(NamedTuple):
    """A drawn jobset, and its description."""

    content: bytes  # PNG
    title: str
    halves: Sequence[str]  # titles
    slowdowns: Sequence[float]  # mean of each half


class Chosen(NamedTuple, Generic[Columns]):
    """The jobset to draw."""

    title: str
    jobs: Columns  # in order of arrival
    names: list[str]  # [J]  of jobs
    number: int  # of its random draws


class Watched(NamedTuple):
    """Results of policies on a jobset."""

    halves: Sequence[str]  # results as text
    slowdowns: Sequence[float]  # means
    first: float  # time of the first arrival
    last: float  # time at which all episodes are over
    running: Callable[[Window], int]  # maximum number of running jobs in a window
    grid: Callable[[Window], Grid]


# How a user's jobs are read, and a function that has the policies play a jobset.
Ready = tuple[JobColumns[Columns], Callable[[Chosen[Columns]], Watched]]


class Showing(NamedTuple, Generic[Columns]):
    """How a problem shows jobsets."""

    # (params, request, policies, their names for people)
    ready: Callable[[Params, ShowRequest, Sequence[str], Sequence[str]], Ready[Columns]]
    most_jobs: float = inf  # legible in one picture
    most_steps: float = inf  # of time
    refused: Mapping[str, str] = {}  # options that do not apply, with reasons


def draw(
    how: Showing[Columns],
    params: Params,
    request: ShowRequest,
    policies: Sequence[str],
    names: Sequence[str] = (),
) -> Picture:
    """Return the picture of a jobset under some policies."""
    must_apply(request if request.jobs else request._replace(load=None), how.refused)
    columns, watch = how.ready(params, request, policies, names or policies)
    if request.jobs is None:
        read = problem_of(params, request.scenario).scoring(params, request.scenario, None).read
        chosen = _test_jobset(cast("Mapping[int, Sequence[Columns]]", read("test")), request)
    else:
        mine = read_user_jobs(request.jobs, columns)
        known = mine.jobsets
        number = place_of(known, request.jobs, request.jobset)
        rows = mine.rows()[number]
        where = f"on the cluster of scenario {request.scenario}"
        title = f"{request.jobs.name}, jobset {known[number]}, {where}: {len(rows)} jobs"
        chosen = Chosen(title, mine.taken(rows), mine.names(rows), number)
    watched = watch(chosen)
    shown = window(watched, request.begin, request.end, how.most_jobs, how.most_steps)
    figure = side_by_side(chosen.title, watched.halves, watched.grid(shown), shown)
    return Picture(png(figure), chosen.title, watched.halves, watched.slowdowns)


def _test_jobset(jobsets: Mapping[int, Sequence[Columns]], request: ShowRequest) -> Chosen[Columns]:
    scenario, loads = f"scenario '{request.scenario}'", ", ".join(str(known) for known in jobsets)
    if request.load is None and len(jobsets) > 1:
        raise UserError(f"{scenario}: choose a load by --load; there are: {loads}")
    load = next(iter(jobsets)) if request.load is None else request.load
    if load not in jobsets:
        raise UserError(f"{scenario}: unknown load {load:g}; there are: {loads}")
    load, name = int(load), request.jobset or "0"
    known = [str(k) for k in range(len(jobsets[load]))]
    if name not in known:
        raise UserError(
            f"{scenario}, load {load}: unknown test jobset '{request.jobset}'; there are: 0 to {len(known) - 1}"
        )
    number = known.index(name)
    jobs = jobsets[load][number]
    count = len(jobs.arrival)
    title = f"Scenario {request.scenario}, load {load} %, test jobset {number}: {count} jobs"
    return Chosen(title, jobs, [str(job) for job in range(count)], load * MOST_JOBSETS + number)


def place_of(known: Sequence[str], where: Path, name: str | None) -> int:
    """Return the place of the named jobset of a user's file, or of the only one."""
    more = f" and {len(known) - MOST_NAMED} more" if len(known) > MOST_NAMED else ""
    there = f"there are: {', '.join(known[:MOST_NAMED])}{more}"
    if name is None and len(known) > 1:
        raise UserError(f"{where}: choose a jobset by --jobset; {there}")
    if name is not None and name not in known:
        raise UserError(f"{where}: unknown jobset '{name}'; {there}")
    return 0 if name is None else known.index(name)


def window(
    watched: Watched, begin: float | None, end: float | None, most_jobs: float = inf, most_steps: float = inf
) -> Window:
    """Return the time to draw, by default from the first arrival to the end."""
    first, last = watched.first, watched.last
    shown = Window(first if begin is None else begin, last if end is None else end)
    whole = f"the jobset runs from {first:.10g} to {last:.10g}"
    if not first < shown.end or not shown.begin < min(shown.end, last):
        raise UserError(f"time {shown.begin:.10g} to {shown.end:.10g}: nothing to draw; {whole}")
    shown = Window(max(shown.begin, first), shown.end)
    running, steps = watched.running(shown), shown.end - shown.begin
    if running > most_jobs or steps > most_steps:
        many, most = f"{running:,} jobs", f"{most_jobs:,}"
        if most_steps < inf:
            many, most = f"{many} in {steps:,.10g} steps", f"{most} in {most_steps:,} steps"
        raise UserError(
            f"{many} are too many for one picture (at most {most}); {whole}: choose a part by --from and --to"
        )
    return shown


class Trace(NamedTuple):
    """One policy's schedule of a jobset."""

    policy: str  # its name for people
    start: FloatArray  # [J]  nan = never started
    finish: FloatArray  # [J]  of an unfinished job, where the episode was cut
    left: FloatArray  # [J]  when it left its slot: its start, unless placed ahead; nan = never
    slowdown: FloatArray  # [J]  of an unfinished job, the lower bound
    end: float  # of the episode
    said: str  # the result as text, after the mean slowdown
    withheld: Sequence[Sequence[int]] = ()  # [J]  steps in which it was withheld, if recorded
    machines: Callable[[int], IntArray] = lambda job: np.zeros(0, dtype=np.int64)  # of a job; none if it never started


def unfinished(jobs: int) -> str:
    """Return a phrase on unfinished jobs, if there are any."""
    return f", {jobs} jobs unfinished" if jobs else ""


def watched(traces: Sequence[Trace], arrival: TimeArray, grid: Callable[[Window], Grid]) -> Watched:
    """Return the results of policies on jobs with given arrivals [J]."""
    return Watched(
        [f"{trace.policy}: mean slowdown {trace.slowdown.mean():.2f}, {trace.said}" for trace in traces],
        [float(trace.slowdown.mean()) for trace in traces],
        float(arrival.min()),
        max(trace.end for trace in traces),
        lambda shown: max(int(inside(trace, shown).sum()) for trace in traces),
        grid,
    )


def inside(trace: Trace, shown: Window) -> BoolArray:
    """Return which jobs [J] run in the window."""
    return np.asarray((trace.start < shown.end) & (trace.finish > shown.begin))


def until(arrival: TimeArray, trace: Trace) -> FloatArray:
    """Return the end of each job's wait [J], at the latest the end of the episode."""
    return np.where(np.isnan(trace.left), np.maximum(arrival, trace.end), trace.left)


def queued(arrival: TimeArray, trace: Trace, shown: Window) -> tuple[FloatArray, IntArray]:
    """Return the times in a window between which the length of the queue is constant, and these lengths.

    >>> start, none = np.array([0.0, 1.0, 2.5, np.nan]), np.zeros(4)
    >>> trace = Trace("sjf", start, none, start, none, 4.0, "")
    >>> [column.tolist() for column in queued(np.array([0.0, 1.0, 1.0, 2.0]), trace, Window(0.0, 3.0))]
    [[0.0, 1.0, 2.0, 2.5, 3.0], [0, 1, 2, 1]]
    """
    left = np.sort(until(arrival, trace))
    changes = np.unique(np.concatenate([arrival, left]))
    inner = changes[(changes > shown.begin) & (changes < shown.end)]
    edges = np.concatenate([[shown.begin], inner, [shown.end]])
    come, gone = (np.searchsorted(times, edges[:-1], side="right") for times in (arrival, left))
    return edges, np.asarray(come - gone)


def queue_row(
    arrival: TimeArray,
    traces: Sequence[Trace],
    slots: int,
    shown: Window,
    mark: Callable[["Axes", Trace], None] | None = None,
) -> Row:
    """Return the row of waiting jobs; `mark` adds a problem's own elements."""
    most = ROOM * max(1, *(queued(arrival, trace, shown)[1].max() for trace in traces))

    def drawn(axes: "Axes", column: int) -> None:
        edges, number = queued(arrival, traces[column], shown)
        in_slots = np.minimum(number, slots)
        axes.stairs(in_slots, edges, fill=True, color=SLOTS, label="in slots")
        area = axes.stairs(number, edges, baseline=in_slots, fill=True, color=BACKLOG, label="in the backlog")
        area.set(hatch="///", edgecolor="white", linewidth=0)
        whole_ticks(axes)
        if mark is not None:
            mark(axes, traces[column])
        axes.set_ylim(0, most)
        if column == 0:
            axes.legend(loc="upper right", fontsize=8, frameon=False, ncols=3)

    return Row("Waiting (jobs)", QUEUE, drawn)
