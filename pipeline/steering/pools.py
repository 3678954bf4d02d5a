"""Jobs that compete with each other, and jobs that are skipped.

Jobs are ordered only within partitions of one PriorityTier that share nodes. A job that names several partitions joins
those of the highest tier among them. The waiting tasks of an array are one entry: Slurm keeps one record of them, and
an update of the array reaches all of them.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from pipeline.steering.rows import HOLDING, PENDING, JobRow, NodeRow, Reading

NOT_ELIGIBLE, RESERVED, NO_NODE = "not eligible", "in a reservation", "no node"
OTHERS, FROZEN, UNREAD = "set by others", "frozen", "its line cannot be read"


class Pool(NamedTuple):
    """Jobs that compete, and the nodes that they compete for."""

    partitions: tuple[str, ...]
    nodes: Sequence[NodeRow]  # once each
    waiting: Sequence[JobRow]  # in order of their numbers; an array once
    running: Sequence[JobRow]  # all jobs that hold resources


def find_pools(reading: Reading, skipped: Mapping[int, str]) -> tuple[list[Pool], dict[int, str]]:
    """Group the waiting jobs by what they compete for; also return the jobs that are left out, by number, and why.

    `skipped` are jobs to leave out (number of the array: reason).
    """
    entries, left = _entries(reading, skipped)
    tier = {node.partition: node.tier for node in reading.nodes}
    homes: dict[int, list[str]] = {}
    for number, job in entries.items():
        known = [name for name in job.partitions if name in tier]
        highest = max((tier[name] for name in known), default=0)
        homes[number] = [name for name in known if tier[name] == highest]
    root = _joined(reading.nodes, homes.values())
    waiting: dict[str, list[JobRow]] = defaultdict(list)
    for number, job in sorted(entries.items()):
        if homes[number]:
            waiting[root[homes[number][0]]].append(job)
        else:
            left[number] = NO_NODE
    running = [job for job in reading.jobs if job.state in HOLDING]
    return [_pool(first, root, reading.nodes, jobs, running) for first, jobs in sorted(waiting.items())], left


def empty_pools(nodes: Sequence[NodeRow]) -> list[Pool]:
    """Return the pools of all partitions, without jobs."""
    root = _joined(nodes, [])
    return [_pool(first, root, nodes, [], []) for first in sorted(set(root.values()))]


def _pool(
    first: str, root: Mapping[str, str], every: Sequence[NodeRow], waiting: Sequence[JobRow], running: Sequence[JobRow]
) -> Pool:
    own = tuple(sorted(name for name in root if root[name] == first))
    nodes = {node.name: node for node in sorted(every, key=lambda n: n.takes) if node.partition in own}
    return Pool(own, [nodes[name] for name in sorted(nodes)], waiting, running)


def by_arrival(pool: Pool) -> list[int]:
    """Return the waiting jobs of a pool by number, in order of arrival."""
    return [job.array for job in sorted(pool.waiting, key=lambda job: (job.arrived, job.array))]


def _entries(reading: Reading, skipped: Mapping[int, str]) -> tuple[dict[int, JobRow], dict[int, str]]:
    """Return jobs that may be ordered, by the number of their array, and the reasons of those that may not."""
    found: dict[int, JobRow] = {}
    left: dict[int, str] = {}
    for job in sorted(reading.jobs, key=lambda one: one.number):
        if job.odd and job.state not in HOLDING:
            left[job.array] = UNREAD
        if job.odd or job.state != PENDING:
            continue
        if job.number not in reading.factors:  # sprio lists only jobs that may start: no held or dependent ones
            left.setdefault(job.array, NOT_ELIGIBLE)
        elif job.reserved:
            left[job.array] = RESERVED
        elif job.array in skipped:
            left[job.array] = skipped[job.array]
        else:
            found.setdefault(job.array, job)
    return found, {number: why for number, why in left.items() if number not in found}


def _joined(nodes: Sequence[NodeRow], homes: Iterable[Sequence[str]]) -> dict[str, str]:
    """Return, for each partition, the first of its pool; partitions that share nodes or jobs form a pool."""
    root = {node.partition: node.partition for node in nodes}

    def first(name: str) -> str:
        while root[name] != name:
            name = root[name]
        return name

    def join(one: str, other: str) -> None:
        low, high = sorted((first(one), first(other)))
        root[high] = low

    seen: dict[tuple[str, int], str] = {}
    for node in nodes:
        join(node.partition, seen.setdefault((node.name, node.tier), node.partition))
    for home in homes:
        for name in home[1:]:
            join(home[0], name)
    return {name: first(name) for name in root}
