"""What became of jobs, as readings show: who started when, and who is gone. A journal's rows of kind `ran`.

A job's end is when a reading no longer has it, up to a tick late. One that waited at a reading and is gone at the next
is only known to be gone: it ran for less than a tick or was cancelled.
"""

from collections.abc import Container, Iterator
from typing import NamedTuple

from pipeline.core import Json
from pipeline.steering.rows import HOLDING, PENDING, JobRow, Reading

OPEN_S = 86_400.0  # a job that is there for longer keeps no window open


class Gone(NamedTuple):
    """A job that is no longer there."""

    job: JobRow  # as it was seen last
    end: float
    could: bool  # could it have started?
    open: float | None  # the first arrival of the jobs that are still there

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
            "eligible": _arrived(job),
            "start": job.started if job.state in HOLDING else None,
            "end": self.end,
            "limit_s": job.limit_s,
            "nodes": job.nodes,
            "units": dict(job.units),
            "could_start": self.could,
            "open": self.open,
        }


def _arrived(job: JobRow) -> float:
    return job.submitted if job.eligible is None else job.eligible


class Outcomes:
    """Watches jobs from reading to reading."""

    def __init__(self) -> None:
        self._seen: dict[int, JobRow] = {}
        self._could: set[int] = set()  # of those, the jobs that run or could start

    def since(self, reading: Reading, let_go: Container[int] = ()) -> Iterator[tuple[str, Gone]]:
        """Yield the jobs that are gone since the reading before: `ran`, or `left` if none saw them run.

        Args:
            reading: of the cluster.
            let_go: jobs that the controller held: they could start, but for it, when they were submitted.
        """
        there = {job.number: job for job in reading.jobs if job.state in (PENDING, *HOLDING)}
        could = {number for number, job in there.items() if number in let_go or _could_start(job, reading.now)}
        there |= {number: job._replace(eligible=None) for number, job in there.items() if number in let_go}
        since = [_arrived(there[number]) for number in could]
        open_ = min((time for time in since if reading.now - time <= OPEN_S), default=None)
        for number, job in self._seen.items():
            now = there.get(number)
            if now is not None and now.submitted == job.submitted:
                continue
            ran = job.state in HOLDING and job.started is not None
            yield "ran" if ran else "left", Gone(job, reading.now, number in self._could, open_)
        self._seen, self._could = there, could


def _could_start(job: JobRow, now: float) -> bool:
    waits = job.eligible is not None and job.eligible <= now and not (job.hold or job.depends)
    return job.state in HOLDING or waits
