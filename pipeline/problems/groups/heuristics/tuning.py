"""The rules that a controller is compared with, their tuning on validation jobsets, and the scoring of controllers.

Every rule sets one order of queues for all groups, the one with the least mean waiting time on validation jobsets.
`fixed` is the best constant configuration found there: its weights are drawn around each group's share of the work in
the training jobsets. `capacity` guarantees each group that share. Two references cannot be deployed: `oracle` knows
future jobs, and `undivided` gives every group the whole cluster.

`capacity` is the rule of Hadoop's capacity scheduler: other groups borrow unused guarantees, without preemption and
with one decision per interval.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from pipeline.core import storage
from pipeline.core.config import Params
from pipeline.core.types import FloatArray
from pipeline.problems.groups.env.evaluation.controllers import foresight
from pipeline.problems.groups.env.evaluation.play import Player, controlled, score
from pipeline.problems.groups.env.nouns import (
    Configurations,
    Controller,
    Jobs,
    Observation,
    Setting,
    SharedCluster,
)
from pipeline.problems.groups.env.storage import read_jobsets
from pipeline.problems.groups.env.teachers import (
    TEACHERS,
    Heuristic,
    checked,
    controller_of,
    demanded,
    fixed,
    progressive_filling,
)
from pipeline.problems.groups.env.workload.source import cluster_of, configurations_of
from pipeline.problems.groups.heuristics.names import REFERENCES
from pipeline.problems.parts import Best, Scoring
from pipeline.simulation.results import Results, best_of, mean_cost


def capacity(cluster: SharedCluster, order: int, guarantees: FloatArray | Sequence[float]) -> Controller:
    """Return the controller of guaranteed shares, by weights [G] above 0, that others may borrow.

    A group first gets its demand of each resource up to its guarantee. The rest goes to groups with a larger demand, in
    proportion to their guarantees and up to their demand; unwanted units go to all in that proportion.
    """
    weight = checked(cluster, guarantees, zero=False)

    def share(view: Observation) -> FloatArray:
        # Both steps at once: for one resource, guarantees and borrowing result in weighted filling.
        wanted = (demanded(view) / cluster.capacity).transpose(0, 2, 1)
        filled = progressive_filling(wanted.reshape(-1, cluster.groups, 1), weight).reshape(wanted.shape)
        left = np.maximum(1 - filled.sum(axis=2, keepdims=True), 0)
        return np.asarray((filled + left * weight).transpose(0, 2, 1) * cluster.capacity)

    return controller_of(cluster, order, share)


# Rules that need only the cluster and an order, by their name in params.yaml.
HEURISTICS: dict[str, Heuristic] = {**TEACHERS}

Play = Callable[[Mapping[str, Player]], dict[str, Results]]  # plays all controllers at once on validation jobsets
Make = Callable[[int], Controller]  # (index of an order) -> controller

CANDIDATES = 30  # constant configurations to try
POWERS = (0.0, 0.5, 1.0)  # of each group's share of the work, in turn: from equal weights to weights by work
SPREAD = 0.4  # standard deviation of the logarithm of a random factor of weights
ORDER, WEIGHT, PART = "{rule}_order", "fixed_{group}", "part_{group}"  # knobs


def parts_of_work(training: Mapping[int, Sequence[Jobs]], cluster: SharedCluster) -> FloatArray:
    """Return each group's share [G] of the work in training jobsets, with a positive minimum."""
    work = np.full(cluster.groups, 1e-9)
    for jobs in (one for group in training.values() for one in group):
        held = (jobs.demand / cluster.capacity).mean(axis=1) * jobs.estimate
        work += np.bincount(jobs.group, weights=held, minlength=cluster.groups)
    part = np.maximum(work / work.sum(), 0.01 / cluster.groups)
    return np.asarray(part / part.sum())


