"""What became of jobs, as readings show: who started when, and who is gone. A journal's rows of kind `ran`.

A job's end is when a reading no longer has it, up to a tick late. One that came and went between two readings is only
known to be gone.
"""

from collections.abc import Container, Iterator
from typing import NamedTuple

from pipeline.core import Json
from pipeline.steering.rows import HOLDING, PENDING, JobRow, Reading


class Gone(NamedTuple):
    """A job that is no longer there."""

    job: JobRow  # as it was seen last
    end: float

    def told(self, user: str) -> dict[str, Json]:
        """Return the row of a journal.

        Args:
            user: as it is called there.
        """
        job = self.job
        return {
            "job": job.number,
            "array": job.array,
            "user": user,
            "partition": ",".join(job.partitions),
            "submit": job.submitted,
            "eligible": job.submitted if job.eligible is None else job.eligible,
            "start": job.started if job.state in HOLDING else None,
            "end": self.end,
            "limit_s": job.limit_s,
            "nodes": job.nodes,
            "units": dict(job.units),
        }


class Outcomes:
    """Watches jobs from reading to reading."""

    def __init__(self) -> None:
        self._seen: dict[int, JobRow] = {}

    def since(self, reading: Reading, let_go: Container[int] = ()) -> Iterator[tuple[str, Gone]]:
        """Yield the jobs that are gone since the reading before: `ran`, or `left` if none saw them run.

        Args:
            reading: of the cluster.
            let_go: jobs that the controller held: they could start, but for it, when they were submitted.
        """
        there = {job.number: job for job in reading.jobs if job.state in (PENDING, *HOLDING)}
        there |= {number: job._replace(eligible=None) for number, job in there.items() if number in let_go}
        for number, job in self._seen.items():
            now = there.get(number)
            if now is not None and now.submitted == job.submitted:
                continue
            if job.state in HOLDING and job.started is not None:
                yield "ran", Gone(job, reading.now)
            else:
                yield "left", Gone(job, reading.now)
        self._seen = there
