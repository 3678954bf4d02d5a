"""The jobs of a journal, played by the simulator under several policies on the nodes of their queue.

All plays backfill as EASY does, are told time limits, and run each job for as long as it ran.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import inf
from pathlib import Path

import numpy as np
from pydantic import BaseModel, ValidationError

from pipeline.core import THOUSANDTHS, FloatArray, Json, Policy, keys
from pipeline.errors import UserError
from pipeline.problems.machines.evaluation.play import Game, played
from pipeline.problems.machines.nouns import DISPATCH, Jobs, Machines
from pipeline.progress import ShareCallback, no_progress
from pipeline.steering.states import ENDLESS_S, KNOWN, LEAST_S

EASY, ARRIVAL = "easy", "fcfs"
SLOTS = 2000  # of jobs that a policy sees, at most
LOOK = 1000  # decisions between two looks at the time: of large queues each takes milliseconds


class Ran(BaseModel):
    """A row of a journal: a job that ended."""

    job: int = 0
    array: int = 0
    user: str = ""
    partition: str
    submit: float = 0.0
    eligible: float
    start: float
    end: float
    limit_s: float | None
    nodes: int
    units: dict[str, float]
    could_start: bool = True
    open: float | None = None

    @property
    def arrival(self) -> tuple[float, int]:
        """Return by what jobs are put in order: those that arrive together, by number, as Slurm has it."""
        return self.eligible, self.job


class Nodes(BaseModel):
    """A row of a journal: the nodes of a queue."""

    partitions: tuple[str, ...]
    machines: dict[str, dict[str, float]]

    @property
    def resources(self) -> list[str]:
        """Return the resources that any of them has."""
        return [name for name in KNOWN if any(units.get(name, 0.0) > 0 for units in self.machines.values())]

    def takes(self, job: Ran) -> bool:
        """Return whether a job is of this queue, and its nodes could hold it: others would stop the play."""
        could = [
            all(job.units.get(name, 0.0) / job.nodes <= units.get(name, 0.0) + 1e-3 for name in KNOWN)
            for units in self.machines.values()
        ]
        there = not set(job.partition.split(",")).isdisjoint(self.partitions)
        return there and sum(could) >= job.nodes and any(job.units.values())


def recorded(folder: Path, rows: Iterable[Mapping[str, Json]]) -> tuple[list[Nodes], list[Ran]]:
    """Return the queues of a folder's journal as they were seen last, and the jobs that ended.

    A job that was gone between two readings, and could have started, counts as one that ran for half the time between
    them: without those, whatever a policy does to short jobs would be left out.

    Raises:
        UserError: a row is none of a journal's.
    """
    pools: dict[tuple[str, ...], Nodes] = {}
    jobs: list[Ran] = []
    before = inf  # the reading before
    for row in rows:
        try:
            if row["kind"] == "pool":
                pool = Nodes.model_validate(row)
                pools[pool.partitions] = pool
            elif row["kind"] == "ran":
                jobs.append(Ran.model_validate(row))
            elif row["kind"] == "left" and row.get("could_start", True):
                end = float(str(row["end"]))
                jobs.append(Ran.model_validate(dict(row) | {"start": end - max(end - before, 0.0) / 2}))
            elif row["kind"] == "tick":
                before = float(str(row["time"]))
        except (ValidationError, KeyError, ValueError) as error:
            raise UserError(
                f"{folder}: expected a journal, found a row that is none ({type(error).__name__})"
            ) from None
    return list(pools.values()), jobs


def waits(
    jobs: Sequence[Ran],
    nodes: Nodes,
    policies: Sequence[Policy],
    seed: int,
    resources: Sequence[str] = (),
    slots: int = SLOTS,
    unit_s: float = 1.0,
    on_progress: ShareCallback = no_progress,
) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Yield for each policy how long each job waits [J] in seconds, and how long it runs.

    Args:
        jobs: of the queue.
        nodes: that they are played on.
        policies: that order them.
        seed: of what policies draw.
        resources: that count; none: all that the nodes have.
        slots: jobs that a policy sees.
        unit_s: seconds of the policies' unit of time.
        on_progress: is called as it goes, and may raise to end it.
    """
    resources = resources or nodes.resources
    capacity = np.array([[units.get(name, 0.0) for name in resources] for units in nodes.machines.values()])
    machines = Machines(
        capacity=np.round(capacity * THOUSANDTHS).astype(np.int64),
        kind=np.zeros(len(capacity), dtype=np.int64),
        slots=slots if slots < SLOTS else min(len(jobs), SLOTS),
        dispatch=DISPATCH.index(EASY),
        pause=inf,
        time_limit=inf,
    )
    told = _jobs(jobs, resources, machines, unit_s)
    nothing = np.zeros(1, dtype=np.int64)
    game = Game([told], machines, keys(seed, nothing, nothing), LOOK)
    for found in played(game, policies, on_progress):
        yield (found.start - told.arrival) * unit_s, told.duration * unit_s


def _jobs(jobs: Sequence[Ran], resources: Sequence[str], machines: Machines, unit_s: float) -> Jobs:
    first = min(job.eligible for job in jobs)
    demand = np.array([[job.units.get(name, 0.0) / job.nodes for name in resources] for job in jobs])
    limit = np.array([ENDLESS_S if job.limit_s is None else max(job.limit_s, LEAST_S) for job in jobs])
    return Jobs(
        arrival=np.array([job.eligible - first for job in jobs]) / unit_s,
        duration=np.array([max(job.end - job.start, LEAST_S) for job in jobs]) / unit_s,
        estimate=limit / unit_s,
        demand=np.minimum(np.round(demand * THOUSANDTHS).astype(np.int64), machines.capacity.max(axis=0)),
        nodes=np.array([job.nodes for job in jobs], dtype=np.int64),
        kinds=np.ones(len(jobs), dtype=np.uint64),
    )
