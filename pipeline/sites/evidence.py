"""Records of a site's advice: the tables and the evidence for its page, and the site's log as they read it.

The table of users' limits and run times shows which users could start earlier by requesting less.
"""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pipeline.core import storage
from pipeline.core.config import MachinesLog, Params, check_known
from pipeline.core.logs.trace import Trace
from pipeline.core.schemas.tables import LIMITS
from pipeline.core.types import THOUSANDTHS, Json
from pipeline.errors import UserError
from pipeline.problems.machines.env.workload.windows import Fitted, describe, fitted, read_log
from pipeline.progress import progress
from pipeline.sites.advice import Advice, Judged
from pipeline.sites.orders import FOR_SLURM, names_of
from pipeline.sites.queue import Period, outages_of, periods_of, read_all
from pipeline.sites.slurm_settings import LONGEST_S

Evidence = Mapping[str, Any]  # as `evidence` returns it
FOLDER = storage.REPORTS / "advice"
TABLE, USERS, EVIDENCE = "orders.csv", "users.csv", "evidence.json"
SHOWN_USERS = 10
FEWEST = 10  # jobs of a user whose limits are reported
SHARE = 0.95  # of a user's jobs that the suggested limit would cover
SPARE = 1.2  # ratio of the suggested limit to what these jobs needed


class SiteLog:
    """A site's log as its machines can run it; policies know limits, or run times if the log has no limits.

    Raises:
        UserError: there is no such site, its order is unknown, or its jobs do not come from a log in periods.
    """

    def __init__(self, params: Params, site: str) -> None:
        if site not in params.sites:
            raise UserError(f"unknown site '{site}'; 'python -m pipeline site LOG' writes one into params.yaml")
        row, scenario = params.sites[site], params.machines_scenario(site)
        check_known("params.yaml", f"sites.{site}.today", row.today, names_of(row.slurm))
        workload = scenario.workload
        if not isinstance(workload, MachinesLog) or workload.parts is not None:
            raise UserError(f"sites.{site}: expected a scenario of a log in periods, found jobs of another source")
        place = storage.scenario_log(site)
        files = [place / storage.OUTAGES_NAME / str(k) for k in range(len(workload.outages))]
        if gone := next((path for path in (place, *files) if not path.exists()), None):
            what = "log" if gone == place else "file of outages"
            raise UserError(f"{gone}: expected the {what} of {site}, found none; 'python -m pipeline log' links it")
        with progress(f"read the log of {site}, percent", 100, brief=True) as advance:
            self.trace: Trace = read_log(workload, place, advance)
        knows = "estimates" if self.trace.has_estimates else "durations"
        with progress(f"prepare the log of {site}", 1, brief=True):
            self.fit: Fitted = fitted(self.trace, workload, scenario.model_copy(update={"policies_know": knows}))
            found, said = read_all(files, self.trace)
            self.outages, self.out = [said] if workload.outages else [], outages_of(found, self.trace, self.fit)
            self.periods: Mapping[str, Period] = periods_of(self.fit, scenario, row, params.seed, self.out)
            self.backfill: Mapping[str, Json] = row.backfill.model_dump()
            self.test_share: float = 1 - workload.train_share - workload.validation_share


def read_evidence(site: str) -> Evidence | None:
    """Return the stored evidence of a site's advice; None if there is none yet."""
    place: Path = FOLDER / site / EVIDENCE
    found: Evidence | None = storage.read_json(place) if place.exists() else None  # type: ignore[assignment]
    return found


RECORD = (
    *("scenario", "verdict", "policy", "candidate", "runner_up", "against"),
    *("gain", "wait", "p99_wait", "longest_wait", "slowdown", "vetoes", "n", "replays", "more_days", "period"),
)


def table(found: Advice) -> pd.DataFrame:
    """Return the figures of every order on both periods."""
    rows = []
    for period, judged in (("validation", found.validation), ("test", found.test.values())):
        for one in judged:
            values = {name: one.figures[name].value for name in ("wait", "p99_wait", "longest_wait", "slowdown")}
            changes = {f"{name}_change": it.change for name, it in one.figures.items()}
            large = one.large.change if one.large else float("nan")
            rows.append(
                {"period": period, "order": one.name, "for_slurm": one.name in FOR_SLURM}
                | values | changes | {"large_change": large, "vetoes": "; ".join(one.vetoes)}
            )  # fmt: skip
    return pd.DataFrame(rows)


