"""A controller sets shares for a cluster as it is."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pipeline import storage
from pipeline.config import GroupsCard, GroupsScenario, Params
from pipeline.errors import UserError
from pipeline.external.loading import external, is_external
from pipeline.live.deciding import RefusedError
from pipeline.problems.groups.heuristics.names import RULES
from pipeline.problems.groups.heuristics.rules import HEURISTICS, capacity
from pipeline.problems.groups.heuristics.teachers import fixed
from pipeline.problems.groups.heuristics.tuning import ORDER, PART, WEIGHT, untuned
from pipeline.problems.groups.live.cluster import Names, observed, remembered
from pipeline.problems.groups.live.state import GroupShare, SharesDecision, SharesState
from pipeline.problems.groups.nouns import Configurations, Controller, SharedCluster
from pipeline.problems.groups.policies import must_match
from pipeline.problems.groups.simulator.knapsack.several import plan
from pipeline.problems.groups.workload.source import cluster_of, configurations_of

SERVED = (*HEURISTICS, "capacity", "fixed")


@dataclass(frozen=True)
class Decider:
    """A controller of a scenario's cluster."""

    names: Names
    cluster: SharedCluster
    control: Controller
    rng: np.random.Generator

    def __call__(self, state: SharesState) -> SharesDecision:
        """Return what the controller wants.

        Raises:
            UserError: the state contradicts itself.
            RefusedError: what it sets cannot be set.
        """
        view = observed(state, self.names, self.cluster)
        shares_of, orders_of = self.control(view, self.rng.random(1))
        share, order = shares_of[0], orders_of[0]
        good = (share >= 0).all() and (share <= self.cluster.capacity).all()
        if not good or not ((order >= 0) & (order < len(self.names.orders))).all():
            raise RefusedError("it sets shares that there are not")
        shares = tuple(
            GroupShare(
                units=dict(zip(self.names.resources, units.tolist(), strict=True)),
                order=self.names.orders[int(place)],
            )
            for units, place in zip(share, order, strict=True)
        )
        until, memory = state.now + self.cluster.interval, remembered(view, share, order, self.names)
        return SharesDecision(shares=shares, until=until, memory=memory)


def decider(params: Params, scenario: str, name: str, tuned: Mapping[str, float]) -> Decider:
    """Return what sets shares as a controller does: a rule by name, or a model's folder.

    Raises:
        UserError: there is none, or it is a model of another cluster, or a rule that plays the simulator.
    """
    row = params.groups_scenario(scenario)
    if is_external(name):
        control: Controller = external(name, row)
    else:
        control = _model(Path(name), row) if Path(name).is_dir() else _rule(name, row, tuned)
    return Decider(Names.of(row), cluster_of(row), control, np.random.default_rng(params.seed))


def _rule(name: str, row: GroupsScenario, tuned: Mapping[str, float]) -> Controller:
    cluster, knobs = cluster_of(row), untuned(row.groups) | dict(tuned)
    if name in RULES and name not in SERVED:
        raise UserError(f"policy '{name}' is not served: it plays the simulator, or is no more than a reference")
    if name not in SERVED:
        raise storage.unknown_policy(name, SERVED)
    order = int(knobs[ORDER.format(rule=name)])
    weights, part = ([knobs[knob.format(group=g)] for g in range(cluster.groups)] for knob in (WEIGHT, PART))
    if name == "capacity":
        return capacity(cluster, order, part)
    return fixed(cluster, order, weights) if name == "fixed" else HEURISTICS[name](cluster, order)


def _model(folder: Path, row: GroupsScenario) -> Controller:
    from pipeline.problems.groups.networks.acting import controller  # torch: 2 s and 250 MB that rules do without
    from pipeline.problems.groups.networks.loading import restore

    model = storage.read_model(folder, GroupsCard)
    must_match(model.card, row)
    cluster, configurations = cluster_of(row), configurations_of(row)
    _compile_knapsack(cluster, configurations)
    return controller(restore(model.card, model.weights), cluster, configurations)


def _compile_knapsack(cluster: SharedCluster, configurations: Configurations) -> None:
    """Let all groups want the most, once: what is compiled when they first do so takes longer than any answer may."""
    levels = len(configurations.units)
    plan(np.tile(np.arange(levels, dtype=float), (1, cluster.groups, 1)), configurations.units, cluster.capacity)
