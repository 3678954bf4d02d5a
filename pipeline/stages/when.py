"""`when`: the expected start of each waiting job of a site, with intervals."""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import numpy as np

from pipeline.core import storage
from pipeline.core.config import Params
from pipeline.core.logs.rows import opened
from pipeline.core.logs.trace import DECADES_S
from pipeline.core.types import LOG_NAME, Json
from pipeline.errors import UserError
from pipeline.progress import progress
from pipeline.report.advice import duration
from pipeline.sites.evidence import SiteLog
from pipeline.sites.queue import backfill_of, queue_of
from pipeline.sites.when import Moment, is_linear, moment, past_of
from pipeline.sites.when_check import MOMENTS, Score, ask, check, intervals, is_calibrated, known_by, sample

ENDS = ("low80_s", "low50_s", "median_s", "high50_s", "high80_s")
CALIBRATED_BY = 0.2  # share of the log's jobs, those before the moment
CHECKED = 300  # moments
HEADER = 1 << 16  # bytes of a log that are searched for its epoch
DATE = "an ISO date, as 2002-12-24T18:00"


class NoJobWaitsError(UserError):
    """The queue is empty at that time."""


class Asked:
    """A site's past, with the job numbers and the clock of its log.

    Raises:
        UserError: the site or its log is unknown, or the order of its queue is not linear in the wait.
    """

    def __init__(self, params: Params, site: str) -> None:
        log = SiteLog(params, site)
        queue, today = queue_of(log.fit, params.sites[site]), params.sites[site].today
        if params.sites[site].slurm or not is_linear(today, queue):
            found = f"{today} with sites.{site}.slurm" if params.sites[site].slurm else today
            raise UserError(f"sites.{site}.today: expected an order that is linear in the wait, found {found}")
        with progress(f"replay {site}", 1, brief=True):
            self.past = past_of(queue, log.fit.wait, today, backfill_of(params.sites[site]))
        self.own_waits = not np.isnan(log.fit.wait).all()
        self.number, self.began = log_numbers(log), float(log.fit.jobs.arrival[0])
        self.site, self.params, self.test = site, params, 1 - log.test_share

    def at(self, time: str | None) -> Moment:
        """Return the state at a time of the log; without one, at its last submission."""
        last = float(self.past.queue.submit[-1])
        now = last if time is None else seconds(self.site, time, self.began) - self.began
        if not 0 <= now <= last:
            log = f"{self.began:.0f} to {self.began + last:.0f} s"
            raise UserError(
                f"--at {time}: expected a time of the log, which is from {log}; found {now + self.began:.0f} s"
            )
        return moment(self.past, now)


def log_numbers(log: SiteLog) -> Sequence[int]:
    """Return the log's own numbers of a site's jobs; jobs that fit no machine are left out, the others keep order."""
    trace, jobs, found, row = log.trace, log.fit.jobs, list[int](), 0
    for submit, nodes, user in zip(jobs.arrival, jobs.nodes, log.fit.user, strict=True):
        while (trace.submit_s[row], trace.nodes[row], trace.user[row]) != (submit, nodes, user):
            row += 1
        found.append(int(trace.id[row]))
        row += 1
    return found


def seconds(site: str, time: str, began: float) -> float:
    """Return a time on the clock of a site's log, from seconds or a date; dates without a zone are UTC.

    A log that began decades after second 0 has Unix time.
    """
    if re.fullmatch(r"\d+(\.\d+)?", time):
        return float(time)
    try:
        date = datetime.fromisoformat(time)
    except ValueError:
        raise UserError(f"--at: expected seconds on the log's clock or {DATE}; got '{time}'") from None
    place = storage.scenario_log(site)
    with opened((place / LOG_NAME if place.is_dir() else place).resolve()) as (content, _):
        epoch = re.search(rb"^; *UnixStartTime: *(\d+)", content.read(HEADER), re.MULTILINE)
    if epoch is None and began < DECADES_S:
        raise UserError(f"--at {time}: the log has no UnixStartTime, so that dates are unknown; expected seconds")
    return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() - float(epoch[1] if epoch else 0)


def run(params: Params, site: str, jobs: Sequence[int], time: str | None) -> dict[str, Json]:
    """Return the answer: the site, the time on its log's clock in seconds, and a row for each waiting job."""
    log = Asked(params, site)
    at, threads = log.at(time), params.threads
    numbers = [log.number[job] for job in at.waiting]
    if not numbers:
        raise NoJobWaitsError(
            f"{site}: no job waits at second {at.now + log.began:.0f} of the log; --at names another time"
        )
    if unknown := [job for job in jobs if job not in numbers]:
        some = ", ".join(map(str, numbers[:10]))
        raise UserError(f"{site}: job {unknown[0]} does not wait at second {at.now + log.began:.0f}; waiting: {some}")
    submit = log.past.queue.submit
    since = float(submit[max(int(np.searchsorted(submit, at.now)) - int(CALIBRATED_BY * len(submit)), 0)])
    with progress(f"simulate {site}, moments", MOMENTS, brief=True) as advance:
        known = sample(log.past, (since, at.now), MOMENTS, params.seed, threads, advance)
    asked = ask(at, params.seed)
    known = known and known_by(known, since, at.now)
    found = intervals(known, asked)
    queue, rows = log.past.queue, list[Json]()
    for k, (job, number) in enumerate(zip(at.waiting, numbers, strict=True)):
        if not jobs or number in jobs:
            row = {"job": number, "waited_s": float(at.now - queue.submit[job]), "processors": float(queue.cpus[job])}
            rows.append(
                {**row, **dict(zip(ENDS, map(float, found[:, k]), strict=True)), "by_limits_s": float(asked.plan[k])}
            )
    return {
        "site": site,
        "now_s": at.now + log.began,
        "calibrated": is_calibrated(known),
        "own_waits": log.own_waits,
        "jobs": rows,
    }


def scores(params: Params, site: str) -> dict[str, Score]:
    """Return the coverage and errors on the log's test period, for each way of calibration."""
    log = Asked(params, site)
    first = log.test - CALIBRATED_BY
    with progress(f"simulate {site}, moments", CHECKED, brief=True) as advance:
        return check(log.past, first, log.test, CHECKED, params.seed, params.threads, advance)


def score_table(found: Mapping[str, Score]) -> list[str]:
    """Return the coverage and errors as lines of a table."""
    rows = [["calibrated", "80 % covers", "50 % covers", "median error", "by limits", "jobs", "moments"]]
    for name, it in found.items():
        covers = [f"{100 * share:.1f} %" for share in (it.cover80, it.cover50)]
        errors = duration(it.error_s), duration(it.plan_error_s)
        rows.append([name, *covers, *errors, f"{it.questions:,}", f"{it.moments}"])
    return lines(rows)


def table(answer: dict[str, Json]) -> list[str]:
    """Return an answer as lines of a table."""
    rows = [["job", "CPUs", "waited", "starts in", "50 % interval", "80 % interval"]]
    jobs: list[dict[str, float]] = answer["jobs"]  # type: ignore[assignment]
    for it in jobs:
        spans = [f"{duration(it[f'low{k}_s'])} to {duration(it[f'high{k}_s'])}" for k in (50, 80)]
        rows.append(
            [f"{it['job']}", f"{it['processors']:g}", duration(it["waited_s"]), duration(it["median_s"]), *spans]
        )
    return lines(rows)


def lines(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return cells as aligned lines.

    >>> lines([["a", "bc"], ["def", "g"]])
    ['  a  bc', 'def   g']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
