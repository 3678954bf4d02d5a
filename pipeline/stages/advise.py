"""`advise`: replay a site's log under every order of its queue, and recommend one."""

import math
from typing import Any

import pandas as pd

from pipeline import tracking
from pipeline.core import storage
from pipeline.core.config import MachinesLog, Params
from pipeline.core.config.records import check_known
from pipeline.core.logs.trace import Trace
from pipeline.core.schemas import ORDERS as ORDERS_TABLE
from pipeline.core.types import THOUSANDTHS, Json
from pipeline.errors import UserError
from pipeline.problems.machines.env.workload.windows import Fitted, describe, fitted, read_log
from pipeline.progress import progress, say
from pipeline.report.advice import NO_LIMITS, page, sentence
from pipeline.sites.advice import Advice, Judged, advise
from pipeline.sites.orders import FAMILIES, ORDERS
from pipeline.sites.queue import periods_of

FOLDER = storage.REPORTS / "advice"
TABLE, EVIDENCE = "orders.csv", "evidence.json"
LIST, PAGE = storage.REPORTS / "advice.json", storage.REPORTS / "advice.html"


def run(params: Params, site: str) -> None:
    """Write reports/advice/<site>, then update the page and the list of all sites."""
    with tracking.stage("advise", site, params) as run:
        trace, fit = log_of(params, site)
        run.inputs(storage.LOGS / site)
        row = params.sites[site]
        check_known("params.yaml", f"sites.{site}.today", row.today, ORDERS)
        periods = periods_of(fit, params.machines_scenario(site), row.warm_up_days, params.seed)
        with progress(f"advise {site}, orders", 2 * len(ORDERS)) as advance:
            found = advise(periods, row, params.evaluation, params.seed, params.threads, advance)
        storage.discard(FOLDER / site)
        storage.write_table(FOLDER / site / TABLE, _table(found), ORDERS_TABLE)
        storage.write_json(FOLDER / site / EVIDENCE, _evidence(site, row.today, found, trace, fit))
    with progress("update the advice", 1, brief=True):
        renew(params)
    evidence: Any = storage.read_json(FOLDER / site / EVIDENCE)
    say(f"{site}: {sentence(evidence)}")
    if not trace.has_estimates:
        say(f"{site}: warning: {NO_LIMITS}")
    say(f"the advice: {PAGE}")


def log_of(params: Params, site: str) -> tuple[Trace, Fitted]:
    """Return a site's log, and as jobs of its machines; policies know limits, or run times where there are none.

    Raises:
        UserError: there is no such site, or its jobs do not come from a log in periods.
    """
    if site not in params.sites:
        raise UserError(f"unknown site '{site}'; 'python -m pipeline site LOG' writes one into params.yaml")
    scenario = params.machines_scenario(site)
    workload = scenario.workload
    if not isinstance(workload, MachinesLog) or workload.parts is not None:
        raise UserError(f"sites.{site}: expected a scenario of a log in periods, found jobs of another source")
    with progress(f"read the log of {site}, percent", 100, brief=True) as advance:
        trace = read_log(workload, storage.scenario_log(site), advance)
    knows = "estimates" if trace.has_estimates else "durations"
    with progress(f"prepare the log of {site}", 1, brief=True):
        return trace, fitted(trace, workload, scenario.model_copy(update={"policies_know": knows}))


def renew(params: Params) -> None:
    """Write the page and the list of all sites with a replayed log, if there is any."""
    found: list[Any] = [
        storage.read_json(FOLDER / site / EVIDENCE) for site in params.sites if (FOLDER / site / EVIDENCE).exists()
    ]
    if found:
        storage.write_json(LIST, [{key: one[key] for key in RECORD} for one in found])
        storage.write(PAGE, page(found, params.evaluation.confidence).encode())


RECORD = (
    *("scenario", "verdict", "policy", "candidate", "runner_up", "against"),
    *("gain", "wait", "p99_wait", "longest_wait", "slowdown", "vetoes", "n", "replays", "more_days", "period"),
)


def _table(found: Advice) -> pd.DataFrame:
    """Return the figures of every order on both periods."""
    rows = []
    for period, judged in (("validation", found.validation), ("test", found.test.values())):
        for one in judged:
            values = {name: one.figures[name].value for name in ("wait", "p99_wait", "longest_wait", "slowdown")}
            changes = {f"{name}_change": it.change for name, it in one.figures.items()}
            large = one.large.change if one.large else float("nan")
            rows.append(
                {"period": period, "order": one.name, "for_slurm": one.name in FAMILIES}
                | values | changes | {"large_change": large, "vetoes": "; ".join(one.vetoes)}
            )  # fmt: skip
    return pd.DataFrame(rows)


def _changes(one: Judged) -> dict[str, Json]:
    return {name: dict(it._asdict()) for name, it in one.figures.items()}


def _evidence(site: str, today: str, found: Advice, trace: Trace, fit: Fitted) -> dict[str, Json]:
    """Return all that the page shows of a site; changes are against today's order."""
    best, users = found.test[found.candidate], found.users
    total = fit.park.capacity
    shown = [found.candidate, *([found.runner_up] if found.runner_up else [])]
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
        "more_days": found.more_days,
        "period": f"the log's last {found.jobs} jobs, {found.blocks} blocks of three days",
        "others": {name: _changes(found.test[name]) for name in shown[1:]},
        "orders": [
            {"name": one.name, "for_slurm": one.name in FAMILIES, "vetoes": one.vetoes, **_changes(one)}
            for one in found.test.values()
        ],
        "excluded": {one.name: one.vetoes for one in found.validation if one.vetoes},
        "classes": [dict(one._asdict()) for one in found.classes],
        "users": {"gain": users[0], "lose": users[1], "all": users[2]},
        "own": dict(zip(("wait", "p99_wait", "longest_wait"), (_known(x) for x in found.own), strict=True)),
        "limits": trace.has_estimates,
        "processors": sum(row[0] for row in total) / THOUSANDTHS,
        "log": describe(trace, fit, {})[:-2],  # without the scaling to other loads
    }


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value
