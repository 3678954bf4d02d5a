"""A state in numbers: what is free, who waits, when what is held comes back, and what a policy sees of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from pipeline.config import MachinePark
from pipeline.core import THOUSANDTHS, BoolArray, FloatArray, IntArray, Observation
from pipeline.errors import UserError
from pipeline.problems.machines.live.state import LiveMachine, MachinesState
from pipeline.problems.machines.nouns import GREEDY

Values = TypeVar("Values", IntArray, FloatArray)


@dataclass
class Now:
    """A cluster as it is; what is started is taken from it."""

    resources: tuple[str, ...]  # [R]
    names: Sequence[str]  # [K]
    kinds: Sequence[str]  # [K]
    capacity: IntArray  # [K, R]  thousandths
    free: IntArray  # [K, R]
    time: float
    last_arrival: float
    ids: list[str]  # [W]  waiting jobs in order of arrival
    demand: IntArray  # [W, R]
    duration: FloatArray  # [W]
    arrived: FloatArray  # [W]
    nodes: IntArray  # [W]
    could: BoolArray  # [W, K]  could the machine hold the job if nothing ran?
    waits: IntArray  # the places of those that still wait
    back: FloatArray  # [H]     when it seems to come back, in order,
    back_machine: IntArray  # [H]     where,
    back_units: IntArray  # [H, R]  and how much

    def fits(self, job: int) -> BoolArray:
        """Return which machines [K] could hold a waiting job now."""
        return np.asarray(self.could[job] & (self.demand[job] <= self.free).all(axis=1))

    def places(self, job: int, holds: BoolArray, wanted: int) -> IntArray:
        """Return the machines a job takes: the wanted one if that is one, and those behind it, around the end."""
        there = np.flatnonzero(holds)
        if len(there) < self.nodes[job]:
            return there[:0]
        turn = int(np.searchsorted(there, wanted)) if holds[wanted] else 0
        return np.concatenate([there[turn:], there[:turn]])[: self.nodes[job]]

    def start(self, job: int, places: IntArray) -> None:
        """Start a waiting job; it comes back when it is told to end."""
        self.free[places] -= self.demand[job]
        self.waits = self.waits[self.waits != job]
        end = self.time + self.duration[job]
        at = int(np.searchsorted(self.back, end, side="right"))
        self.back = _put_in(self.back, at, np.full(len(places), end))
        self.back_machine = _put_in(self.back_machine, at, places)
        self.back_units = _put_in(self.back_units, at, np.tile(self.demand[job], (len(places), 1)))

    def free_at(self, jobs: IntArray) -> FloatArray:
        """Return when each machine could hold each job [N, K], if jobs end as told; infinity: never."""
        found = np.where(self.could[jobs], self.time, np.inf)
        for k in range(len(self.names)):
            here = self.back_machine == k
            times = np.concatenate([[self.time], self.back[here], [np.inf]])
            units = self.free[k] + np.concatenate([[np.zeros_like(self.free[k])], self.back_units[here].cumsum(axis=0)])
            place = np.zeros(len(jobs), dtype=np.int64)
            for r in range(len(self.resources)):
                place = np.maximum(place, np.searchsorted(units[:, r], self.demand[jobs, r]))
            found[:, k] = np.maximum(found[:, k], times[place])
        return np.asarray(found)

    def fits_at(self, jobs: IntArray) -> FloatArray:
        """Return when each job [N] fits on as many machines as it wants; infinity: never."""
        times = np.sort(self.free_at(jobs), axis=1)
        return np.asarray(np.take_along_axis(times, self.nodes[jobs][:, None] - 1, axis=1)[:, 0])


def _put_in(values: Values, at: int, new: Values) -> Values:
    """Return values with new ones at a place; numpy's own `insert` takes ten times as long for so few."""
    return np.concatenate([values[:at], new, values[at:]])


def cluster_now(state: MachinesState, park: MachinePark) -> tuple[Now, tuple[str, ...]]:
    """Return a state in numbers, and the jobs that its machines could never run.

    Raises:
        UserError: running jobs hold what is not there.
    """
    machines = state.machines or _own(park)
    there = dict.fromkeys(name for machine in machines for name in machine.has)
    resources = park.resources if set(there) == set(park.resources) else tuple(there)
    capacity = np.array([_amounts(machine.has, resources) for machine in machines], dtype=np.int64)
    now = Now(
        resources,
        names := [machine.name for machine in machines],
        [machine.kind for machine in machines],
        capacity,
        capacity.copy(),
        state.now,
        _last(state),
        *_waiting(state, machines, resources, capacity),
        waits=np.empty(0, dtype=np.int64),
        back=np.empty(0),
        back_machine=np.empty(0, dtype=np.int64),
        back_units=np.empty((0, len(resources)), dtype=np.int64),
    )
    _hold(now, state, {name: k for k, name in enumerate(names)})
    can = now.could.sum(axis=1) >= now.nodes
    now.waits = np.flatnonzero(can)
    return now, tuple(now.ids[job] for job in np.flatnonzero(~can))


def _own(park: MachinePark) -> tuple[LiveMachine, ...]:
    """Return the machines of a scenario, named by their number."""
    return tuple(
        LiveMachine(
            name=str(k),
            has={name: amount / THOUSANDTHS for name, amount in zip(park.resources, amounts, strict=True)},
            kind=park.kind_names[park.kind[k]],
        )
        for k, amounts in enumerate(park.capacity)
    )


def _last(state: MachinesState) -> float:
    if state.last_arrival is not None:
        return state.last_arrival
    return max((job.arrived for job in state.waiting), default=state.now)


