"""What can be improved by looking ahead: a heuristic, or a trained network, and how either is played on in copies."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from pipeline.config import PoolCard, PoolScenario
from pipeline.core import FloatArray, Observation, Policy
from pipeline.problems.pool.lookahead.set_trying import SetPlayer
from pipeline.problems.pool.lookahead.trials import Player
from pipeline.problems.pool.lookahead.ways import Liking, Ways
from pipeline.simulation.choosing import compiled_rule_of


class Base(NamedTuple):
    """A policy, and what plays on in copies as it does."""

    policy: Policy
    player: Player
    liking: Liking | None = None
    masked: bool = True  # does it keep to the legal actions?
    learned: bool = False


def plain_base(policy: Policy, masked: bool = True) -> Base:
    """Return a heuristic as a base: it plays as its compiled rule, or is asked where it has none."""
    return Base(policy, compiled_rule_of(policy) or policy, masked=masked)


def network_base(card: PoolCard, weights: Mapping[str, FloatArray], scenario: PoolScenario) -> Base:
    """Return a stored network as a base: `sets` plays on compiled, others are asked.

    Raises:
        UserError: it was trained on another cluster than the scenario's, or its weights are not those of its card.
    """
    # torch: 2 s and 250 MB that heuristics do without
    from pipeline.problems.pool.networks.loading import must_match, restore
    from pipeline.problems.pool.networks.network import Encoded, Scorer
    from pipeline.problems.pool.networks.sets import Sets

    must_match(card, scenario)
    loaded = restore(card, weights)

    def liking(scorer: Scorer[Encoded]) -> Liking:
        forward = scorer.frozen()

        def liked(view: Observation) -> FloatArray:
            observed = scorer.encode(view)
            return np.where(observed.may, forward(observed), -np.inf)

        return liked

    network = loaded.network
    if isinstance(network, Sets):
        plays = network.aged(card.ageing) if card.ageing else network
        rule = card.holds_from
        player = SetPlayer(plays.compiled(), (0.0, 0.0) if rule is None else (rule.jobs, rule.per_step))
        return Base(loaded.policy, player, liking(plays), loaded.masked, learned=True)
    return Base(loaded.policy, Ways(liking(loaded.scorer)), liking(network), loaded.masked, learned=True)
