"""Choose a jobset, run policies on it, and draw the result; for every problem."""

from collections.abc import Callable, Mapping, Sequence
from math import inf
from pathlib import Path
from typing import Generic, NamedTuple, cast

from pipeline.comparing.plots import png
from pipeline.core.config import Params
from pipeline.errors import UserError
from pipeline.interactive.scheduling.schedule import must_apply
from pipeline.interactive.scheduling.user_jobs import Columns, JobColumns, JobsInColumns, read_user_jobs
from pipeline.interactive.showing.drawing import Grid, Window, side_by_side
from pipeline.problems import problem_of
from pipeline.simulation.results import MOST_JOBSETS

MOST_NAMED = 12  # ids in an error message


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


class Viewer(NamedTuple, Generic[Columns]):
    """Policies on their cluster, ready for a jobset."""

    columns: JobColumns[Columns]
    watch: Callable[[Chosen[Columns]], Watched]


class Showing(NamedTuple, Generic[Columns]):
    """How a problem shows jobsets."""

    # (params, request, policies, their names for people)
    ready: Callable[[Params, ShowRequest, Sequence[str], Sequence[str]], Viewer[Columns]]
    most_jobs: float = inf  # legible in one picture
    most_steps: float = inf  # of time
    refused: Mapping[str, str] = {}  # options that do not apply, with reasons


def draw(
    how: Showing[JobsInColumns],
    params: Params,
    request: ShowRequest,
    policies: Sequence[str],
    names: Sequence[str] = (),
) -> Picture:
    """Return the picture of a jobset under some policies."""
    must_apply(request if request.jobs else request._replace(load=None), how.refused)
    viewer = how.ready(params, request, policies, names or policies)
    if request.jobs is None:
        read = problem_of(params, request.scenario).scoring(params, request.scenario, None).read
        chosen = _test_jobset(cast("Mapping[int, Sequence[JobsInColumns]]", read("test")), request)
    else:
        mine = read_user_jobs(request.jobs, viewer.columns)
        known = mine.jobsets
        number = place_of(known, request.jobs, request.jobset)
        rows = mine.rows()[number]
        where = f"on the cluster of scenario {request.scenario}"
        title = f"{request.jobs.name}, jobset {known[number]}, {where}: {len(rows)} jobs"
        chosen = Chosen(title, mine.taken(rows), mine.names(rows), number)
    watched = viewer.watch(chosen)
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
