"""`site`: look at a site's log, and write what advises it into params.yaml."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from pipeline import storage
from pipeline.config import PARAMS_FILE, Params, repository_root
from pipeline.core import FloatArray, IntArray
from pipeline.errors import UserError
from pipeline.logs.overview import tables
from pipeline.logs.registry import read
from pipeline.logs.trace import DAY_S, Trace
from pipeline.logs.user_files import log_format
from pipeline.problems import site_rows
from pipeline.progress import progress, say
from pipeline.storage.params_file import add_rows

WEEK_S = 7 * DAY_S
MOST_WEEKS = 8  # that are told of by themselves
MOST_USERS = 5


def run(params: Params, log: Path, name: str, format: str | None, machines: Sequence[str]) -> None:
    """Say what is in a log, then put its scenario, agent and site into params.yaml.

    Raises:
        UserError: the log cannot be read, is too short, or params.yaml has such rows; nothing is written then.
    """
    format = format or log_format(log)
    if format is None:
        raise UserError(f"{log}: expected a log of docs/logs.md, found another first line; --format names its format")
    with progress(f"read {log}, percent", 100, brief=True) as advance:
        trace = read(log, format, advance)
    for line in found(trace):
        say(line)
    rows = site_rows(name, _named(log), format, trace, machines, params)
    wanted = {"scenarios": {name: rows.scenario}, "agents": {rows.agent: rows.agent_row}, "sites": {name: rows.site}}
    add_rows(PARAMS_FILE, PARAMS_FILE.read_text(encoding="utf-8"), wanted)
    say(f"{PARAMS_FILE}: added scenario '{name}', agent '{rows.agent}' and site '{name}'; nothing else was changed")
    say(f"next: dvc repro advise@{name} (this site alone), or make repro (all): {storage.REPORTS}/advice.html")


def _named(log: Path) -> Path:
    """Return a log's path as params.yaml has it: from the repository's root where it lies below."""
    whole, root = log.resolve(), repository_root().resolve()
    return whole.relative_to(root) if whole.is_relative_to(root) else whole


def found(trace: Trace) -> list[str]:
    """Return, for people, what was found: how much, the load by week, who waits."""
    frames = {what: frame for what, (frame, _) in tables(trace).items()}
    overview = frames["overview"].set_index("what")["value"].to_dict()
    said = [*trace.notes, *(f"{what}: {value:,.10g}" for what, value in overview.items() if not np.isnan(value))]
    load = frames["load"].dropna()
    said += [
        f"load, {name}: {share:.1%} of {capacity:,g}"
        for name, share, capacity in zip(load["resource"], load["load"], load["capacity"], strict=True)
    ]
    return [*said, *_weeks(trace), *_waiting(trace)]


def _weeks(trace: Trace) -> list[str]:
    """Return the busiest weeks, by what arrived in each."""
    week = ((trace.submit_s - trace.submit_s[0]) // WEEK_S).astype(np.int64)
    work = np.bincount(week, trace.nodes * trace.run_s * trace.demand[:, 0])
    mean = work.mean()
    order = np.argsort(-work, kind="stable")[:MOST_WEEKS]
    busy = ", ".join(f"{k + 1} ({work[k] / mean:.1f} times the mean)" for k in order)
    return [f"work that arrived by week, of {len(work)}, the busiest first: {busy}"]


def _waiting(trace: Trace) -> list[str]:
    """Return who waited longest in the log's own history, where it tells."""
    known = ~np.isnan(trace.wait_s)
    if not known.any():
        return ["waits: the log does not tell them"]
    wait = trace.wait_s[known]
    said = [
        f"waits: mean {wait.mean():,.0f} s, 99th percentile {np.quantile(wait, 0.99):,.0f}, longest {wait.max():,.0f}"
    ]
    users = _longest(trace.user[known], wait)
    return (
        [*said, f"who waits longest in the mean: {', '.join(f'user {user} ({s:,.0f} s)' for user, s in users.items())}"]
        if users
        else said
    )


def _longest(user: IntArray, wait: FloatArray) -> Mapping[int, float]:
    names, place = np.unique(user, return_inverse=True)
    jobs = np.bincount(place)
    mean = np.bincount(place, wait) / jobs
    told = [k for k in np.argsort(-mean, kind="stable") if names[k] >= 0 and jobs[k] >= 30]  # fewer tell little
    return {int(names[k]): float(mean[k]) for k in told[:MOST_USERS]}
