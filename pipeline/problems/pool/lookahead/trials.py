"""Who plays on from an action that is tried: a compiled rule, a network of `sets`, or whoever is asked."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from pipeline.core import CompiledRule, FloatArray, IntArray, Observation, Policy
from pipeline.problems.pool.lookahead.asking import Asked, try_asking
from pipeline.problems.pool.lookahead.set_trying import SetPlayer, try_with_network
from pipeline.problems.pool.lookahead.ways import Ways, draws_of, stirred
from pipeline.problems.pool.networks.relative import relative_buffer
from pipeline.problems.pool.nouns import Cluster
from pipeline.problems.pool.simulator.compiled.rules import players
from pipeline.problems.pool.simulator.compiled.state import Rules, State
from pipeline.problems.pool.simulator.compiled.trying import Futures, Limits, Tried, buffer, seen, try_actions

AT_ONCE = 256  # decisions that are taken side by side: the bound of the memory
COPIES = 4096  # of decisions, side by side, where a policy is asked
ENDLESS = np.iinfo(np.int64).max // 8  # steps; an episode's limit is none of the planner's

Player = CompiledRule | SetPlayer | Ways | Policy
Trial = Callable[[Observation, IntArray, IntArray, Tried], None]  # (view [D], actions, futures, what is written)


class Trials(NamedTuple):
    """What tries the actions of decisions."""

    at_once: int  # decisions
    run: Trial


def trials(
    player: Player, cluster: Cluster, futures: Futures, limits: Limits, tries: int, known: bool = False
) -> Trials:
    """Return what tries actions.

    Args:
        player: plays on.
        cluster: that jobs are scheduled on.
        futures: what may come.
        limits: how far.
        tries: actions times futures of a decision, at most.
        known: all jobs are, so that a network that is asked plays on in another way for each future.
    """
    end = -1 if cluster.arrivals_end is None else cluster.arrivals_end
    rules = Rules(cluster.place_ahead, ENDLESS, 0, False, False, cluster.stalled_after, end)
    if isinstance(player, CompiledRule):
        return Trials(AT_ONCE, _by_rule(player, _room(AT_ONCE, cluster, futures), rules, futures, limits))
    if isinstance(player, SetPlayer):
        return Trials(AT_ONCE, _by_sets(player, _room(AT_ONCE, cluster, futures), rules, cluster, futures, limits))
    at_once = max(1, COPIES // tries)
    state = _room(at_once * tries, cluster, futures)
    if isinstance(player, Ways):
        lasting = draws_of if known else np.zeros
        return Trials(at_once, _by_asking(stirred(player.liking), state, rules, cluster, futures, limits, lasting))
    return Trials(at_once, _by_asking(player, state, rules, cluster, futures, limits))


def _room(episodes: int, cluster: Cluster, futures: Futures) -> State:
    jobs = cluster.slots + cluster.backlog + int(np.diff(futures.first).max(initial=0))
    return buffer(episodes, jobs, cluster)


def _by_rule(rule: CompiledRule, state: State, rules: Rules, futures: Futures, limits: Limits) -> Trial:
    def run(view: Observation, action: IntArray, chosen: IntArray, tried: Tried) -> None:
        who = players([rule] * AT_ONCE, np.zeros(AT_ONCE, dtype=np.uint64))
        try_actions(state, rules, seen(view, action), who, futures, chosen, limits, tried)

    return run


def _by_sets(
    player: SetPlayer, state: State, rules: Rules, cluster: Cluster, futures: Futures, limits: Limits
) -> Trial:
    weights, held, observed = player.weights, np.array(player.holds_from), relative_buffer(AT_ONCE, cluster.slots)

    def run(view: Observation, action: IntArray, chosen: IntArray, tried: Tried) -> None:
        known = np.ascontiguousarray(view.arrived, dtype=np.float64)
        shown = seen(view, action)
        try_with_network(state, rules, shown, known, weights, held, observed, futures, chosen, limits, tried)

    return run


def _by_asking(
    policy: Policy, state: State, rules: Rules, cluster: Cluster, futures: Futures, limits: Limits,
    lasting: Callable[[int], FloatArray] | None = None,
) -> Trial:  # fmt: skip
    def run(view: Observation, action: IntArray, chosen: IntArray, tried: Tried) -> None:
        known = np.ascontiguousarray(view.arrived, dtype=np.float64)
        asked = Asked(policy, None if lasting is None else lasting(chosen.shape[1]))
        try_asking(state, rules, cluster, seen(view, action), known, asked, futures, chosen, limits, tried)

    return run
