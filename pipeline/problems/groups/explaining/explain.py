"""What a controller does otherwise than shares by demand: tables, figures, and a few lines."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from pipeline import storage
from pipeline.comparing.plots import GREY, LEARNED, canvas
from pipeline.comparing.statistics import ALL
from pipeline.comparing.words import gap
from pipeline.config import Params
from pipeline.explaining.decisions import few, mean_of, outcomes_by
from pipeline.explaining.explain import Explained, Explaining, ExplainRequest
from pipeline.explaining.figures import by_feature
from pipeline.problems.groups.evaluation.foresight import Act
from pipeline.problems.groups.evaluation.play import Player, controlled, score
from pipeline.problems.groups.explaining import differences as differing
from pipeline.problems.groups.explaining.differences import DIFFERENCES, FEATURES, ORDERS, OUTCOMES, SHARES, STATES
from pipeline.problems.groups.nouns import batch
from pipeline.problems.groups.policies import policy_by_name
from pipeline.problems.groups.storage import read_jobsets
from pipeline.problems.groups.workload.source import cluster_of, configurations_of
from pipeline.progress import ProgressCallback

if TYPE_CHECKING:
    from matplotlib.figure import Figure


METRICS = {"slowdown": "mean slowdown", "wait": "mean waiting time"}


def figures(agent: str, states: pd.DataFrame, outcomes: pd.DataFrame) -> "dict[str, Figure]":
    """Return the figures of an agent by name."""
    return {"states": _states(agent, states), "outcomes": _outcomes(agent, outcomes)}


def _states(agent: str, table: pd.DataFrame) -> "Figure":
    title = f"What {agent} gives a group beyond its share by demand, in percent of the cluster (area: how often)"
    percent = table.assign(difference=100 * table["difference"])
    low, high = percent["difference"].min(), percent["difference"].max()
    margin = 0.1 * max(high - low, 1.0)
    labels = {name: feature.label for name, feature in FEATURES.items()}
    return by_feature(title, percent, "difference", labels, (low - margin, high + margin))


def _outcomes(agent: str, table: pd.DataFrame) -> "Figure":
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
    axes.axhline(0, color=GREY, linewidth=0.8, linestyle="--")
    axes.set_xticks(range(len(loads)), [load if load == ALL else str(int(load)) for load in loads])
    axes.set_xlabel("Load (percent of the cluster)")
    axes.set_ylabel("Difference in percent (bar: its interval)")
    axes.legend(loc="best")
    return figure


EQUAL = "equal"  # whom shares by demand are compared with


def ready(params: Params, scenario: str, asked: ExplainRequest) -> Callable[[ProgressCallback], Explained]:
    """Return what tells what a controller does otherwise than shares by demand, in its own play of test jobsets."""
    row, title = params.groups_scenario(scenario), asked.title
    cluster = cluster_of(row)
    act = _act(params, asked.agent, scenario)
    test = few(read_jobsets(storage.jobsets_folder(scenario), "test", row.resources, cluster), asked.jobsets)

    def run(on_progress: ProgressCallback) -> Explained:
        load = np.concatenate([np.full(len(some), load) for load, some in test.items()])
        decisions = differing.record(act, batch([jobs for some in test.values() for jobs in some]), cluster)
        on_progress(50, f"{len(decisions.episode)} decisions")
        against = differing.RULE if title != differing.RULE else EQUAL
        rule = Player(policy_by_name(against, params, scenario))
        results = differing.by_metric(score({title: Player(act), against: rule}, test, cluster, params.seed))
        compared = outcomes_by("metric", results, scenario, [against], params.evaluation, params.seed)
        names = [" > ".join(order) for order in row.orders]
        tables = {
            "differences": (differing.differences(decisions, load), DIFFERENCES),
            "states": (differing.states(decisions, cluster), STATES),
            "orders": (differing.orders(decisions, load, names), ORDERS),
            "shares": (differing.mean_shares(decisions, load), SHARES),
            "outcomes": (compared, OUTCOMES),
        }
        frames = {name: frame for name, (frame, _) in tables.items()}
        return Explained(tables, figures(title, frames["states"], frames["outcomes"]), summary(title, frames))

    return run


def summary(agent: str, tables: Mapping[str, pd.DataFrame]) -> list[str]:
    """Return what the tables of an agent say."""
    return [_moved(agent, tables["differences"]), *_state(tables["states"]), _orders(tables["orders"])] + [
        _outcome(agent, tables["outcomes"], metric) for metric in METRICS
    ]


def _act(params: Params, policy: str, scenario: str) -> Act:
    if policy not in params.agents:
        return policy_by_name(policy, params, scenario)
    from pipeline.problems.groups.learning import stored  # torch, which rules do without
    from pipeline.problems.groups.networks.q_network import controller

    row = params.groups_scenario(scenario)
    return controlled(controller(stored(params, policy, "policy"), cluster_of(row), configurations_of(row)))


def _moved(agent: str, table: pd.DataFrame) -> str:
    moved, alike = (100 * mean_of(table, name) for name in ("moved", "alike"))
    return (
        f"{agent}: in {table['decisions'].sum()} decisions while jobs wait, {moved:.1f} % of the cluster goes to other "
        f"groups than by demand; less than {100 * differing.ALIKE:.0f} % in {alike:.1f} % of them"
    )


def _state(table: pd.DataFrame) -> list[str]:
    """Return what the feature does whose bins differ most; nothing where none has two."""
    spans = table.groupby("feature")["difference"].agg(lambda column: column.max() - column.min())
    if not spans.max() > 0:
        return []
    rows = table[table["feature"] == spans.idxmax()].sort_values("mean")
    ends = [rows.iloc[place] for place in (rows["difference"].argmin(), rows["difference"].argmax())]
    said = " and ".join(f"{100 * end['difference']:+.1f} % of the cluster at {end['mean']:.3g}" for end in ends)
    return [f"the difference depends most on a group's {differing.FEATURES[str(spans.idxmax())].label}: {said}"]


def _orders(table: pd.DataFrame) -> str:
    total = table.groupby("order", sort=False)["n"].sum()
    parts = (100 * total / max(total.sum(), 1)).sort_values(ascending=False, kind="stable")
    return f"queues are served {', '.join(f'{name} in {part:.0f} %' for name, part in parts.items())}"


def _outcome(agent: str, table: pd.DataFrame, metric: str) -> str:
    rows = table[(table["metric"] == metric) & (table["load"] == ALL) & (table["policy"] == agent)]
    row = rows.iloc[0]
    by = "by demand" if row["against"] == differing.RULE else row["against"]
    return f"{METRICS[metric]} {row['mean']:.4g}, {by} {row['mean_against']:.4g}: {gap(row)}"


EXPLAINING = Explaining(ready, refused={"leaves": "a controller sets shares, for which no tree is grown"})
