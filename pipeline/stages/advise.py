"""`advise`: replay a site's log under every order of its queue, and recommend one."""

from pipeline import tracking
from pipeline.core import storage
from pipeline.core.config import Params
from pipeline.core.schemas.tables import LIMITS
from pipeline.core.schemas.tables import ORDERS as ORDERS_TABLE
from pipeline.core.types import Json
from pipeline.progress import progress, remark, say
from pipeline.report.advice import NO_LIMITS, page, sentence
from pipeline.sites.advice import advise, steps
from pipeline.sites.evidence import (
    EVIDENCE,
    FOLDER,
    RECORD,
    TABLE,
    USERS,
    Evidence,
    SiteLog,
    evidence,
    limits_table,
    read_evidence,
    table,
)

ADVICE = "verdict.json"  # for the gate, which depends on reports/tables
LIST, PAGE = storage.REPORTS / "advice.json", storage.REPORTS / "advice.html"


def run(params: Params, site: str) -> None:
    """Write reports/advice/<site>, then update the page and the list of all sites."""
    with tracking.stage("advise", site, params) as run:
        log = SiteLog(params, site)
        run.inputs(storage.scenario_log(site))
        row = params.sites[site]
        with progress(f"advise {site}, orders", steps(row)) as advance:
            done = [0]

            def more(count: int) -> None:
                done[0] += count
                advance(done[0])

            found = advise(log.periods, row, params.evaluation, params.seed, params.threads, more)
        users = limits_table(log.periods["test"])
        kept = evidence(site, row.today, found, log, users)
        storage.discard(FOLDER / site, storage.results_folder("advice", site))
        storage.write_table(FOLDER / site / TABLE, table(found), ORDERS_TABLE)
        storage.write_table(FOLDER / site / USERS, users, LIMITS)
        storage.write_json(FOLDER / site / EVIDENCE, kept)
        storage.write_json(storage.results_folder("advice", site) / ADVICE, for_gate(kept))
    with progress("update the advice", 1, brief=True):
        renew(params)
    remark(f"{site}: {sentence(kept)}")
    if not log.trace.has_estimates:
        say(f"{site}: warning: {NO_LIMITS}")
    remark(f"the advice: {PAGE}")


def for_gate(kept: Evidence) -> dict[str, Json]:
    """Return the advice for the gate; an order is vetoed by the test period, or else by the validation period."""
    vetoes = kept["excluded"] | {one["name"]: one["vetoes"] for one in kept["orders"] if one["vetoes"]}
    said = {name: " and ".join(why) for name, why in vetoes.items()}
    return {**{key: kept[key] for key in ("scenario", "verdict", "policy", "candidate")}, "vetoes": said}


def renew(params: Params) -> None:
    """Write the page and the list of all sites with a replayed log, if there is any."""
    found = [one for site in params.sites if (one := read_evidence(site)) is not None]
    if found:
        storage.write_json(LIST, [{key: one[key] for key in RECORD} for one in found])
        storage.write(PAGE, page(found, params.evaluation.confidence).encode())
