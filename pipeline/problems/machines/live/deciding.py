"""Policies of many machines that decide for live ones: heuristics, networks, and those made elsewhere.

Where the scenario's dispatch holds others for a job that does not fit, that one has a reservation, and others start if
they do not delay it.
"""

from collections.abc import Mapping
from functools import partial
from pathlib import Path

import numpy as np

from pipeline import storage
from pipeline.config import MachinePark, MachinesCard, MachinesScenario, Params
from pipeline.external.loading import is_external
from pipeline.live.deciding import Answer, Decider, LivePolicy, RefusedError, acting, heuristic, network
from pipeline.problems.machines.heuristics.rules import HEURISTICS
from pipeline.problems.machines.heuristics.tuning import MIX, TETRIS, heuristics_with
from pipeline.problems.machines.live.cluster import MachinesNow, episode_of
from pipeline.problems.machines.live.state import MachinesDecision, MachinesState, Reserved, Start
from pipeline.problems.machines.policies import policy_by_name
from pipeline.problems.machines.user_jobs import park_of
from pipeline.problems.machines.workload.park import machines_of


def decider(
    params: Params, scenario: str, name: str, tuned: Mapping[str, float]
) -> Decider[MachinesState, MachinesNow, MachinesDecision]:
    """Return what decides as a policy does: a heuristic by name, or a model's folder.

    Raises:
        UserError: there is none, or it is a model that was trained for others.
    """
    row, park = params.machines_scenario(scenario), park_of(params, scenario)
    policy: LivePolicy[MachinesNow]
    if name in HEURISTICS:
        mixed = name == TETRIS and set(MIX) <= set(tuned)
        policy = heuristic(heuristics_with(tuned)[name] if mixed else HEURISTICS[name])
    elif is_external(name):
        policy = acting(policy_by_name(name, row, park, scenario))
    else:
        policy = _network(name, row, park, scenario)
    read = partial(episode_of, park=park, like=machines_of(row, park), ahead=name not in HEURISTICS)
    return Decider(read, policy, worded, np.random.default_rng(params.seed))


def worded(now: MachinesNow, answer: Answer) -> MachinesDecision:
    """Return an answer with jobs and machines by their names."""
    first, held = now.simulator.held
    runs = len(first) - 1 - len(now.ids)
    starts = tuple(
        Start(
            job=now.ids[job],
            machines=tuple(now.machines[k].name for k in held[first[runs + job] : first[runs + job + 1]]),
        )
        for job in answer.starts
    )
    reserved = Reserved(job=now.ids[answer.held[0]], at=answer.held[1]) if answer.held else None
    return MachinesDecision(order=answer.order, starts=starts, never=now.never, more=answer.more, reserved=reserved)


def _network(name: str, row: MachinesScenario, park: MachinePark, scenario: str) -> LivePolicy[MachinesNow]:
    policy_by_name(name, row, park, scenario)  # says what is wrong with the name
    from pipeline.problems.machines.networks.loading import forward
    from pipeline.problems.machines.networks.features import features
    from pipeline.problems.machines.networks.loading import restore

    model = storage.read_model(Path(name), MachinesCard)
    asked = restore(model.card, model.weights).network
    knows = partial(must_know, park=park)
    return network(lambda view: features(view, asked.shape), partial(forward, asked), model.card, knows)


def must_know(now: MachinesNow, park: MachinePark) -> None:
    """Refuse what a trained policy never met.

    Raises:
        RefusedError: other resources, as many machines as it does not know, or a kind of machine that it does not know.
    """
    if now.resources != park.resources:
        raise RefusedError(f"trained for resources {', '.join(park.resources)}; here: {', '.join(now.resources)}")
    if unknown := sorted(now.asked - set(park.resources)):
        raise RefusedError(f"a job asks for '{unknown[0]}', which it never met")
    if len(now.machines) != len(park.capacity):
        raise RefusedError(f"trained for {len(park.capacity)} machines; here: {len(now.machines)}")
    known = {(park.kind_names[kind], row) for kind, row in zip(park.kind, park.capacity, strict=True)}
    for machine, row in zip(now.machines, now.simulator.machines.capacity.tolist(), strict=True):
        if (machine.kind, tuple(row)) not in known:
            raise RefusedError(f"machine '{machine.name}' is of a make that it never met")
