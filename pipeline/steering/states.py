"""Jobs that compete with each other, the state that a policy sees of them, as JSON, and its decision read back.

Jobs are ordered only within a pool: partitions of one PriorityTier that share nodes. A job that names several
partitions joins those of the highest tier among them. The waiting tasks of an array are one entry: Slurm keeps one
record of them, and an update of the array reaches all of them.

A node that takes no jobs appears in a state as if one job held all of it. squeue prints what a job holds in total and
where, but not how much on which node: the state has even shares, reduced where a node has less left.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from pydantic import BaseModel, ValidationError

from pipeline.core.config import Params
from pipeline.core.config.records import first_error
from pipeline.core.logs.slurm import expand_hostlist
from pipeline.core.types import Json
from pipeline.errors import UserError
from pipeline.interactive.machines.live.state import MachinesDecision, MachinesState
from pipeline.steering.rows import HOLDING, PENDING, JobRow, NodeRow, OddError, Reading

NOT_ELIGIBLE, RESERVED, NO_NODE = "not eligible", "in a reservation", "no node"
OTHERS, FROZEN, UNREAD = "set by others", "frozen", "its line cannot be read"
KNOWN = ("cpu", "memory", "gpu")  # resources, by the names that scenarios use
MOST_WAITING = 2000  # of one state; later jobs keep Slurm's order
ENDLESS_S = 365 * 86_400.0  # limit of a job without one
LEAST_S = 1.0


class Pool(NamedTuple):
    """Jobs that compete, and the nodes that they compete for."""

    partitions: tuple[str, ...]
    nodes: Sequence[NodeRow]  # once each
    waiting: Sequence[JobRow]  # in order of their numbers; an array once
    running: Sequence[JobRow]  # all jobs that hold resources

    @property
    def by_arrival(self) -> list[int]:
        """Numbers of the waiting jobs, in order of arrival."""
        return [job.array for job in sorted(self.waiting, key=lambda job: (job.arrived, job.array))]


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
    pool_of = _joined(reading.nodes, homes.values())
    waiting: dict[tuple[str, ...], list[JobRow]] = defaultdict(list)
    for number, job in sorted(entries.items()):
        if homes[number]:
            waiting[pool_of[homes[number][0]]].append(job)
        else:
            left[number] = NO_NODE
    running = [job for job in reading.jobs if job.state in HOLDING]
    return [Pool(own, _nodes_in(own, reading.nodes), jobs, running) for own, jobs in sorted(waiting.items())], left


def empty_pools(nodes: Sequence[NodeRow]) -> list[Pool]:
    """Return the pools of all partitions, without jobs."""
    return [Pool(own, _nodes_in(own, nodes), [], []) for own in sorted(set(_joined(nodes, []).values()))]


def _nodes_in(partitions: Sequence[str], every: Sequence[NodeRow]) -> list[NodeRow]:
    nodes = {node.name: node for node in sorted(every, key=lambda n: n.takes) if node.partition in partitions}
    return [nodes[name] for name in sorted(nodes)]


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


def _joined(nodes: Sequence[NodeRow], homes: Iterable[Sequence[str]]) -> dict[str, tuple[str, ...]]:
    """Return, for each partition, those of its pool; partitions that share nodes or jobs form a pool."""
    shared: dict[tuple[str, int], set[str]] = defaultdict(set)
    for node in nodes:
        shared[node.name, node.tier].add(node.partition)
    pools = {node.partition: {node.partition} for node in nodes}
    for group in {frozenset(one) for one in (*shared.values(), *homes)}:
        joined = set[str]().union(*(pools[name] for name in group))
        pools |= dict.fromkeys(joined, joined)
    return {name: tuple(sorted(pool)) for name, pool in pools.items()}


def resources_of(example: Mapping[str, Json], scenario: str) -> tuple[str, ...]:
    """Return the resources of a scenario; raise a UserError for one that is not read from Slurm."""
    waiting = example.get("waiting")
    demands = [job.get("demand") for job in waiting if isinstance(job, Mapping)] if isinstance(waiting, list) else []
    names = sorted({name for demand in demands if isinstance(demand, Mapping) for name in demand})
    for name in names:
        if name not in KNOWN:
            raise UserError(f"scenario '{scenario}': resource '{name}': Slurm is read for {', '.join(KNOWN)}")
    return tuple(names)


def state_of(pool: Pool, now: float, resources: Sequence[str], unit_s: float) -> Json:
    """Return the state that a policy decides on, in the scenario's resources and units of time."""
    waiting = sorted(pool.waiting, key=lambda job: (min(job.arrived, now), job.number))[:MOST_WAITING]
    return {
        "now": now / unit_s,
        "machines": [{"name": node.name, "has": {name: node.units[name] for name in resources}} for node in pool.nodes],
        "waiting": [
            {
                "id": str(job.array),
                "arrived": min(job.arrived, now) / unit_s,
                "duration": _limit(job) / unit_s,
                "demand": {name: job.units[name] / job.nodes for name in resources if job.units[name]},
                "nodes": job.nodes,
            }
            for job in waiting
        ],
        "running": _running(pool, now, resources, unit_s),
    }


