"""Ui: MLflow's server on this machine, as light as possible, and the link to this pipeline's charts.

The page opens on a table of runs: how much each changed since the commit before it, with an interval. Its charts begin
with each agent's distance from the best heuristic, then curves; other sections are folded. The page reads its state
from a tag of the experiment, by the key in its address. Charts that the state does not name go to the section named by
the text before the slash in their metric.
"""

import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.request
import webbrowser
import zlib
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress

from pipeline.core.config import repository_root
from pipeline.core.types import Json
from pipeline.errors import UserError
from pipeline.tracking.changes import CHANGE, ENDS
from pipeline.tracking.identity import FROM_BEST
from pipeline.tracking.publish import send_left
from pipeline.tracking.record import waiting
from pipeline.tracking.store import EXPERIMENT, QUIET, database

HOST = "127.0.0.1"
PAGE = "#/experiments/{experiment}/runs?compareRunsMode=TABLE&workflowType=machine_learning&viewStateShareKey={view}"
LIGHT = {
    **QUIET,
    "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",  # saves eight processes and two GB
    "MLFLOW_LOGGING_LEVEL": "WARNING",
}
START_S = 90
STOP_S = 5
VIEW_KEY = "answer"  # of the view, in the address of the page
VIEW_TAG = f"mlflow.sharedViewState.{VIEW_KEY}"  # the tag's name in MLflow
NO_SECTION = "Model metrics"  # MLflow's section of metrics without a slash
TOP, CURVES = "Percent from best heuristic", "Slowdown by load"
METRICS = """SELECT key, COUNT(DISTINCT value) > 1 FROM (SELECT latest_metrics.key, latest_metrics.value,
    ROW_NUMBER() OVER (PARTITION BY latest_metrics.key ORDER BY start_time DESC) AS age FROM latest_metrics
    JOIN runs USING (run_uuid) JOIN tags USING (run_uuid)
    WHERE experiment_id = ? AND tags.key = 'stage' AND tags.value = 'pipeline') WHERE age <= 2 GROUP BY 1 ORDER BY 1"""
PARAMS = """SELECT params.key FROM params JOIN runs USING (run_uuid) JOIN tags USING (run_uuid)
    WHERE experiment_id = ? AND tags.key = 'stage' AND tags.value = 'pipeline'
    GROUP BY params.key HAVING COUNT(DISTINCT params.value) > 1 ORDER BY 1 LIMIT 20"""


def serve(port: int, browser: bool) -> Iterator[str]:
    """Start the server, yield the link to the charts when it answers, and wait for its end; UserError without runs."""
    if waiting() and not os.environ.get("MLFLOW_TRACKING_URI"):
        send_left()
    experiment = _experiment()
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((HOST, port))
        except OSError as error:
            raise UserError(f"port {port} of {HOST}: {error.strerror}; name another one with --port") from error
    address = f"http://{HOST}:{port}"
    with suppress(KeyboardInterrupt), _server(port) as server:
        _wait(server, port)
        _keep_view(address, experiment)
        link = f"{address}/{PAGE.format(experiment=experiment, view=VIEW_KEY)}"
        yield link
        if browser:
            webbrowser.open(link)
        server.wait()


def _experiment() -> str:
    """Return the id of the experiment from sqlite, because opening MLflow's store takes seconds."""
    elsewhere = os.environ.get("MLFLOW_TRACKING_URI")
    if elsewhere:
        raise UserError(
            f"MLFLOW_TRACKING_URI is {elsewhere}: runs are recorded there; unset it to see those of this folder"
        )
    path, remedy = database(), "run 'python -m pipeline publish' (or 'dvc repro')"
    if not path.exists():
        raise UserError(f"{path}: there is no MLflow database yet: {remedy}")
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as file:
            row = file.execute("SELECT experiment_id FROM experiments WHERE name = ?", (EXPERIMENT,)).fetchone()
    except sqlite3.Error as error:
        raise UserError(f"{path} cannot be used ({error}): move it away, then {remedy}") from error
    if row is None:
        raise UserError(f"{path}: no runs yet: {remedy}")
    return str(row[0])


