"""`what-if`: a site's waits if it had more machines, other limits, more load, or a user who submits at night."""

from pipeline.comparing.words import percent, span
from pipeline.core.config import Params, check_known
from pipeline.core.logs.trace import DAY_S
from pipeline.core.types import Json
from pipeline.progress import progress
from pipeline.report.advice import duration
from pipeline.sites.evidence import SiteLog
from pipeline.sites.figures import MEASURES
from pipeline.sites.orders import names_of
from pipeline.sites.what_if import what_if


def run(params: Params, site: str, change: str, policy: str | None) -> tuple[dict[str, Json], str]:
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
