"""A controller sets shares for a live cluster: any policy of the scenario, on the state as an episode."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pipeline.config import Params
from pipeline.errors import UserError
from pipeline.live.deciding import ONLY, RefusedError
from pipeline.problems.groups.evaluation.foresight import Act
from pipeline.problems.groups.heuristics.names import REFERENCES
from pipeline.problems.groups.live.cluster import Names, episode_of, remembered, seen
from pipeline.problems.groups.live.state import GroupShare, SharesDecision, SharesState
from pipeline.problems.groups.nouns import SharedCluster
from pipeline.problems.groups.policies import policy_by_name
from pipeline.problems.groups.simulator.knapsack.several import plan
from pipeline.problems.groups.workload.source import cluster_of, configurations_of


@dataclass(frozen=True)
class Decider:
    """A controller of a scenario's cluster."""

    names: Names
    cluster: SharedCluster
    act: Act
    rng: np.random.Generator

    def __call__(self, state: SharesState) -> SharesDecision:
        """Return what the controller wants.

        Raises:
            UserError: the state contradicts itself.
            RefusedError: what it sets cannot be set.
        """
        episode = episode_of(state, self.names, self.cluster)
        view = seen(episode, state)
        shares_of, orders_of = self.act(episode, ONLY, view, self.rng.random(1))
        share, order = shares_of[0], orders_of[0]
        good = (share >= 0).all() and (share <= self.cluster.capacity).all()
        if not good or not ((order >= 0) & (order < len(self.names.orders))).all():
            raise RefusedError("it sets shares that there are not")
        memory = remembered(view, share, order, self.names)
        shares = tuple(GroupShare(units=one.units, order=one.order) for one in memory)
        return SharesDecision(shares=shares, until=state.now + self.cluster.interval, memory=memory)


def decider(params: Params, scenario: str, name: str, tuned: Mapping[str, float]) -> Decider:
    """Return what sets shares as a controller does: a rule by name, or a model's folder.

    Raises:
        UserError: there is none, it is a model of another cluster, or a reference that divides nothing or knows all.
    """
    row = params.groups_scenario(scenario)
    if name in REFERENCES:
        raise UserError(f"policy '{name}' is not served: it is no more than a reference")
    act, cluster = policy_by_name(name, params, scenario, tuned), cluster_of(row)
    if Path(name).is_dir():
        # All groups want the most, once: what is compiled when they first do so takes longer than any answer may.
        units = configurations_of(row).units
        plan(np.tile(np.arange(len(units), dtype=float), (1, cluster.groups, 1)), units, cluster.capacity)
    return Decider(Names.of(row), cluster, act, np.random.default_rng(params.seed))
