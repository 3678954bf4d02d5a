"""Small queues for tests."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pipeline.core.config.evaluation import Quota
from pipeline.sites.queue import Period
from pipeline.sites.quotas import quotas_of
from pipeline.sites.replay import Queue


class Job(NamedTuple):
    """A job; its demand of each resource, on each of its machines."""

    submit: float
    run: float
    demand: int | tuple[int, ...] = 1
    limit: float | None = None  # None: the run time
    nodes: int = 1
    user: int = 0
    partition: int = 0
    group: int = 0


def queue(
    capacity: Sequence[int | tuple[int, ...]],
    *jobs: Job,
    members: Sequence[Sequence[int]] | None = None,
    tier: Sequence[int] | None = None,
    factor: Sequence[float] | None = None,
    quotas: Sequence[Quota] = (),
    groups: Sequence[tuple[str, str]] = (("", ""),),
) -> Queue:
    """A queue, by default with one partition; `members` lists the machines of each partition."""
    amounts = np.array(capacity, dtype=np.int64).reshape(len(capacity), -1) * 1000
    demand = np.array([job.demand for job in jobs], dtype=np.int64).reshape(len(jobs), -1) * 1000
    nodes = np.array([job.nodes for job in jobs], dtype=np.int64)
    user = np.array([job.user for job in jobs], dtype=np.int64)
    of = [range(len(capacity))] if members is None else members
    return Queue(
        submit=np.array([job.submit for job in jobs], dtype=np.float64),
        run=np.array([job.run for job in jobs], dtype=np.float64),
        limit=np.array([job.run if job.limit is None else job.limit for job in jobs], dtype=np.float64),
        nodes=nodes,
        demand=demand,
        cpus=np.maximum(nodes * demand[:, 0] / 1000, 1.0),
        user=user,
        qos=np.zeros(len(jobs)),
        partition=np.array([job.partition for job in jobs], dtype=np.int64),
        capacity=amounts,
        members=np.array([[k in some for k in range(len(capacity))] for some in of]),
        tier=np.zeros(len(of), dtype=np.int64) if tier is None else np.array(tier, dtype=np.int64),
        factor=np.ones(len(of)) if factor is None else np.array(factor, dtype=np.float64),
        **quotas_of(quotas, user, np.array([job.group for job in jobs], dtype=np.int64), groups)._asdict(),
        whole=len(capacity) > 1,
    )


def period(queue: Queue, first: int = 0, moved: Sequence[Sequence[float]] = ((0.0,),)) -> Period:
    """A period of a whole queue, with a replay for each row of `moved`, which is added to the submission times."""
    submit = queue.submit + np.array([np.broadcast_to(row, len(queue.submit)) for row in moved])
    unknown = np.full(len(queue.submit), np.nan)
    return Period(queue, first, submit, np.argsort(submit, axis=1, kind="stable"), unknown, queue.user, unknown)