def _limit(job: JobRow) -> float:
    return ENDLESS_S if job.limit_s is None else max(job.limit_s, LEAST_S)


def _running(pool: Pool, now: float, resources: Sequence[str], unit_s: float) -> list[Json]:
    """Return everything that holds a part of the pool's nodes."""
    free = {node.name: {name: node.units[name] for name in resources} for node in pool.nodes}
    found: list[Json] = []
    for node in pool.nodes:
        if not node.takes:
            found.append(_job_on(f"{node.name} takes no jobs", now, ENDLESS_S, free[node.name], node.name, unit_s))
            free[node.name] = dict.fromkeys(resources, 0.0)
    for job in pool.running:
        try:
            places = list(dict.fromkeys(expand_hostlist(job.places)))
        except UserError:
            places = []
        for place in places:
            if place not in free:
                continue
            left = free[place]
            # Cut to the thousandths that policies count in, so that shares never exceed the node in total.
            shares = {name: min(job.units[name] / len(places), left[name]) for name in resources}
            taken = {name: int(share * 1000 + 1e-6) / 1000 for name, share in shares.items()}
            free[place] = {name: left[name] - taken[name] for name in resources}
            begun = now if job.started is None else min(job.started, now)
            if any(taken.values()):
                found.append(_job_on(f"{job.number} on {place}", begun, _limit(job), taken, place, unit_s))
    return found


def _job_on(what: str, begun: float, length_s: float, units: Mapping[str, float], place: str, unit_s: float) -> Json:
    return {
        "id": what[:200],
        "started": begun / unit_s,
        "duration": length_s / unit_s,
        "demand": {name: amount for name, amount in units.items() if amount},
        "machines": [place],
    }


def check_state(model: type[BaseModel], state: Json) -> BaseModel:
    """Return a state as the policies' type; raise an OddError if it is not valid."""
    try:
        return model.model_validate(state)
    except ValidationError as error:
        raise OddError(first_error(error, state, "state of Slurm")) from None


def scored_jobs(decision: MachinesDecision, pool: Pool) -> tuple[list[int], list[float | None]]:
    """Return the jobs in a decision's order, by number, and their scores; raise an OddError for unknown jobs."""
    found = [int(one.job) for one in decision.order]
    if len(set(found)) != len(found) or not set(found) <= {job.array for job in pool.waiting}:
        raise OddError("the policy's order is none of these jobs")
    return found, [one.score for one in decision.order]


def started_jobs(decision: MachinesDecision, pool: Pool) -> tuple[dict[int, tuple[str, ...]], list[int]]:
    """Return the nodes of each job that a decision starts, in order, and the jobs that fit on no nodes.

    Raises OddError: unknown names.
    """
    starts = {int(one.job): one.machines for one in decision.starts}
    never = [int(job) for job in decision.never]
    jobs = [int(one.job) for one in decision.starts] + never
    nodes = {name for places in starts.values() for name in places}
    known = set(jobs) <= {job.array for job in pool.waiting} and nodes <= {node.name for node in pool.nodes}
    if len(set(jobs)) != len(jobs) or not known:
        raise OddError("the policy starts none of these jobs on these nodes")
    return starts, never


def misfits(params: Params, scenario: str, nodes: Sequence[NodeRow]) -> Iterator[str]:
    """Yield a line for each queue whose nodes a scenario's model does not know, so that it makes no decisions there."""
    from pipeline.interactive.live.deciding import RefusedError
    from pipeline.interactive.machines.live.deciding import check_known, from_state
    from pipeline.interactive.machines.scheduling import park_of

    park = park_of(params, scenario)
    for pool in empty_pools(nodes):
        state = check_state(MachinesState, state_of(pool, 0.0, park.resources, 1.0))
        assert isinstance(state, MachinesState)
        try:
            check_known(from_state(params, scenario, state), park)
        except RefusedError as error:
            yield f"{', '.join(pool.partitions)}: the model refuses these nodes ({error}): Slurm's own order applies"