def tuned_rules(
    play: Play, cluster: SharedCluster, training: Mapping[int, Sequence[Jobs]], seed: int
) -> dict[str, float]:
    """Return the knobs of all rules: orders, and the weights of the best constant configuration."""
    part = parts_of_work(training, cluster)
    tried: dict[str, Make] = {name: partial(make, cluster) for name, make in HEURISTICS.items()}
    tried |= {"capacity": lambda order: capacity(cluster, order, part), "undivided": lambda order: _all(cluster, order)}
    orders = range(len(cluster.orders))
    results = play(
        {f"{name} {order}": Player(controlled(make(order))) for name, make in tried.items() for order in orders}
    )
    best = {name: min(orders, key=lambda order: mean_cost(results[f"{name} {order}"], "delay")) for name in tried}
    rng, weights = np.random.default_rng(seed), [part ** POWERS[k % len(POWERS)] for k in range(CANDIDATES)]
    for k in range(len(POWERS), CANDIDATES):
        weights[k] = weights[k] * np.exp(SPREAD * rng.standard_normal(cluster.groups))
    candidates = {str(k): fixed(cluster, best["equal"], one) for k, one in enumerate(weights)}
    results = play({name: Player(controlled(one)) for name, one in candidates.items()})
    found = weights[min(range(CANDIDATES), key=lambda k: mean_cost(results[str(k)], "delay"))]
    knobs = {ORDER.format(rule=name): float(order) for name, order in best.items()}
    knobs[ORDER.format(rule="fixed")] = float(best["equal"])
    knobs |= {WEIGHT.format(group=g): float(weight) for g, weight in enumerate(found / found.sum())}
    return knobs | {PART.format(group=g): float(value) for g, value in enumerate(part)}


def untuned(groups: int) -> dict[str, float]:
    """Return default knobs of all rules: the first order, and equal groups."""
    knobs = {ORDER.format(rule=name): 0.0 for name in (*HEURISTICS, "capacity", "undivided", "fixed")}
    return knobs | {name.format(group=g): 1 / groups for name in (WEIGHT, PART) for g in range(groups)}


def rules_with(knobs: Mapping[str, float], cluster: SharedCluster, configurations: Configurations) -> dict[str, Player]:
    """Return all tuned rules, and the references."""
    order = {name: int(knobs[ORDER.format(rule=name)]) for name in (*HEURISTICS, "capacity", "undivided", "fixed")}
    weights, part = ([knobs[name.format(group=g)] for g in range(cluster.groups)] for name in (WEIGHT, PART))
    made = {name: make(cluster, order[name]) for name, make in HEURISTICS.items()}
    made["capacity"] = capacity(cluster, order["capacity"], part)
    made["fixed"] = fixed(cluster, order["fixed"], weights)
    made["undivided"] = _all(cluster, order["undivided"])
    found = {name: Player(controlled(one)) for name, one in made.items()}
    found["lookahead"] = Player(foresight(cluster, configurations, by_estimate=True))
    found["expecting"] = Player(foresight(cluster, configurations, by_estimate=True, order=order["proportional"]))
    found["oracle"] = Player(foresight(cluster, configurations, by_estimate=False))
    return found


def best_rules(examined: Mapping[str, Results]) -> Best:
    """Return the best rule at each load, by mean slowdown and by mean waiting time."""
    rules = {name: done for name, done in examined.items() if name not in REFERENCES}
    return Best(best_of(rules), best_of(rules, "mean_wait"))


def _all(cluster: SharedCluster, order: int) -> Controller:
    """Return the controller that gives every group the whole cluster."""

    def control(view: Observation, draws: FloatArray) -> Setting:
        share = np.broadcast_to(cluster.capacity, view.share.shape)
        return Setting(np.ascontiguousarray(share), np.full_like(view.order, order))

    return control


def scoring(params: Params, scenario: str, agent: str | None = None) -> Scoring[Jobs, Player]:
    """Return the functions that score controllers on a scenario's jobsets."""
    row, folder = params.groups_scenario(scenario), storage.jobsets_folder(scenario)
    cluster, configurations = cluster_of(row), configurations_of(row)
    return Scoring(
        read=lambda split: read_jobsets(folder, split, row.resources, cluster),
        score=partial(score, cluster=cluster, seed=params.seed),
        tune=lambda examine, training: tuned_rules(examine, cluster, training, params.seed),
        heuristics=lambda knobs: rules_with(knobs, cluster, configurations),
        best=best_rules,
    )