@contextmanager
def _server(port: int) -> Iterator[subprocess.Popen[bytes]]:
    root = repository_root().absolute()
    words = ["--backend-store-uri", f"sqlite:///{database()}", "--artifacts-destination", str(root / "mlartifacts")]
    words += ["--host", HOST, "--port", str(port), "--workers", "1", "--uvicorn-opts", "--log-level=warning"]
    command = [sys.executable, "-m", "mlflow", "server", *words]
    for number in (signal.SIGINT, signal.SIGTERM):  # the server must end, too
        signal.signal(number, signal.default_int_handler)
    null, env = subprocess.DEVNULL, {**os.environ, **LIGHT}
    server = subprocess.Popen(command, env=env, cwd=root, stdout=null, stderr=null, start_new_session=True)
    try:
        yield server
    finally:
        for number in (signal.SIGTERM, signal.SIGKILL):  # the group of the server and its worker
            with suppress(ProcessLookupError):
                os.killpg(server.pid, number)
            with suppress(subprocess.TimeoutExpired):
                server.wait(STOP_S)
                break


def _wait(server: subprocess.Popen[bytes], port: int) -> None:
    until = time.monotonic() + START_S
    while time.monotonic() < until:
        if server.poll() is not None:
            raise UserError(f"MLflow's server ended with exit code {server.returncode}; 'mlflow server' says why")
        try:
            urllib.request.urlopen(f"http://{HOST}:{port}/health", timeout=2).close()
        except OSError:
            time.sleep(0.2)
        else:
            return
    raise UserError(f"MLflow's server did not answer on port {port} in {START_S} s")


def view_state(metrics: Mapping[str, bool], params: Sequence[str]) -> Json:
    """Return the state of the page: columns of the table, and charts, those of changed agents first.

    `metrics` says whether the last two pipeline runs differ in each metric; `params` are those in which runs differ.
    """
    best = sorted((name for name in metrics if FROM_BEST in name), key=lambda name: not metrics[name])
    curves = [f"{scenario}/{policy}" for policy, _, scenario in (name.partition(FROM_BEST) for name in best)]
    charts = [_chart("BAR", TOP, name) for name in best]
    charts += [_chart("LINE", CURVES, name) | {"xAxisKey": "step"} for name in curves if name in metrics]
    moved = [f"{CHANGE}{end}" for end in ENDS] + [name for name in metrics if name.endswith(f" {CHANGE}")]
    folded = dict.fromkeys(name.rpartition("/")[0] or NO_SECTION for name in metrics)
    return {
        "isAccordionReordered": True,  # or sections would be sorted by name
        "compareRunSections": [
            {"uuid": name, "name": name, "display": name in (TOP, CURVES), "columns": 2, "cardHeight": 300}
            for name in (TOP, CURVES, *folded)
        ],
        "compareRunCharts": charts,
        "selectedColumns": [
            *(f"metrics.`{name}`" for name in moved if name in metrics),
            *(f"params.`{name}`" for name in params),
            "attributes.`Created`",
        ],
    }


def _chart(kind: str, section: str, metric: str) -> dict[str, Json]:
    return {
        "type": kind,
        "uuid": f"{section} {metric}",
        "metricSectionId": section,
        "displayName": metric,
        "metricKey": metric,
        "selectedMetricKeys": [metric],  # several in one chart would be covered by their legend
        "runsCountToCompare": 10,
        "deleted": False,
        "isGenerated": False,
    }


def view_of(experiment: str) -> Json:
    """Return the state of the page for the runs in the database."""
    with closing(sqlite3.connect(f"file:{database()}?mode=ro", uri=True)) as file:
        metrics = {str(name): bool(differ) for name, differ in file.execute(METRICS, (experiment,))}
        return view_state(metrics, [str(row[0]) for row in file.execute(PARAMS, (experiment,))])


def _keep_view(address: str, experiment: str) -> None:
    shown = view_of(experiment)
    short = "deflate;" + b64encode(zlib.compress(json.dumps(shown).encode())).decode()  # MLflow's own format
    body = json.dumps({"experiment_id": experiment, "key": VIEW_TAG, "value": short}).encode()
    request = urllib.request.Request(f"{address}/api/2.0/mlflow/experiments/set-experiment-tag", body)
    request.add_header("Content-Type", "application/json")
    urllib.request.urlopen(request, timeout=30).close()
