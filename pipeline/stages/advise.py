"""`advise`: replay a site's log under every policy and recommend one."""

from pipeline import tracking
from pipeline.comparing.advice import Advice, advise
from pipeline.core import storage
from pipeline.core.config import Params
from pipeline.core.schemas import TRIAL
from pipeline.core.types import Json
from pipeline.errors import UserError
from pipeline.execution.executor import executor
from pipeline.problems import trial
from pipeline.problems.parts import Trial
from pipeline.progress import progress, say
from pipeline.report.advice import NO_LIMITS, page, sentence

FOLDER = storage.REPORTS / "advice"
TABLE, KNOWN = "trial.parquet", "known.json"
LIST, PAGE = storage.REPORTS / "advice.json", storage.REPORTS / "advice.html"


def run(params: Params, site: str) -> None:
    """Write reports/advice/<site>, then update the page and the list of all sites."""
    if site not in params.sites:
        raise UserError(f"unknown site '{site}'; 'python -m pipeline site LOG' writes one into params.yaml")
    with tracking.stage("advise", site, params) as run, executor(params.threads) as workers:
        run.inputs(storage.LOGS / site, storage.model_folder(params.sites[site].agent, "policy"))
        tried = trial(params, site, workers)
        with progress(f"advise {site}", 1, brief=True):
            advice = _advice(params, site, tried)
            storage.discard(FOLDER / site)
            storage.write_table(FOLDER / site / TABLE, tried.played, TRIAL)
            storage.write_json(FOLDER / site / KNOWN, {"limits": tried.limits})
            storage.write_json(FOLDER / site / LIST.name, [_record(advice)])
    with progress("update the advice", 1, brief=True):
        renew(params)
    say(f"{site}: {sentence(advice)}")
    if not advice.limits:
        say(f"{site}: warning: {NO_LIMITS}")
    say(f"the advice: {PAGE}")


def _advice(params: Params, site: str, tried: Trial) -> Advice:
    row = params.sites[site]
    advice = advise(site, tried.played, row.today, row.agent, params.evaluation, params.seed)
    knows = getattr(params.scenario(site), "policies_know", "")
    given = "estimates" if tried.limits else "durations"
    return advice._replace(limits=tried.limits, needs="" if advice.learned or given == knows else given)


def renew(params: Params) -> None:
    """Write the page and the list of all sites with a replayed log, if there is any."""
    every = []
    for site in params.sites:
        place, known = FOLDER / site / TABLE, FOLDER / site / KNOWN
        if place.exists():
            limits = not known.exists() or storage.read_json(known) == {"limits": True}
            every.append(_advice(params, site, Trial(storage.read_table(place, TRIAL), limits)))
    if every:
        storage.write_json(LIST, [_record(advice) for advice in every])
        storage.write(PAGE, page(every, params.evaluation.confidence).encode())


def _record(advice: Advice) -> dict[str, Json]:
    """Return a site's machine-readable record; changes are against today's policy, and 0 if none is advised."""
    mean, p99 = (
        {end: round(getattr(change, end), 6) if advice.clear else 0.0 for end in ("change", "low", "high")}
        for change in (advice.mean, advice.p99)
    )
    return {
        "scenario": advice.scenario,
        "policy": advice.policy,
        "learned": advice.learned,
        "against": advice.today,
        "mean": dict(mean),
        "p99": dict(p99),
        "n": advice.blocks,
        "period": f"the log's last {advice.jobs} jobs, {advice.blocks} blocks of three days",
    }
