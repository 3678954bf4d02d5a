"""State of a Slurm cluster as a policy sees it, as JSON, and the policy's order read back.

A node that takes no jobs appears as one that a job holds wholly. squeue prints how much a job holds in all and where,
but not how much on which node: the state has even shares, cut where a node has no more. A list of nodes is expanded:

>>> expanded("n[08-10,12],gpu1,r[1-2]c[1-2]")
['n08', 'n09', 'n10', 'n12', 'gpu1', 'r1c1', 'r1c2', 'r2c1', 'r2c2']
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import NamedTuple

from pydantic import BaseModel, ValidationError

from pipeline.config import Params
from pipeline.config.records import first_error
from pipeline.core import Json
from pipeline.errors import UserError
from pipeline.problems.machines.live.state import MachinesDecision, MachinesState
from pipeline.steering.competing import Pool, without_jobs
from pipeline.steering.rows import JobRow, NodeRow, OddError

KNOWN = ("cpu", "memory", "gpu")  # resources, as scenarios name them
MOST_WAITING = 2000  # of one state; those behind them keep Slurm's order
ENDLESS_S = 365 * 86_400.0  # that a job without a limit is told to run
LEAST_S = 1.0
MOST_NODES = 20_000  # of one list
PART = re.compile(r"[^,\[\]]*(?:\[[^\[\]]+\][^,\[\]]*)*")
PIECE = re.compile(r"\[([^\[\]]+)\]|([^\[\]]+)")
RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?", re.ASCII)


def expanded(text: str) -> list[str]:
    """Return the names of a list of nodes, in its order.

    Raises:
        OddError: it is none, or longer than any cluster's.
    """
    found: list[str] = []
    for part in _parts(text):
        pieces = [_numbers(inside, text) if inside else [plain] for inside, plain in PIECE.findall(part)]
        count = 1
        for piece in pieces:
            count *= len(piece)
        if len(found) + count > MOST_NODES:
            raise OddError(f"a list of more than {MOST_NODES} nodes")
        found += ["".join(names) for names in product(*pieces)]
    return found


def _parts(text: str) -> Iterator[str]:
    at = 0
    while at < len(text):
        match = PART.match(text, at)
        if match is None or not match[0] or (match.end() < len(text) and text[match.end()] != ","):
            raise OddError(f"expected a list of nodes, found {text[:60]!r}")
        yield match[0]
        at = match.end() + 1


def _numbers(inside: str, text: str) -> list[str]:
    found: list[str] = []
    for one in inside.split(","):
        match = RANGE.fullmatch(one)
        if match is None:
            raise OddError(f"expected a list of nodes, found {text[:60]!r}")
        first, last = int(match[1]), int(match[2] or match[1])
        if not 0 <= last - first < MOST_NODES:
            raise OddError(f"expected a list of nodes, found {text[:60]!r}")
        found += [str(number).zfill(len(match[1])) for number in range(first, last + 1)]
    return found


class Start(NamedTuple):
    """A job that is to start now."""

    job: int
    nodes: tuple[str, ...]


def resources_of(example: Mapping[str, Json], scenario: str) -> tuple[str, ...]:
    """Return the resources of a scenario, which are told of jobs and nodes.

    Raises:
        UserError: Slurm is not read for one of them.
    """
    waiting = example.get("waiting")
    demands = [job.get("demand") for job in waiting if isinstance(job, Mapping)] if isinstance(waiting, list) else []
    names = sorted({name for demand in demands if isinstance(demand, Mapping) for name in demand})
    for name in names:
        if name not in KNOWN:
            raise UserError(f"scenario '{scenario}': resource '{name}': Slurm is read for {', '.join(KNOWN)}")
    return tuple(names)


def state_of(pool: Pool, now: float, resources: Sequence[str], unit_s: float) -> Json:
    """Return what a policy is asked about, in the scenario's resources and units of time."""
    waiting = sorted(pool.waiting, key=lambda job: (min(job.arrived, now), job.number))[:MOST_WAITING]
    return {
        "now": now / unit_s,
        "machines": [{"name": node.name, "has": _of(node.units, resources)} for node in pool.nodes],
        "waiting": [
            {
                "id": str(job.array),
                "arrived": min(job.arrived, now) / unit_s,
                "duration": _length(job) / unit_s,
                "demand": {name: job.units[name] / job.nodes for name in resources if job.units[name]},
                "nodes": job.nodes,
            }
            for job in waiting
        ],
        "running": _running(pool, now, resources, unit_s),
    }


