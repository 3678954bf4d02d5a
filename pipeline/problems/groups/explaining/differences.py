"""Where a controller and shares by demand part ways in the states that the controller meets, as tables.

Decisions are those while any job waits. Differences are parts of the cluster, mean over resources: what a group is
given, less what it would be by demand.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd
import pandera.pandas as pa

from pipeline.core import FloatArray, IntArray
from pipeline.explaining.decisions import jobsets_of, joined
from pipeline.problems.groups.evaluation.foresight import Act
from pipeline.problems.groups.heuristics.teachers import proportional
from pipeline.problems.groups.nouns import JobsBatch, Observation, SharedCluster
from pipeline.problems.groups.simulator.compiled.batch import Groups
from pipeline.problems.groups.simulator.rewards import transitions
from pipeline.schemas import DELAY
from pipeline.schemas.columns import integers, numbers, share, table
from pipeline.simulation.results import Results

ALIKE = 0.05  # part of the cluster: what is moved less is as by demand
BINS = 6  # of a feature, at most
RULE = "proportional"
MEASURES = {"slowdown": "mean_slowdown", "wait": "mean_wait"}


# By load: the part of the cluster that other groups have, and the share of decisions in which it is less than ALIKE.
DIFFERENCES = table(
    "Differences", {"load": integers(1), "decisions": integers(1), "moved": share(), "alike": share()}, ["load"]
)

# Of each group in bins of one feature of its state.
STATES = table(
    "States",
    {"feature": pa.Column(str)}
    | {name: numbers(0.0) for name in ("low", "high", "mean")}
    | {"n": integers(1), "difference": pa.Column("float64", pa.Check(np.isfinite, error="finite"))},
    ["feature", "low"],
)

# How often queues are served in each order, in groups of which jobs of several queues wait.
ORDERS = table(
    "Orders", {"load": integers(1), "order": pa.Column(str), "n": integers(0), "part": share()}, ["load", "order"]
)

# Mean part of the cluster that each group is given, and what it would be by demand in the same states.
SHARES = table(
    "GroupShares",
    {"load": integers(1), "group": integers(0), "share": numbers(0.0), "by_demand": numbers(0.0)},
    ["load", "group"],
)

# Comparisons as everywhere, of mean slowdowns and of mean waiting times.
OUTCOMES = table(
    "Outcomes",
    {"metric": pa.Column(str, pa.Check.isin(("slowdown", "wait")))} | dict(DELAY.columns),
    ["metric", "load", "policy", "against"],
)


class Decisions(NamedTuple):
    """D decisions of the cluster while any job waits."""

    episode: IntArray  # [D]
    view: Observation  # [D, ...]
    order: IntArray  # [D, G]
    share: FloatArray  # [D, G]  part of the cluster that each group is given, mean over resources
    by_demand: FloatArray  # [D, G]  the same, as `proportional` would have it


def record(act: Act, jobs: JobsBatch, cluster: SharedCluster) -> Decisions:
    """Return what a controller sets in its own states, and what shares by demand would be there.

    Raises:
        UserError: it never decides while a job waits.
    """
    rule, kept = proportional(cluster, 0), list[Decisions]()
    groups = Groups(jobs, cluster, np.ones(len(jobs.arrival)))
    for one in transitions(groups, lambda rows, view: act(groups, rows, view, np.zeros(len(rows))), "zero"):
        here = np.flatnonzero(one.view.waiting.any(axis=(1, 2)))
        view = Observation._make(field[here] for field in one.view)
        other = rule(view, np.zeros(len(here)))
        share, by_demand = ((units / cluster.capacity).mean(axis=2) for units in (one.setting.share[here], other.share))
        kept.append(Decisions(one.rows[here], view, one.setting.order[here], share, by_demand))
    return joined(kept)


def differences(decisions: Decisions, load: IntArray) -> pd.DataFrame:
    """Return DIFFERENCES; load [B] is that of each episode."""
    moved = np.abs(decisions.share - decisions.by_demand).sum(axis=1) / 2
    columns = {
        "load": load[decisions.episode].astype(np.int64),
        "moved": np.clip(moved, 0, 1),
        "alike": (moved < ALIKE).astype(float),
    }
    grouped = pd.DataFrame(columns).groupby("load")
    return grouped.mean().assign(decisions=grouped.size()).reset_index()[list(DIFFERENCES.columns)]


def states(decisions: Decisions, cluster: SharedCluster) -> pd.DataFrame:
    """Return STATES."""
    difference = (decisions.share - decisions.by_demand).ravel()
    frames = []
    for name, feature in FEATURES.items():
        value = feature.of(decisions.view, cluster)
        there = np.flatnonzero(np.isfinite(value.ravel()))
        rows = pd.DataFrame({"value": value.ravel()[there], "difference": difference[there]})
        bins = rows.groupby(pd.qcut(rows["value"], BINS, labels=False, duplicates="drop"))
        found = bins.agg(
            low=("value", "min"), high=("value", "max"), mean=("value", "mean"), n=("value", "size"),
            difference=("difference", "mean"),
        )  # fmt: skip
        frames.append(found.assign(feature=name))
    return pd.concat(frames, ignore_index=True)[list(STATES.columns)]


def orders(decisions: Decisions, load: IntArray, names: list[str]) -> pd.DataFrame:
    """Return ORDERS; load [B] is that of each episode, and names are those of the orders."""
    matters = (decisions.view.waiting > 0).sum(axis=2) > 1
    at, rows = load[decisions.episode], []
    for one in np.unique(at):
        chosen = decisions.order[at == one][matters[at == one]]
        count = np.bincount(chosen, minlength=len(names))
        rows += [
            {"load": int(one), "order": name, "n": int(n), "part": float(n / max(count.sum(), 1))}
            for name, n in zip(names, count, strict=True)
        ]
    return pd.DataFrame(rows)[list(ORDERS.columns)]


def mean_shares(decisions: Decisions, load: IntArray) -> pd.DataFrame:
    """Return SHARES; load [B] is that of each episode."""
    groups = decisions.share.shape[1]
    columns = {
        "load": np.repeat(load[decisions.episode].astype(np.int64), groups),
        "group": np.tile(np.arange(groups), len(decisions.share)),
        "share": decisions.share.ravel(),
        "by_demand": decisions.by_demand.ravel(),
    }
    return pd.DataFrame(columns).groupby(["load", "group"], as_index=False).mean()[list(SHARES.columns)]


def by_metric(results: Mapping[str, Results]) -> dict[str, pd.DataFrame]:
    """Return what policies made of every jobset, by what is measured."""
    found = jobsets_of(results)
    return {name: found.assign(mean_slowdown=found[column]) for name, column in MEASURES.items()}


class Feature(NamedTuple):
    """Something about a group's state that people can make sense of."""

    label: str
    of: Callable[[Observation, SharedCluster], FloatArray]  # [D, G]; nan = it has none


