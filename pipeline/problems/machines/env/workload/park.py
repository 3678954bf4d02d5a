"""The machines of a scenario: groups of params.yaml, or a sample of the machines of a log."""

from collections.abc import Sequence

import numpy as np

from pipeline.core.config import Group, MachinePark, MachinesScenario, Sampled, Tasks
from pipeline.core.logs.trace import MachineTable, thousandths
from pipeline.core.types import ANY_KIND, KeyArray
from pipeline.errors import UserError
from pipeline.problems.machines.env.nouns import DISPATCH, Machines

STALL = 10.0  # default: median run times without an arrival after which void is refused


def machines_of(scenario: MachinesScenario, park: MachinePark) -> Machines:
    """Return machines and dispatch of a scenario; the scenario's times are in the park's unit."""
    # For a log, the unit is the median run time.
    usual = STALL * (scenario.workload.median if isinstance(scenario.workload, Tasks) else 1.0)
    return Machines(
        capacity=np.array(park.capacity, dtype=np.int64),
        kind=np.array(park.kind, dtype=np.int64),
        slots=scenario.slots,
        dispatch=DISPATCH.index(scenario.dispatch),
        pause=scenario.pause * park.unit,
        time_limit=scenario.time_limit * park.unit,
        stall=(usual if scenario.stall is None else scenario.stall) * park.unit,
        measured=scenario.workload.measured if isinstance(scenario.workload, Tasks) else None,
    )


def time_scale(scenario: MachinesScenario, park: MachinePark) -> float:
    """Return the time that features encode as 0.5: the median run time."""
    return scenario.workload.median if isinstance(scenario.workload, Tasks) else park.unit


def grouped(groups: Sequence[Group], unit: float) -> MachinePark:
    """Return the machines of some groups, with kinds in the order of their first appearance."""
    kinds = list(dict.fromkeys(group.kind for group in groups))
    amounts = [tuple(thousandths(np.array(list(group.has.values()))).tolist()) for group in groups]
    return MachinePark(
        resources=tuple(groups[0].has),
        capacity=tuple(amount for amount, group in zip(amounts, groups, strict=True) for _ in range(group.count)),
        kind=tuple(kinds.index(group.kind) for group in groups for _ in range(group.count)),
        kind_names=tuple(kinds),
        unit=unit,
    )


def sampled(machines: MachineTable, chosen: Sampled, kind_names: Sequence[str], unit: float) -> MachinePark:
    """Return a sample of the machines of a log, in their order there.

    Raises:
        UserError: the log has fewer machines.
    """
    there = len(machines.kind)
    if chosen.sample > there:
        raise UserError(f"machines.sample: expected at most the log's {there} machines, got {chosen.sample}")
    rows = np.sort(np.random.default_rng(chosen.seed).choice(there, chosen.sample, replace=False))
    return MachinePark(
        resources=machines.resources,
        capacity=tuple(tuple(row) for row in machines.capacity[rows].tolist()),
        kind=tuple(machines.kind[rows].tolist()),
        kind_names=tuple(kind_names),
        unit=unit,
    )


def kinds_at(park: MachinePark, kinds: KeyArray, kind_names: Sequence[str]) -> KeyArray:
    """Return the bits of the cluster's kinds that jobs [J] may run on, given the bits of the log's kinds.

    A job that may run on any kind of the log also runs on kinds of the cluster that the log does not have.
    """
    found, place = np.unique(kinds, return_inverse=True)
    shared = [(kind_names.index(name), own) for own, name in enumerate(park.kind_names) if name in kind_names]
    moved = [
        int(ANY_KIND) if bits == ANY_KIND else sum(1 << own for there, own in shared if int(bits) >> there & 1)
        for bits in found
    ]
    return np.array(moved, dtype=np.uint64)[place]