def _length(job: JobRow) -> float:
    return ENDLESS_S if job.limit_s is None else max(job.limit_s, LEAST_S)


def _of(units: Mapping[str, float], resources: Sequence[str]) -> dict[str, Json]:
    return {name: units[name] for name in resources}


def _running(pool: Pool, now: float, resources: Sequence[str], unit_s: float) -> list[Json]:
    """Return what holds something of the pool's nodes."""
    free = {node.name: {name: node.units[name] for name in resources} for node in pool.nodes}
    found: list[Json] = []
    for node in pool.nodes:
        if not node.takes:
            found.append(_held(f"{node.name} takes no jobs", now, ENDLESS_S, free[node.name], node.name, unit_s))
            free[node.name] = dict.fromkeys(resources, 0.0)
    for job in pool.running:
        places = _places(job)
        for place in places:
            if place not in free:
                continue
            left = free[place]
            taken = {name: _thousandths(min(job.units[name] / len(places), left[name])) for name in resources}
            free[place] = {name: left[name] - taken[name] for name in resources}
            begun = now if job.started is None else min(job.started, now)
            if any(taken.values()):
                found.append(_held(f"{job.number} on {place}", begun, _length(job), taken, place, unit_s))
    return found


def _places(job: JobRow) -> list[str]:
    """Return the nodes of a job, once each; none where its list cannot be read."""
    try:
        return list(dict.fromkeys(expanded(job.places)))
    except OddError:
        return []


def _thousandths(amount: float) -> float:
    """Return an amount cut to what the policy counts in, so that shares never add up to more than there is."""
    return int(amount * 1000 + 1e-6) / 1000


def _held(what: str, begun: float, length_s: float, units: Mapping[str, float], place: str, unit_s: float) -> Json:
    return {
        "id": what[:200],
        "started": begun / unit_s,
        "duration": length_s / unit_s,
        "demand": {name: amount for name, amount in units.items() if amount},
        "machines": [place],
    }


def checked(model: type[BaseModel], told: Json) -> BaseModel:
    """Return a state as those who decide take it.

    Raises:
        OddError: they would not.
    """
    try:
        return model.model_validate(told)
    except ValidationError as error:
        raise OddError(first_error(error, told, "what Slurm told")) from None


def scored(decision: MachinesDecision, pool: Pool) -> tuple[list[int], list[float | None]]:
    """Return the jobs of a decision's order by number, the first to start at the head, and the score of each.

    Raises:
        OddError: the order names other jobs.
    """
    found = [int(one.job) for one in decision.order]
    if len(set(found)) != len(found) or not set(found) <= {job.array for job in pool.waiting}:
        raise OddError("the policy's order is none of these jobs")
    return found, [one.score for one in decision.order]


def started(decision: MachinesDecision, pool: Pool) -> tuple[list[Start], list[int]]:
    """Return the jobs that a decision starts and where, in its order, and those that no nodes of the queue could hold.

    Raises:
        OddError: it names other jobs or nodes.
    """
    starts = [Start(int(one.job), one.machines) for one in decision.starts]
    never = [int(job) for job in decision.never]
    jobs, nodes = [one.job for one in starts] + never, {name for one in starts for name in one.nodes}
    known = set(jobs) <= {job.array for job in pool.waiting} and nodes <= {node.name for node in pool.nodes}
    if len(set(jobs)) != len(jobs) or not known:
        raise OddError("the policy starts none of these jobs on these nodes")
    return starts, never


def misfits(params: Params, scenario: str, nodes: Sequence[NodeRow]) -> Iterator[str]:
    """Yield a line for each queue whose nodes a model of a scenario does not know, and for which it decides nothing."""
    from pipeline.live.deciding import RefusedError
    from pipeline.problems.machines.live.deciding import check_known, from_state
    from pipeline.problems.machines.user_jobs import park_of

    park = park_of(params, scenario)
    for pool in without_jobs(nodes):
        state = checked(MachinesState, state_of(pool, 0.0, park.resources, 1.0))
        assert isinstance(state, MachinesState)
        try:
            check_known(from_state(params, scenario, state), park)
        except RefusedError as error:
            yield f"{', '.join(pool.partitions)}: the model refuses these nodes ({error}): Slurm's own order stands"
