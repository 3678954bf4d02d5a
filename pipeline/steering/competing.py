"""Which jobs stand against each other, and which are left alone.

Jobs are ordered only among those that compete: of partitions of one PriorityTier that share nodes. A job of several
partitions joins those of the highest tier that it names. An array's waiting tasks are one entry: Slurm keeps one record
of them, and an update of the array reaches all.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from pipeline.steering.rows import HOLDING, PENDING, JobRow, NodeRow, Reading

NOT_ELIGIBLE, RESERVED, OTHERS, FROZEN, HOMELESS = (
    "not eligible",
    "in a reservation",
    "set by others",
    "frozen",
    "no node",
)
UNREAD = "its line cannot be read"


class Pool(NamedTuple):
    """Jobs that compete, and the nodes that they compete for."""

    partitions: tuple[str, ...]
    nodes: Sequence[NodeRow]  # once each
    waiting: Sequence[JobRow]  # an array once; in order of their numbers
    running: Sequence[JobRow]  # whatever holds something


class Queue(NamedTuple):
    """What a reading comes to."""

    pools: Sequence[Pool]
    left: Mapping[int, str]  # jobs that are left alone, by number, and why


def competing(reading: Reading, alone: Mapping[int, str]) -> Queue:
    """Return the jobs that wait, by those that they compete with.

    Args:
        reading: the cluster.
        alone: jobs that are to be left alone, by the number of their array, and why.
    """
    entries, left = _entries(reading, alone)
    tier = {node.partition: node.tier for node in reading.nodes}
    homes = {number: _home(job, tier) for number, job in entries.items()}
    root = _joined(reading.nodes, homes.values())
    waiting: dict[str, list[JobRow]] = defaultdict(list)
    for number, job in sorted(entries.items()):
        if homes[number]:
            waiting[root[homes[number][0]]].append(job)
        else:
            left[number] = HOMELESS
    running = [job for job in reading.jobs if job.state in HOLDING]
    pools = [_pool(first, root, reading.nodes, jobs, running) for first, jobs in sorted(waiting.items())]
    return Queue(pools, left)


def without_jobs(nodes: Sequence[NodeRow]) -> list[Pool]:
    """Return the pools of all partitions, as if nothing waited or ran."""
    root = _joined(nodes, [])
    return [_pool(first, root, nodes, [], []) for first in sorted(set(root.values()))]


def _pool(
    first: str, root: Mapping[str, str], every: Sequence[NodeRow], waiting: Sequence[JobRow], running: Sequence[JobRow]
) -> Pool:
    own = tuple(sorted(name for name in root if root[name] == first))
    nodes = {node.name: node for node in sorted(every, key=lambda n: n.takes) if node.partition in own}
    return Pool(own, [nodes[name] for name in sorted(nodes)], waiting, running)


def by_arrival(pool: Pool) -> list[int]:
    """Return the jobs of a pool by number, the first to have come at the head."""
    return [job.array for job in sorted(pool.waiting, key=lambda job: (job.arrived, job.array))]


def why_left(left: Mapping[int, str]) -> dict[str, int]:
    """Return how many jobs are left alone, by why."""
    return dict(sorted(Counter(left.values()).items()))


def _entries(reading: Reading, alone: Mapping[int, str]) -> tuple[dict[int, JobRow], dict[int, str]]:
    """Return jobs that may be ordered, by the number of their array, and those that may not."""
    found: dict[int, JobRow] = {}
    left: dict[int, str] = {}
    for job in sorted(reading.jobs, key=lambda one: one.number):
        if job.odd and job.state not in HOLDING:
            left[job.array] = UNREAD
        if job.odd or job.state != PENDING:
            continue
        if job.number not in reading.factors:  # sprio has those alone that may start: none held, none that depends
            left.setdefault(job.array, NOT_ELIGIBLE)
        elif job.reserved:
            left[job.array] = RESERVED
        elif job.array in alone:
            left[job.array] = alone[job.array]
        else:
            found.setdefault(job.array, job)
    return found, {number: why for number, why in left.items() if number not in found}


def _home(job: JobRow, tier: Mapping[str, int]) -> list[str]:
    there = [name for name in job.partitions if name in tier]
    highest = max((tier[name] for name in there), default=0)
    return [name for name in there if tier[name] == highest]


def _joined(nodes: Sequence[NodeRow], homes: Iterable[Sequence[str]]) -> dict[str, str]:
    """Return for each partition the first of those that it is joined with."""
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
