"""How a controller differs from shares by demand, in the states that it meets: tables, figures and a few lines.

Only decisions while a job waits count. Differences are parts of the cluster, mean over resources: the group's share
minus its share by demand.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd
import pandera.pandas as pa

from pipeline.comparing.plots import GREY, LEARNED, REFERENCE, canvas
from pipeline.comparing.statistics import ALL
from pipeline.comparing.words import gap
from pipeline.core.config import Params
from pipeline.core.schemas import DELAY
from pipeline.core.schemas.columns import integers, numbers, share, table
from pipeline.core.types import FloatArray, IntArray
from pipeline.interactive.explaining.decisions import few, jobsets_of, joined, mean_of, outcomes_by
from pipeline.interactive.explaining.explain import Explained, Explaining, ExplainRequest, by_feature
from pipeline.interactive.groups.scheduling import policy_by_name
from pipeline.problems.groups.env.evaluation.controllers import Act
from pipeline.problems.groups.env.evaluation.play import Player, controlled, score
from pipeline.problems.groups.env.nouns import JobsBatch, Observation, SharedCluster, batch
from pipeline.problems.groups.env.simulator.batch import GroupsSimulator
from pipeline.problems.groups.env.simulator.rewards import transitions
from pipeline.problems.groups.env.teachers import proportional
from pipeline.problems.groups.env.workload.source import cluster_of, configurations_of
from pipeline.problems.groups.heuristics.tuning import scoring
from pipeline.progress import ProgressCallback

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SMALL = 0.05  # part of the cluster: smaller differences count as none
BINS = 6  # of a feature, at most
RULE, OTHER_RULE = "proportional", "equal"  # `proportional` itself is compared with the other rule
MEASURES = {"slowdown": "mean_slowdown", "wait": "mean_wait"}
METRICS = {"slowdown": "mean slowdown", "wait": "mean waiting time"}


# By load: part of the cluster that goes to other groups than by demand, and share of decisions where it is below SMALL.
DIFFERENCES = table(
    "Differences", {"load": integers(1), "decisions": integers(1), "moved": share(), "unchanged": share()}, ["load"]
)

# A group's mean difference in bins of one feature of its state.
STATES = table(
    "States",
    {"feature": pa.Column(str)}
    | {name: numbers(0.0) for name in ("low", "high", "mean")}
    | {"n": integers(1), "difference": pa.Column("float64", pa.Check(np.isfinite, error="finite"))},
    ["feature", "low"],
)

# How often queues are served in each order, in groups with waiting jobs in several queues.
ORDERS = table(
    "Orders", {"load": integers(1), "order": pa.Column(str), "n": integers(0), "part": share()}, ["load", "order"]
)

# Mean part of the cluster that each group is given, and its part by demand in the same states.
SHARES = table(
    "GroupShares",
    {"load": integers(1), "group": integers(0), "share": numbers(0.0), "by_demand": numbers(0.0)},
    ["load", "group"],
)

# The usual comparison of mean slowdowns and of mean waiting times.
OUTCOMES = table(
    "Outcomes",
    {"metric": pa.Column(str, pa.Check.isin(tuple(MEASURES)))} | dict(DELAY.columns),
    ["metric", "load", "policy", "against"],
)


class Decisions(NamedTuple):
    """D decisions of a controller, each with at least one waiting job."""

    episode: IntArray  # [D]
    view: Observation  # [D, ...]
    order: IntArray  # [D, G]
    share: FloatArray  # [D, G]  part of the cluster that each group is given, mean over resources
    by_demand: FloatArray  # [D, G]  the same by `proportional`


def record(act: Act, jobs: JobsBatch, cluster: SharedCluster) -> Decisions:
    """Return a controller's settings in its own states, and shares by demand in the same states.

    Raises:
        UserError: the controller never decides while a job waits.
    """
    rule, kept = proportional(cluster, 0), list[Decisions]()
    groups = GroupsSimulator(jobs, cluster, np.ones(len(jobs.arrival)))
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
        "unchanged": (moved < SMALL).astype(float),
    }
    grouped = pd.DataFrame(columns).groupby("load")
    return grouped.mean().assign(decisions=grouped.size()).reset_index()[list(DIFFERENCES.columns)]


def states(decisions: Decisions, cluster: SharedCluster) -> pd.DataFrame:
    """Return STATES."""
    difference = (decisions.share - decisions.by_demand).ravel()
    frames = []
    for name, (_, feature) in FEATURES.items():
        value = feature(decisions.view, cluster)
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


def _part(value: FloatArray | IntArray) -> FloatArray:
    """Return each group's part of the sum over groups [D, G]; nan if the sum is 0."""
    total = value.sum(axis=1, keepdims=True)
    return np.where(total > 0, value / np.where(total > 0, total, 1), np.nan)


