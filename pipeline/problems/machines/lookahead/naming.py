"""`plan_saf`, `plan_models/agent`: a heuristic or a network by name, improved by looking ahead."""

from collections.abc import Mapping
from functools import partial

import numpy as np

from pipeline import storage
from pipeline.config import MachinesCard, Params
from pipeline.core import FloatArray, Observation, Policy
from pipeline.errors import UserError
from pipeline.problems.machines.lookahead.asking import Asked
from pipeline.problems.machines.lookahead.futures import Outlook, outlook
from pipeline.problems.machines.lookahead.planner import Planner, Reach
from pipeline.problems.machines.workload.source import source
from pipeline.simulation.choosing import compiled_rule_of

PREFIX = "plan_"
FIRST = 1_000_000  # number of the first fresh jobset that futures are taken from; no training draws so many
JOBSETS = 4  # of each load that futures are taken from
# Networks: they are asked for every copy of a decision, and are right more often than few futures are.
LEARNED = Reach(candidates=4, futures=8, decisions=4_000, sure=1.0)


def planned(base: Policy | Asked, name: str, past: Outlook, reach: Reach) -> Planner:
    """Return a policy that looks ahead.

    Args:
        base: a heuristic, or what `network_base` returns.
        name: its name, for people.
        past: what futures are taken from.
        reach: how far it looks.

    Raises:
        UserError: it has no compiled rule, or there is too little of a past.
    """
    player = base if isinstance(base, Asked) else compiled_rule_of(base)
    if player is None:
        raise UserError(f"policy '{PREFIX}{name}': expected a heuristic that is compiled behind {PREFIX}, got '{name}'")
    if not past.reaches(reach.jobs):
        raise UserError(f"policy '{PREFIX}{name}': expected more than {reach.jobs} jobs that futures can be taken from")
    return Planner(player, past, reach)


def network_base(card: MachinesCard, weights: Mapping[str, FloatArray]) -> Asked:
    """Return a stored network as what looks ahead improves it: it plays on with the actions that it likes best.

    Raises:
        UserError: the weights are not those of the network on the card.
    """
    # torch: 2 s and 250 MB that heuristics do without
    from pipeline.problems.machines.networks.acting import PLAY, compiled, forward, greedy
    from pipeline.problems.machines.networks.actor_critic import DeepSets
    from pipeline.problems.machines.networks.features import features
    from pipeline.problems.machines.networks.loading import restore

    network = restore(card, weights).network
    alike = isinstance(network, DeepSets)
    scores = compiled(network) if isinstance(network, DeepSets) else partial(forward, network)

    def likes(view: Observation) -> FloatArray:
        observed = features(view, network.shape)
        return np.where(observed.may, scores(observed), -np.inf)

    return Asked(PLAY[card.play](network, scores), greedy(network, scores), likes, alike)


def past_of(params: Params, scenario: str) -> Outlook:
    """Return what a scenario's training jobsets show, of all loads alike."""
    origin = source(params, scenario, storage.scenario_log(scenario))
    return outlook(
        [origin.fresh(load, FIRST + k) for load in params.machines_scenario(scenario).loads for k in range(JOBSETS)]
    )
