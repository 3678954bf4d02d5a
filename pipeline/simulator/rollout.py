"""Play a policy in a simulator to the end of every episode."""

from collections.abc import Callable

import numpy as np

from pipeline.core import IntArray, KeyArray, Observation, Policy, Simulator, uniform

Watch = Callable[[IntArray, Observation, IntArray], None]  # (episodes, what they saw, what was done)


def play(simulator: Simulator, policy: Policy, key: KeyArray, watch: Watch | None = None) -> None:
    """Let a policy decide until every episode is over.

    Args:
        simulator: at any point of its episodes.
        policy: asked once a lock step for all episodes still going.
        key: random key [B] of each episode; its n-th decision draws the same number in any company.
        watch: told of every decision, before it is carried out.
    """
    decision = np.zeros(len(key), dtype=np.int64)
    rows = simulator.rows
    while len(rows):
        view = simulator.observe(rows)
        actions = policy(view, uniform(key[rows], decision[rows]))
        if watch is not None:
            watch(rows, view, actions)
        simulator.step(rows, actions)
        decision[rows] += 1
        rows = simulator.rows