def _mean_work(view: Observation, cluster: SharedCluster) -> FloatArray:
    jobs, work = view.waiting.sum(axis=2), view.waiting_work.sum(axis=2)
    every = work.sum(axis=1, keepdims=True) / np.maximum(jobs.sum(axis=1, keepdims=True), 1)
    mine = np.where(jobs > 0, work / np.maximum(jobs, 1), np.nan)
    return np.asarray(mine / np.where(every > 0, every, np.nan))


# Features of a group's state that people understand: name -> (label, values [D, G]; nan = undefined).
FEATURES: Mapping[str, tuple[str, Callable[[Observation, SharedCluster], FloatArray]]] = {
    "waiting": ("part of all waiting jobs (fraction)", lambda view, cluster: _part(view.waiting.sum(axis=2))),
    "work": ("work of a waiting job (ratio to the mean)", _mean_work),
    "waited": (
        "longest wait of a job (intervals)", lambda view, cluster: view.head_waited.max(axis=2) / cluster.interval
    ),
    "used": ("part of the units in use (fraction)", lambda view, cluster: _part(view.used.sum(axis=2))),
    "releasing": (
        "units released soon (equal shares)",
        lambda view, cluster: (view.releasing / cluster.capacity).mean(axis=2) * cluster.groups,
    ),
    "recent": ("part of recently arrived work (fraction)", lambda view, cluster: _part(view.recent_work.sum(axis=2))),
}  # fmt: skip


def ready(params: Params, scenario: str, asked: ExplainRequest) -> Callable[[ProgressCallback], Explained]:
    """Return a function that compares a controller with another rule, on test jobsets that it controls."""
    row, title = params.groups_scenario(scenario), asked.title
    cluster = cluster_of(row)
    act = _act(params, asked.agent, scenario)
    test = few(scoring(params, scenario).read("test"), asked.jobsets)

    def run(on_progress: ProgressCallback) -> Explained:
        load = np.concatenate([np.full(len(some), load) for load, some in test.items()])
        decisions = record(act, batch([jobs for some in test.values() for jobs in some]), cluster)
        on_progress(50, f"{len(decisions.episode)} decisions")
        against = RULE if title != RULE else OTHER_RULE
        rule = Player(policy_by_name(against, params, scenario))
        results = jobsets_of(score({title: Player(act), against: rule}, test, cluster, params.seed))
        by_metric = {name: results.assign(mean_slowdown=results[column]) for name, column in MEASURES.items()}
        tables = {
            "differences": (differences(decisions, load), DIFFERENCES),
            "states": (states(decisions, cluster), STATES),
            "orders": (orders(decisions, load, [" > ".join(order) for order in row.orders]), ORDERS),
            "shares": (mean_shares(decisions, load), SHARES),
            "outcomes": (
                outcomes_by("metric", by_metric, scenario, [against], params.evaluation, params.seed),
                OUTCOMES,
            ),
        }
        frames = {name: frame for name, (frame, _) in tables.items()}
        figures = {
            "states": _states_figure(title, frames["states"]), "outcomes": _outcomes_figure(title, frames["outcomes"])
        }  # fmt: skip
        on_progress(100, "")
        return Explained(tables, figures, summary(title, frames))

    return run