def _changes(one: Judged) -> dict[str, Json]:
    return {name: dict(it._asdict()) for name, it in one.figures.items()}


def evidence(site: str, today: str, found: Advice, log: SiteLog, limits: pd.DataFrame) -> dict[str, Json]:
    """Return all that the page shows of a site; changes are relative to today's order.

    `limits` is the table of its users' limits. `more_days` counts days of the whole log, not only of the test period.
    """
    best, users = found.test[found.candidate], found.users
    own = (None if math.isnan(value) else value for value in found.own)
    return {
        "scenario": site,
        "verdict": found.verdict,
        "policy": found.candidate if found.verdict == "use" else today,
        "candidate": found.candidate,
        "runner_up": found.runner_up,
        "against": today,
        **_changes(best),
        "vetoes": best.vetoes,
        "n": found.blocks,
        "replays": found.replays,
        "more_days": None if found.more_days is None else math.ceil(round(found.more_days / log.test_share, 6)),
        "period": f"the log's last {found.jobs} jobs, {found.blocks} blocks of three days",
        "others": {name: _changes(found.test[name]) for name in [found.runner_up] if name},
        "orders": [
            {"name": one.name, "for_slurm": one.name in FOR_SLURM, "vetoes": one.vetoes, **_changes(one)}
            for one in found.test.values()
        ],
        "learned": dict(found.learned._asdict()) if found.learned else None,
        "excluded": {one.name: one.vetoes for one in found.validation if one.vetoes},
        "classes": [dict(one._asdict()) for one in found.classes],
        "users": {"gain": users[0], "lose": users[1], "all": users[2]},
        "own": dict(zip(("wait", "p99_wait", "longest_wait"), own, strict=True)),
        "limits": log.trace.has_estimates,
        "backfill": dict(log.backfill),
        "in_vain": [
            {str(key): value for key, value in row.items()} for row in limits.head(SHOWN_USERS).to_dict("records")
        ],
        "processors": sum(row[0] for row in log.fit.park.capacity) / THOUSANDTHS,
        "log": [*describe(log.trace, log.fit, {})[:-2], *log.outages],  # without the scaling to other loads
    }


def limits_table(period: Period) -> pd.DataFrame:
    """Return a row for each user with enough jobs in a period, in descending order of `in_vain_h`.

    `used` is the median share of the limit that was used. `suggested_s` would have covered 95 % of the user's jobs with
    a fifth to spare, but is at most the user's longest limit. `in_vain_h` are processor hours that were reserved but
    not used. A limit of a year or more means no limit; such jobs do not count.
    """
    limit = period.queue.limit[period.first :]
    limited = limit < LONGEST_S
    user = np.where(limited, period.user[period.first :], -1)
    run, cpus = period.run, period.queue.cpus[period.first :]
    users = np.unique(user[user >= 0])
    rows = [_limits_of(int(one), *(column[user == one] for column in (run, limit, cpus))) for one in users]
    found = pd.DataFrame([row for row in rows if row["jobs"] >= FEWEST], columns=list(LIMITS.columns))
    found = found.astype({name: str(column.dtype) for name, column in LIMITS.columns.items()})  # also if it is empty
    return found.sort_values(["in_vain_h", "user"], ascending=[False, True], ignore_index=True)


def _limits_of(user: int, run: np.ndarray, limit: np.ndarray, cpus: np.ndarray) -> Mapping[str, float]:
    return {
        "user": user,
        "jobs": len(run),
        "limit_s": float(np.median(limit)),
        "run_s": float(np.median(run)),
        "used": float(np.median(np.minimum(run / limit, 1.0))),
        "suggested_s": float(min(SPARE * np.quantile(run, SHARE, method="inverted_cdf"), np.max(limit))),
        "in_vain_h": float((np.maximum(limit - run, 0.0) * cpus).sum() / 3600),
    }
