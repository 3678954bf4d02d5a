"""`schedule`: run any policy over a user's own jobs and write when each starts."""

from pathlib import Path

from pipeline import storage
from pipeline.config import Params, Scenario, Swf
from pipeline.core import Cluster
from pipeline.evaluation.scheduling import schedule
from pipeline.progress import say
from pipeline.schemas import SCHEDULE
from pipeline.stages.policies import policy_by_name
from pipeline.workload.tables import jobsets_of


def run(params: Params, jobs: Path, scenario: Scenario, policy: str, out: Path) -> None:
    """Write the schedule of a job table or log.

    Args:
        params: settings of logs, and the seed.
        jobs: .csv, .csv.gz, .parquet, .swf or .swf.gz.
        scenario: the cluster that the jobs run on.
        policy: a heuristic by name, or a model directory.
        out: .csv, .csv.gz or .parquet.
    """
    storage.check_table_suffix(out)
    chosen, masked = policy_by_name(policy, scenario)
    swf = params.workload if isinstance(params.workload, Swf) else Swf(name="swf", path=str(jobs))
    frame, notes = storage.read_jobs(jobs, scenario, swf)
    for note in notes:
        say(note)
    table = jobsets_of(frame, list(scenario.resources))
    found = schedule(frame, table, Cluster.of(scenario), chosen, masked, params.seed)
    storage.write_table(out, found, SCHEDULE)
    say(f"{out}: {len(found)} jobs, mean slowdown {found['slowdown'].mean():.4g} under {policy}")