def _amounts(has: Mapping[str, float], resources: Sequence[str]) -> list[int]:
    return [round(has.get(name, 0.0) * THOUSANDTHS) for name in resources]


def _waiting(
    state: MachinesState, machines: Sequence[LiveMachine], resources: tuple[str, ...], capacity: IntArray
) -> tuple[list[str], IntArray, FloatArray, FloatArray, IntArray, BoolArray]:
    jobs = sorted(state.waiting, key=lambda job: job.arrived)
    demand = np.array([_amounts(job.demand, resources) for job in jobs], dtype=np.int64).reshape(-1, len(resources))
    known = [all(name in resources or not amount for name, amount in job.demand.items()) for job in jobs]
    kind = np.array([machine.kind for machine in machines])
    could = _within(demand, capacity) & np.array(known, dtype=np.bool_)[:, None]
    for m, job in enumerate(jobs):
        if job.kinds is not None:
            could[m] &= np.isin(kind, job.kinds)
    times = np.array([(job.duration, job.arrived, job.nodes) for job in jobs]).reshape(-1, 3)
    return [job.id for job in jobs], demand, times[:, 0], times[:, 1], times[:, 2].astype(np.int64), could


def _within(demand: IntArray, free: IntArray) -> BoolArray:
    """Return which demands [N, R] each machine could hold [N, K]; by resource, as an `all` over few takes ten times."""
    found = np.ones((len(demand), len(free)), dtype=np.bool_)
    for wanted, there in zip(demand.T, free.T, strict=True):
        found &= wanted[:, None] <= there
    return found


def _hold(now: Now, state: MachinesState, place: Mapping[str, int]) -> None:
    """Take what running jobs hold, and note when it seems to come back; of one that overruns, twice as long is told."""
    held: list[tuple[float, int, list[int]]] = []
    for job in state.running:
        where = f"running job '{job.id}'"
        for name in job.demand:
            if name not in now.resources and job.demand[name]:
                raise UserError(f"{where}: no machine has any '{name}'")
        units = _amounts(job.demand, now.resources)
        end = _seems_to_end(job.started, job.duration, now.time)
        for name in job.machines:
            if name not in place:
                raise UserError(f"{where}: unknown machine '{name}'")
            now.free[place[name]] -= units
            held.append((end, place[name], units))
    if (now.free < 0).any():
        k, r = np.argwhere(now.free < 0)[0]
        taken, whole = ((now.capacity[k, r] - now.free[k, r]) / THOUSANDTHS, now.capacity[k, r] / THOUSANDTHS)
        resource = now.resources[r]
        raise UserError(f"machine '{now.names[k]}': running jobs hold {taken:g} of {resource}; it has {whole:g}")
    held.sort(key=lambda one: one[0])
    now.back = np.array([end for end, _, _ in held])
    now.back_machine = np.array([k for _, k, _ in held], dtype=np.int64)
    now.back_units = np.array([units for _, _, units in held], dtype=np.int64).reshape(-1, len(now.resources))


def _seems_to_end(started: float, told: float, now: float) -> float:
    while started + told <= now:
        told *= 2.0
    return started + told


def observed(now: Now, slots: int, dispatch: int, stall: float, ahead: bool) -> Observation:
    """Return what a policy sees [B = 1]; `ahead`: with the times until jobs fit, which networks read."""
    jobs, behind = now.waits[:slots], now.waits[slots:]
    count, machines, resources = len(jobs), len(now.names), len(now.resources)
    view = _empty(slots, machines, resources)
    fits = now.could[jobs] & _within(now.demand[jobs], now.free)
    fits &= (fits.sum(axis=1) >= now.nodes[jobs])[:, None]
    view.free[0, :, 0], view.capacity[0] = now.free, now.capacity
    view.demand[0, :count], view.nodes[0, :count] = now.demand[jobs], now.nodes[jobs]
    view.duration[0, :count], view.waited[0, :count] = now.duration[jobs], now.time - now.arrived[jobs]
    view.fits_now[0, :count] = fits
    view.legal[0, :count] = fits if dispatch == GREEDY else now.could[jobs]
    if ahead:
        in_time = now.fits_at(jobs) - now.time
        view.fits_in[0, :count] = np.maximum(in_time, 0.0)
    view.backlog[0] = len(behind)
    if len(behind):
        view.backlog_head[0] = [now.duration[behind[0]], *now.demand[behind[0]]]
    view.since_arrival[0], view.now[0] = now.time - now.last_arrival, now.time
    view.may_idle[0] = view.since_arrival[0] < stall
    return view


def _empty(slots: int, machines: int, resources: int) -> Observation:
    return Observation(
        free=np.zeros((1, machines, 1, resources), dtype=np.int64),
        demand=np.zeros((1, slots, resources), dtype=np.int64),
        duration=np.zeros((1, slots)),
        waited=np.zeros((1, slots)),
        backlog=np.zeros(1, dtype=np.int64),
        backlog_head=np.zeros((1, resources + 1)),
        capacity=np.zeros((1, machines, resources), dtype=np.int64),
        since_arrival=np.zeros(1),
        legal=np.zeros((1, slots, machines), dtype=np.bool_),
        fits_now=np.zeros((1, slots, machines), dtype=np.bool_),
        now=np.zeros(1),
        nodes=np.zeros((1, slots), dtype=np.int64),
        fits_in=np.zeros((1, slots)),
        arrived=np.zeros((1, 2 + resources)),
        may_idle=np.zeros(1, dtype=np.bool_),
        to_end=np.full(1, np.inf),
    )
