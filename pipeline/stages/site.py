"""`site`: look at a site's log, and write what advises it into params.yaml."""

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from pipeline import storage
from pipeline.config import PARAMS_FILE, Params, check_params, repository_root
from pipeline.config.evaluation import too_few
from pipeline.config.parsing import parsed
from pipeline.config.records import NAME, NAMED
from pipeline.errors import UserError
from pipeline.logs.overview import tables
from pipeline.logs.registry import log_format, read
from pipeline.logs.trace import DAY_S, Trace
from pipeline.problems import site_rows
from pipeline.progress import progress, say
from pipeline.report.advice import NO_LIMITS
from pipeline.storage.params_file import with_rows

WEEK_S = 7 * DAY_S
MOST_WEEKS = 8  # that are told of by themselves
MOST_USERS = 5
LONGEST_NAME = 60  # of folders and of what is made of it
WORDS = ("null", "true", "false", "yes", "no", "on", "off")  # of YAML, which are no names there


def run(params: Params, log: Path, name: str, format: str | None, machines: Sequence[str], sure: bool = False) -> None:
    """Say what is in a log, then put its scenario, agent and site into params.yaml; a site that is there gets the log.

    Raises:
        UserError: the name, the log or what params.yaml would be is not valid; nothing is written then.
    """
    _must_be_free(params, name)
    format = format or log_format(log)
    if format is None:
        raise UserError(f"{log}: expected a log of docs/logs.md, found another first line; --format names its format")
    with progress(f"read {log}, percent", 100, brief=True) as advance:
        trace = read(log, format, advance)
    for line in [*found(trace), *([] if trace.has_estimates else [f"warning: {NO_LIMITS}"])]:
        say(line)
    with progress(f"fit {log} to its machines", 1, brief=True):
        rows = site_rows(name, _named(log), format, trace, machines, params, sure)
    wanted = {"scenarios": {name: rows.scenario}, "agents": {rows.agent: rows.agent_row}, "sites": {name: rows.site}}
    wanted |= {"gate": {"fewer": rows.fewer}} if rows.fewer else {}
    text, said = with_rows(str(PARAMS_FILE), storage.read_text(PARAMS_FILE), wanted)
    if too_few(check_params(parsed(text, str(PARAMS_FILE)), str(PARAMS_FILE)), name):
        say(f"gate: {name}: no agent can pass: {rows.windows} windows of the test period are independent, too few")
    if said:
        storage.write(PARAMS_FILE, text.encode())
    for line in said or ["its rows are those of this log"]:
        say(f"{PARAMS_FILE}: {line}")
    say(f"next: dvc repro advise@{name} (this site alone), or make repro (all): {storage.REPORTS}/advice.html")


def _must_be_free(params: Params, name: str) -> None:
    """Refuse a name that params.yaml cannot hold, or that is another row's."""
    if not re.fullmatch(NAME, name) or len(name) > LONGEST_NAME or name in WORDS:
        plain = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")[:LONGEST_NAME]
        other = plain if re.fullmatch(NAME, plain) and plain not in WORDS else f"site_{plain}".rstrip("_")
        wanted = f"{NAMED}, up to {LONGEST_NAME}, and no word of YAML"
        raise UserError(f"--name: {wanted}; got '{name[:LONGEST_NAME]}'; '{other}' would be one")
    taken = {**dict.fromkeys(params.scenarios, "scenario"), **dict.fromkeys([*params.judged, *params.plans], "policy")}
    for one in (name, f"{name}_ppo") if name not in params.sites else ():
        if one in taken:
            raise UserError(
                f"--name {name}: params.yaml has {taken[one]} '{one}', of no such site; choose another name"
            )


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
    names, place = np.unique(trace.user[known], return_inverse=True)
    jobs = np.bincount(place)
    mean = np.bincount(place, wait) / jobs
    told = [k for k in np.argsort(-mean, kind="stable") if names[k] >= 0 and jobs[k] >= 30]  # fewer tell little
    users = {int(names[k]): float(mean[k]) for k in told[:MOST_USERS]}
    return (
        [*said, f"who waits longest in the mean: {', '.join(f'user {user} ({s:,.0f} s)' for user, s in users.items())}"]
        if users
        else said
    )