def _act(params: Params, policy: str, scenario: str) -> Act:
    if policy not in params.agents:
        return policy_by_name(policy, params, scenario)
    from pipeline.problems.groups.agents.learning import stored  # torch, which rules do not need
    from pipeline.problems.groups.agents.networks.q_network import controller

    row = params.groups_scenario(scenario)
    return controlled(controller(stored(params, policy, "policy"), cluster_of(row), configurations_of(row)))


def _states_figure(agent: str, table: pd.DataFrame) -> "Figure":
    title = f"What {agent} gives a group beyond its share by demand, in percent of the cluster (area: how often)"
    percent = table.assign(difference=100 * table["difference"])
    low, high = percent["difference"].min(), percent["difference"].max()
    margin = 0.1 * max(high - low, 1.0)
    labels = {name: label for name, (label, _) in FEATURES.items()}
    return by_feature(title, percent, "difference", labels, (low - margin, high + margin), "Difference (%)")


def _outcomes_figure(agent: str, table: pd.DataFrame) -> "Figure":
    """Draw the relative difference at each load."""
    rows = table[table["policy"] == agent]
    figure, axes = canvas(f"{agent} against {rows['against'].iloc[0]} on test jobsets", 4.0)
    loads = [load for load in rows["load"].unique() if load != ALL] + [ALL]
    for k, (metric, label) in enumerate(METRICS.items()):
        of_it = rows[rows["metric"] == metric].set_index("load").loc[loads]
        middle, low, high = (
            100 * of_it[name].to_numpy() for name in ("difference", "difference_low", "difference_high")
        )
        at = np.arange(len(loads)) + 0.16 * (2 * k - 1)
        axes.errorbar(at, middle, [middle - low, high - middle], fmt="os"[k], color=LEARNED[k], capsize=3, label=label)
    axes.axhline(0, color=GREY, linewidth=0.8, linestyle="--", gid=REFERENCE)
    axes.set_xticks(range(len(loads)), [load if load == ALL else str(int(load)) for load in loads])
    axes.set_xlabel("Load (% of the cluster)")
    axes.set_ylabel("Difference (%; bar: its interval)")
    axes.legend(loc="best")
    return figure


def summary(agent: str, tables: Mapping[str, pd.DataFrame]) -> list[str]:
    """Return the tables of an agent in words."""
    table = tables["differences"]
    moved, unchanged = (100 * mean_of(table, name) for name in ("moved", "unchanged"))
    lines = [
        f"{agent}: in {table['decisions'].sum()} decisions while jobs wait, {moved:.1f} % of the cluster goes to other "
        f"groups than by demand; less than {100 * SMALL:.0f} % in {unchanged:.1f} % of them"
    ]
    spans = tables["states"].groupby("feature")["difference"].agg(lambda column: column.max() - column.min())
    if spans.max() > 0:  # else no feature has two bins
        rows = tables["states"][tables["states"]["feature"] == spans.idxmax()].sort_values("mean")
        ends = [rows.iloc[place] for place in (rows["difference"].argmin(), rows["difference"].argmax())]
        said = " and ".join(f"{100 * end['difference']:+.1f} % of the cluster at {end['mean']:.3g}" for end in ends)
        lines.append(f"the difference depends most on a group's {FEATURES[str(spans.idxmax())][0]}: {said}")
    total = tables["orders"].groupby("order", sort=False)["n"].sum()
    parts = (100 * total / max(total.sum(), 1)).sort_values(ascending=False, kind="stable")
    lines.append(f"queues are served {', '.join(f'{name} in {part:.0f} %' for name, part in parts.items())}")
    over = tables["outcomes"]
    over = over[(over["load"] == ALL) & (over["policy"] == agent)].set_index("metric")
    for metric, label in METRICS.items():
        row = over.loc[[metric]].iloc[0]
        by = "by demand" if row["against"] == RULE else row["against"]
        lines.append(f"{label} {row['mean']:.4g}, {by} {row['mean_against']:.4g}: {gap(row)}")
    return lines


EXPLAINING = Explaining(ready, refused={"leaves": "a controller sets shares, for which no tree is grown"})