def _part(value: FloatArray | IntArray) -> FloatArray:
    """Return each group's part of the sum over groups [D, G]; nan where there is nothing."""
    total = value.sum(axis=1, keepdims=True)
    return np.where(total > 0, value / np.where(total > 0, total, 1), np.nan)


def _mean_work(view: Observation, cluster: SharedCluster) -> FloatArray:
    """Return the mean work of a group's waiting jobs, relative to that of all waiting jobs."""
    jobs, work = view.waiting.sum(axis=2), view.waiting_work.sum(axis=2)
    every = work.sum(axis=1, keepdims=True) / np.maximum(jobs.sum(axis=1, keepdims=True), 1)
    mine = np.where(jobs > 0, work / np.maximum(jobs, 1), np.nan)
    return np.asarray(mine / np.where(every > 0, every, np.nan))


FEATURES: Mapping[str, Feature] = {
    "waiting": Feature("part of all waiting jobs", lambda view, cluster: _part(view.waiting.sum(axis=2))),
    "work": Feature("work of a waiting job (1 = mean of all)", _mean_work),
    "waited": Feature(
        "longest wait of a job (intervals)", lambda view, cluster: view.head_waited.max(axis=2) / cluster.interval
    ),
    "used": Feature("part of the units in use", lambda view, cluster: _part(view.used.sum(axis=2))),
    "releasing": Feature(
        "units given back soon (equal shares)",
        lambda view, cluster: (view.releasing / cluster.capacity).mean(axis=2) * cluster.groups,
    ),
    "recent": Feature(
        "part of the work that lately arrived", lambda view, cluster: _part(view.recent_work.sum(axis=2))
    ),
}
