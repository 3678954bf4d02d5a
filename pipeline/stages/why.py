"""`why`: the reasons for the start of a site's job under an order of its queue."""

from pipeline.core.config import Params, check_known
from pipeline.core.types import Json
from pipeline.errors import UserError
from pipeline.progress import progress
from pipeline.report.advice import duration
from pipeline.sites.evidence import SiteLog, read_evidence
from pipeline.sites.learned import WEIGHTS, score_of
from pipeline.sites.orders import FOR_SLURM, LEARNED, names_of, order_of
from pipeline.sites.queue import log_of
from pipeline.sites.slurm_settings import SlurmOrder
from pipeline.sites.why import Rank, why
from pipeline.stages.when import log_numbers

SCORES = {  # times in seconds
    "limit": "-ln(limit)", "area": "-ln(limit x CPUs)", "sjf": "-limit", "saf": "-limit x CPUs",
    "saf_aged": "-limit x CPUs / (1 + wait / 4 h)", "f1": "-(log10(limit) x CPUs + 870 log10(submission))",
    "wfp3": "(wait / limit)^3 x CPUs", "unicep": "wait / (log2(CPUs) x limit)",
}  # fmt: skip


def run(params: Params, site: str, number: int | None, policy: str | None) -> tuple[dict[str, Json], list[str]]:
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
        *([f"score, of times in s: {score}{points}"] if score else []),
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
