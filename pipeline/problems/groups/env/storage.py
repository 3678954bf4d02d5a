"""Storage of jobsets of user groups as tables."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from pipeline.core.storage import jobsets as tables
from pipeline.core.storage.files import read_table, write_table
from pipeline.core.types import FloatArray, IntArray
from pipeline.problems.groups.env.nouns import Jobs, SharedCluster, check_jobs
from pipeline.problems.groups.env.tables import jobs_schema

TIMES = ("arrival", "duration", "estimate")
WHOLE = ("group", "queue")


def write_jobsets(folder: Path, split: str, jobsets: Mapping[int, Sequence[Jobs]], resources: Iterable[str]) -> None:
    """Write the jobsets of one split, by load."""
    names = list(resources)

    def columns(jobs: Jobs) -> dict[str, IntArray | FloatArray]:
        own = {name: getattr(jobs, name) for name in (*TIMES, *WHOLE)}
        return own | {name: jobs.demand[:, r] for r, name in enumerate(names)}

    frame = tables.jobs_frame(jobsets, columns, TIMES)
    write_table(tables.jobsets_file(folder, split), frame, jobs_schema(names))


def read_jobsets(folder: Path, split: str, resources: Iterable[str], cluster: SharedCluster) -> dict[int, list[Jobs]]:
    """Read the jobsets of one split, by load.

    Raises:
        UserError: the table is missing or damaged, or a job has an unknown group or queue, or an excessive demand.
    """
    path, names = tables.jobsets_file(folder, split), list(resources)
    frame = read_table(path, jobs_schema(names))
    found = tables.jobsets_of(frame, [frame[name].to_numpy() for name in (*TIMES, names, *WHOLE)], Jobs)
    tables.check_can_run(found, lambda jobs: check_jobs(jobs, cluster), path)
    return found
