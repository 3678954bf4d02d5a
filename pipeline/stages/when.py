"""`when`, `why`, `what-if`: questions on the waiting times of a site.

`when`: the expected start of each waiting job, with intervals. `why`: the reasons for the start of a job under an order
of the queue. `what-if`: waits with more machines, other limits, more load, or a user who submits at night.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import numpy as np

from pipeline.comparing.words import percent, span
from pipeline.core import storage
from pipeline.core.config import Params, check_known
from pipeline.core.logs.rows import opened
from pipeline.core.logs.trace import DAY_S, DECADES_S
from pipeline.core.types import LOG_NAME, Json
from pipeline.errors import UserError
from pipeline.progress import progress
from pipeline.report.advice import duration
from pipeline.sites.evidence import SiteLog, read_evidence
from pipeline.sites.figures import MEASURES
from pipeline.sites.learned import WEIGHTS, score_of
from pipeline.sites.orders import FOR_SLURM, LEARNED, names_of, order_of
from pipeline.sites.queue import backfill_of, log_of, queue_of
from pipeline.sites.slurm_settings import SlurmOrder
from pipeline.sites.what_if import what_if
from pipeline.sites.when import Moment, is_linear, moment, past_of
from pipeline.sites.when_check import MOMENTS, Score, ask, check, intervals, is_calibrated, known_by, sample
from pipeline.sites.why import Rank, why

ENDS = ("low80_s", "low50_s", "median_s", "high50_s", "high80_s")
CALIBRATED_BY = 0.2  # share of the log's jobs, those before the moment
CHECKED = 300  # moments
HEADER = 1 << 16  # bytes of a log that are searched for its epoch
DATE = "an ISO date, as 2002-12-24T18:00"
SCORES = {  # times in seconds
    "limit": "-ln(limit)", "area": "-ln(limit x CPUs)", "sjf": "-limit", "saf": "-limit x CPUs",
    "saf_aged": "-limit x CPUs / (1 + wait / 4 h)", "f1": "-(log10(limit) x CPUs + 870 log10(submission))",
    "wfp3": "(wait / limit)^3 x CPUs", "unicep": "wait / (log2(CPUs) x limit)",
}  # fmt: skip


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


def explain_start(
    params: Params, site: str, number: int | None, policy: str | None
) -> tuple[dict[str, Json], list[str]]:
    """Return why a job starts when it does, as data and lines; by default, the job that waits longest."""
    check_known("params.yaml", "sites", site, params.sites)
    log, row = SiteLog(params, site), params.sites[site]
    name, kept = policy or row.today, (read_evidence(site) or {}).get("learned")
    check_known(site, "--policy", name, [*names_of(row.slurm), *(LEARNED if kept else ())])
    learned = SlurmOrder(**kept)._replace(tau_s=LEARNED[name][1]) if kept and name in LEARNED else None
    whole, numbers = log_of(log.fit, row, log.out), log_numbers(log)
    queue = whole.queue
    if number is not None and number not in numbers:
        raise UserError(f"{site}: expected a job of the log, {numbers[0]} to {numbers[-1]}, found {number}")
    with progress(f"replay {site}", 1, brief=True):
        found = why(
            whole,
            None if number is None else numbers.index(number),
            lambda log: score_of(learned, log) if learned else order_of(name, log.queue, log.slurm),
            lambda job: f"job {numbers[job]} ({queue.cpus[job]:g} CPUs, limit {duration(queue.limit[job])})",
            params.threads,
        )
    weights = " + ".join(f"{getattr(learned, key):g} ln({key})" for key in WEIGHTS) if learned else ""
    score = f"-({weights})" if learned else SCORES.get(FOR_SLURM.get(name, (name,))[0])
    points = ", in points of Slurm" * bool(row.slurm)
    lines = [
        f"{site}, {name}: {found.job} waits {duration(found.wait)}",
        *([f"score (times in s): {score}{points}"] if score else []),
        f"at submission: {_in_words(found.submitted)}",
        f"at its start: {_in_words(found.started)}",
        f"meanwhile {found.higher} of higher and {found.lower} of lower priority start; it passes {found.passed}",
        "it would wait",
        *(f"  {duration(wait)} with {what}" for what, wait in found.changed.items()),
    ]
    both = {"submitted": found.submitted._asdict(), "started": found.started._asdict()}
    return {"site": site, "order": name, **found._asdict(), **both}, lines


def _in_words(found: Rank) -> str:
    terms = [f"{name} {value:.4g}" for name, value in found.terms.items() if abs(value) > 1e-9]
    total = f" = {' + '.join(terms)}" if len(terms) > 1 else ""
    return f"rank {found.rank} of {found.waiting}, priority {found.priority:.4g}{total}"


def answer_what_if(params: Params, site: str, change: str, policy: str | None) -> tuple[dict[str, Json], str]:
    """Return the answer as data and in a sentence."""
    check_known("params.yaml", "sites", site, params.sites)
    if policy is not None:
        check_known(site, "--policy", policy, names_of(params.sites[site].slurm))
    log = SiteLog(params, site)
    order, period = policy or params.sites[site].today, log.periods["test"]
    began = float(log.fit.jobs.arrival[0] % DAY_S)
    with progress(f"replay {site}", 1, brief=True):
        found, n = what_if(period, order, change, began, params.evaluation, params.seed, params.threads)
    wait, tail, longest = (found[name] for name in ("wait", "p99_wait", "longest_wait"))
    counts = {"jobs": len(period.run), "blocks": n, "replays": len(period.submit)}
    measures = {name if name == "slowdown" else f"{name}_s": found[name]._asdict() for name in MEASURES}
    return {"site": site, "order": order, "change": change, **counts, **measures}, (
        f"{site}, {order}, {change}: mean wait {duration(wait.value)} instead of {duration(wait.today)}, "
        f"{percent(wait.change)} ({span(wait.low, wait.high)}); 99th percentile {percent(tail.change)} "
        f"({span(tail.low, tail.high)}); longest wait {percent(longest.change)}; "
        f"{len(period.run):,} jobs, n = {n} blocks of three days, {len(period.submit)} replays"
    )
