"""What a controller does otherwise than shares by demand: tables, figures, and a few lines."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
import pandera.pandas as pa

from pipeline import storage
from pipeline.comparing.plots import png
from pipeline.comparing.statistics import ALL
from pipeline.config import Params
from pipeline.problems.groups.evaluation.foresight import Act
from pipeline.problems.groups.evaluation.play import Player, controlled, score
from pipeline.problems.groups.explaining import differences as differing
from pipeline.problems.groups.explaining.figures import METRICS, figures
from pipeline.problems.groups.explaining.tables import DIFFERENCES, ORDERS, OUTCOMES, SHARES, STATES
from pipeline.problems.groups.nouns import batch
from pipeline.problems.groups.policies import policy_by_name
from pipeline.problems.groups.storage import read_jobsets
from pipeline.problems.groups.workload.source import cluster_of, configurations_of
from pipeline.problems.parts import ExplainRequest
from pipeline.progress import progress, say

EQUAL = "equal"  # whom shares by demand are compared with

Tables = Mapping[str, tuple[pd.DataFrame, pa.DataFrameSchema]]


def explain(params: Params, asked: ExplainRequest) -> None:
    """Write reports/explain/<agent>: tables and figures."""
    with progress(f"explain {asked.title}", 1) as advance:
        tables = _tables(params, asked)
        advance(1, f"{tables['differences'][0]['decisions'].sum()} decisions")
    folder = storage.REPORTS / "explain" / asked.title
    storage.discard(folder)
    for name, (frame, schema) in tables.items():
        storage.write_table(folder / f"{name}.csv", frame, schema)
    for name, figure in figures(asked.title, tables["states"][0], tables["outcomes"][0]).items():
        storage.write(folder / f"{name}.png", png(figure))
    for line in summary(asked.title, {name: frame for name, (frame, _) in tables.items()}):
        say(line)
    say(f"{folder}: {', '.join(sorted(path.name for path in folder.iterdir()))}")


def summary(agent: str, tables: Mapping[str, pd.DataFrame]) -> list[str]:
    """Return what the tables of an agent say."""
    return [_moved(agent, tables["differences"]), *_state(tables["states"]), _orders(tables["orders"])] + [
        _outcome(agent, tables["outcomes"], metric) for metric in METRICS
    ]


def _tables(params: Params, asked: ExplainRequest) -> Tables:
    scenario, title = asked.scenario or params.agent(asked.agent).scenario, asked.title
    row = params.groups_scenario(scenario)
    cluster = cluster_of(row)
    act = _act(params, asked.agent, scenario)
    found = read_jobsets(storage.jobsets_folder(scenario), "test", row.resources, cluster)
    test = {load: some[: asked.jobsets] for load, some in found.items()}
    load = np.concatenate([np.full(len(some), load) for load, some in test.items()])
    decisions = differing.record(act, batch([jobs for some in test.values() for jobs in some]), cluster)
    against = differing.RULE if title != differing.RULE else EQUAL
    rule = Player(policy_by_name(against, params, scenario))
    results = score({title: Player(act), against: rule}, test, cluster, params.seed)
    names = [" > ".join(order) for order in row.orders]
    return {
        "differences": (differing.differences(decisions, load), DIFFERENCES),
        "states": (differing.states(decisions, cluster), STATES),
        "orders": (differing.orders(decisions, load, names), ORDERS),
        "shares": (differing.mean_shares(decisions, load), SHARES),
        "outcomes": (differing.outcomes(results, scenario, params.evaluation, params.seed, against), OUTCOMES),
    }


def _act(params: Params, policy: str, scenario: str) -> Act:
    if policy not in params.agents:
        return policy_by_name(policy, params, scenario)
    from pipeline.problems.groups.learning import stored  # torch, which rules do without
    from pipeline.problems.groups.networks.acting import controller

    row = params.groups_scenario(scenario)
    return controlled(controller(stored(params, policy, "policy"), cluster_of(row), configurations_of(row)))


def _moved(agent: str, table: pd.DataFrame) -> str:
    weight = table["decisions"] / table["decisions"].sum()
    moved, alike = (100 * float((weight * table[name]).sum()) for name in ("moved", "alike"))
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
    difference, low, high = (100 * row[name] for name in ("difference", "difference_low", "difference_high"))
    return (
        f"{METRICS[metric]} {row['mean']:.4g}, {by} {row['mean_against']:.4g}: {difference:+.1f} % "
        f"({low:+.1f} to {high:+.1f})"
    )
