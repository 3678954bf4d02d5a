"""`schedule`: run any policy over a user's own jobs and write when each starts."""

from pathlib import Path

from pipeline import storage
from pipeline.config import Params, Scenario, Swf
from pipeline.core import Cluster
from pipeline.errors import UserError
from pipeline.evaluation.scheduling import mean_slowdown, schedule
from pipeline.progress import progress, say
from pipeline.stages.policies import policy_by_name


def run(params: Params, jobs: Path, scenario: Scenario, policy: str, out: Path) -> None:
    """Write the schedule of a job table or log.

    Args:
        params: settings of logs, and the seed.
        jobs: .csv, .csv.gz, .parquet, .swf or .swf.gz.
        scenario: the cluster that the jobs run on.
        policy: a heuristic by name, or a model directory.
        out: .csv, .csv.gz or .parquet.
    """
    storage.check_out(out)
    if out.exists() and jobs.exists() and out.samefile(jobs):
        raise UserError(f"{out}: the jobs are read from it: name another file for the schedule")
    chosen, masked = policy_by_name(policy, scenario)
    swf = params.workload if isinstance(params.workload, Swf) else Swf(name="swf", path=str(jobs))
    with progress(f"read {jobs}, percent", 100, brief=True) as advance:
        table, notes = storage.read_jobs(jobs, scenario, swf, advance)
    for note in notes:
        say(note)
    with progress(f"schedule by {policy}, percent", 100, brief=True) as advance:
        start = schedule(table, Cluster.of(scenario), chosen, masked, params.seed, advance)
    with progress(f"write {out}, percent", 100, brief=True) as advance:
        storage.write_schedule(out, table, start, advance)
    say(f"{out}: {len(start)} jobs, mean slowdown {mean_slowdown(table, start):.4g} under {policy}")
