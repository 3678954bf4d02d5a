"""`advise`: replay a site's log under every policy, and say which one to use."""

from pipeline import storage, tracking
from pipeline.comparing.advice import Advice, advise
from pipeline.config import Params
from pipeline.core import Json
from pipeline.errors import UserError
from pipeline.execution.executor import executor
from pipeline.problems import trial
from pipeline.problems.parts import Trial
from pipeline.progress import progress, say
from pipeline.report.advice import NO_LIMITS, page, sentence
from pipeline.schemas import TRIAL

FOLDER = storage.REPORTS / "advice"
TABLE, KNOWN = "trial.parquet", "known.json"
LIST, PAGE = storage.REPORTS / "advice.json", storage.REPORTS / "advice.html"


def run(params: Params, site: str) -> None:
    """Write reports/advice/<site>; then renew the page and the list of all sites."""
    if site not in params.sites:
        raise UserError(f"unknown site '{site}'; 'python -m pipeline site LOG' writes one into params.yaml")
    with tracking.stage("advise", site, params) as run, executor(params.threads) as workers:
        run.inputs(storage.LOGS / site, storage.model_folder(params.sites[site].agent, "policy"))
        tried = trial(params, site, workers)
        with progress(f"advise {site}", 1, brief=True):
            found = advised(params, site, tried)
            storage.discard(FOLDER / site)
            storage.write_table(FOLDER / site / TABLE, tried.played, TRIAL)
            storage.write_json(FOLDER / site / KNOWN, {"limits": tried.limits})
            storage.write_json(FOLDER / site / LIST.name, [listed(found)])
    with progress("renew the advice", 1, brief=True):
        renew(params)
    say(f"{site}: {sentence(found)}")
    if not found.limits:
        say(f"{site}: warning: {NO_LIMITS}")
    say(f"the advice: {PAGE}")


def advised(params: Params, site: str, tried: Trial) -> Advice:
    """Return the advice of a site, of what was played."""
    row = params.sites[site]
    found = advise(site, tried.played, row.today, row.agent, params.evaluation, params.seed)
    knows = getattr(params.scenario(site), "policies_know", "")
    given = "estimates" if tried.limits else "durations"
    return found._replace(limits=tried.limits, needs="" if found.learned or given == knows else given)


def renew(params: Params) -> None:
    """Write the page and the list of all sites whose logs were replayed; nothing where there is none."""
    found = []
    for site in params.sites:
        place, known = FOLDER / site / TABLE, FOLDER / site / KNOWN
        if place.exists():
            limits = not known.exists() or storage.read_json(known) == {"limits": True}
            found.append(advised(params, site, Trial(storage.read_table(place, TRIAL), limits)))
    if found:
        storage.write_json(LIST, [listed(one) for one in found])
        storage.write(PAGE, page(found, params.evaluation.confidence).encode())


def listed(found: Advice) -> dict[str, Json]:
    """Return what a program reads of a site: the change against what it runs today, none where nothing is advised."""
    mean, p99 = (
        {end: round(getattr(change, end), 6) if found.clear else 0.0 for end in ("change", "low", "high")}
        for change in (found.mean, found.p99)
    )
    return {
        "scenario": found.scenario,
        "policy": found.policy,
        "learned": found.learned,
        "against": found.today,
        "mean": dict(mean),
        "p99": dict(p99),
        "n": found.blocks,
        "period": f"the log's last {found.jobs} jobs, {found.blocks} blocks of three days",
    }
