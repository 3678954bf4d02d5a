"""Play any policy of many machines: compiled if it can be, looking ahead if it does, else asked move by move."""

from collections.abc import Iterator

import numpy as np

from pipeline.core import KeyArray, Policy
from pipeline.problems.machines.lookahead.planner import Planner
from pipeline.problems.machines.simulator.compiled.batch import Simulator
from pipeline.problems.machines.simulator.compiled.rules import players
from pipeline.simulation.choosing import compiled_rule_of
from pipeline.simulation.rollout import DECISIONS_AT_ONCE, play_compiled, play_together


def play_on(
    simulator: Simulator, policy: Policy | Planner, key: KeyArray, at_once: int = DECISIONS_AT_ONCE
) -> Iterator[int]:
    """Play a policy to the end; yield now and then how many episodes go on.

    Args:
        simulator: at any point of its episodes.
        policy: decides in all of them.
        key: random key [B] of each episode.
        at_once: decisions of compiled play between two looks at it.
    """
    if isinstance(policy, Planner):
        return policy.play(simulator, key)
    rule = compiled_rule_of(policy)
    if rule is None:
        return play_together(simulator, [policy], np.zeros(len(key), dtype=np.int64), key)
    return play_compiled(simulator, players([rule] * len(key), key), at_once)
