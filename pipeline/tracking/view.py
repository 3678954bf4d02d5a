"""View: what MLflow's page opens on: each agent's distance from the best heuristic, then curves; the rest is folded.

The page reads its state from a tag of the experiment, by the key in its address. Charts that the state does not name,
the page adds by itself, to the section that has the name before the slash of their metric.
"""

import json
import sqlite3
import urllib.request
import zlib
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path

from pipeline.core import Json

KEY = "answer"  # of the view, in the address of the page
TAG = f"mlflow.sharedViewState.{KEY}"  # MLflow's word
FROM_BEST = " percent from best"  # behind the scenario, which comes first, for titles of charts are cut
NO_SECTION = "Model metrics"  # MLflow's, of metrics without a slash
TOP, CURVES = "Is this run better than the last? Percent from the best heuristic, below 0 is better", "Slowdown by load"
METRICS = """SELECT DISTINCT latest_metrics.key FROM latest_metrics
    JOIN runs USING (run_uuid) JOIN tags USING (run_uuid)
    WHERE experiment_id = ? AND tags.key = 'stage' AND tags.value = 'pipeline' ORDER BY 1"""
PARAMS = """SELECT params.key FROM params JOIN runs USING (run_uuid) JOIN tags USING (run_uuid)
    WHERE experiment_id = ? AND tags.key = 'stage' AND tags.value = 'pipeline'
    GROUP BY params.key HAVING COUNT(DISTINCT params.value) > 1 ORDER BY 1 LIMIT 20"""


def from_best(metrics: Mapping[str, Json]) -> dict[str, float]:
    """Return every agent's percent from the best heuristic, of metrics.json, by the name of its metric.

    >>> from_best({"online": {"net": {"percent_from_best": -2.5}, "sjf": {"slowdown": 3.0}, "unfinished_jobs": 0}})
    {'online percent from best/net': -2.5}
    """
    return {
        f"{scenario}{FROM_BEST}/{policy}": percent
        for scenario, rows in metrics.items()
        for policy, row in (rows.items() if isinstance(rows, Mapping) else ())
        if isinstance(row, Mapping) and isinstance(percent := row.get("percent_from_best"), float)
    }


def state(metrics: Sequence[str], params: Sequence[str]) -> Json:
    """Return the state of the page.

    Args:
        metrics: names of those that pipelines' runs have.
        params: names of those in which they differ: columns of the table.
    """
    agents: dict[str, list[str]] = {}
    for name in metrics:
        section, _, policy = name.partition("/")
        if section.endswith(FROM_BEST):
            agents.setdefault(section.removesuffix(FROM_BEST), []).append(policy)
    folded = dict.fromkeys(name.rpartition("/")[0] or NO_SECTION for name in metrics)
    return {
        "isAccordionReordered": True,  # or sections would be sorted by name
        "compareRunSections": [
            {"uuid": name, "name": name, "display": name in (TOP, CURVES), "columns": 2, "cardHeight": 300}
            for name in (TOP, CURVES, *folded)
        ],
        "compareRunCharts": [*_bars(agents), *_lines(agents, set(metrics))],
        "selectedColumns": [*(f"params.`{name}`" for name in params), "attributes.`Created`"],
    }


def _bars(agents: Mapping[str, Sequence[str]]) -> Iterator[Json]:
    for scenario, policies in agents.items():
        names = [f"{scenario}{FROM_BEST}/{policy}" for policy in policies]
        yield _chart("BAR", TOP, scenario, names)


def _lines(agents: Mapping[str, Sequence[str]], metrics: set[str]) -> Iterator[Json]:
    for scenario, policies in agents.items():
        names = [name for policy in policies if (name := f"{scenario}/{policy}") in metrics]
        if names:
            yield _chart("LINE", CURVES, scenario, names) | {"xAxisKey": "step"}


def _chart(kind: str, section: str, title: str, names: Sequence[str]) -> dict[str, Json]:
    return {
        "type": kind,
        "uuid": f"{section} {title}",
        "metricSectionId": section,
        "displayName": title,
        "metricKey": names[0],
        "selectedMetricKeys": list(names),
        "runsCountToCompare": 10,
        "deleted": False,
        "isGenerated": False,
    }


def keep(address: str, database: Path, experiment: str) -> None:
    """Keep the view as a tag of the experiment, by a server that answers."""
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as file:
        metrics, params = ([str(row[0]) for row in file.execute(ask, (experiment,))] for ask in (METRICS, PARAMS))
        shown = state(metrics, params)
    short = "deflate;" + b64encode(zlib.compress(json.dumps(shown).encode())).decode()  # as MLflow's own page keeps it
    body = json.dumps({"experiment_id": experiment, "key": TAG, "value": short}).encode()
    asked = urllib.request.Request(f"{address}/api/2.0/mlflow/experiments/set-experiment-tag", body)
    asked.add_header("Content-Type", "application/json")
    urllib.request.urlopen(asked, timeout=30).close()
