"""Ui: MLflow's server on this machine, as light as possible, and the link to this pipeline's charts.

The page opens on a table of runs: where and how much each changed since the run before it, with an interval. Its charts
begin with each agent's distance from the best heuristic, then curves; other sections are folded. The page reads its
state from a tag of the experiment, named by the key in its address. MLflow's pages write such tags for shared views; no
public function does so. Charts that the state does not name go to the section named by the text before the slash in
their metric.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
import webbrowser
import zlib
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress

import pandas as pd

from pipeline.core.config import repository_root
from pipeline.core.types import Json
from pipeline.errors import UserError
from pipeline.tracking.changes import ENDS
from pipeline.tracking.delivery import reason
from pipeline.tracking.identity import FROM_BEST, PIPELINE_STAGE
from pipeline.tracking.publish import send_left
from pipeline.tracking.record import waiting
from pipeline.tracking.store import QUIET, Store, database, open_store

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
MOST_RUNS = 100  # from which columns and charts are made
MOST_PARAMS = 20  # columns


def serve(port: int, browser: bool) -> Iterator[str]:
    """Start the server, yield the link to the charts when it answers, and wait for its end; UserError without runs."""
    if waiting() and not os.environ.get("MLFLOW_TRACKING_URI"):
        send_left()
    experiment = _keep_view()
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((HOST, port))
        except OSError as error:
            raise UserError(f"port {port} of {HOST}: {error.strerror}; name another one with --port") from error
    address = f"http://{HOST}:{port}"
    with suppress(KeyboardInterrupt), _server(port) as server:
        _wait(server, port)
        link = f"{address}/{PAGE.format(experiment=experiment, view=VIEW_KEY)}"
        yield link
        if browser:
            webbrowser.open(link)
        server.wait()


def _keep_view() -> str:
    """Store the state of the page for the runs in the database, and return the id of the experiment."""
    elsewhere = os.environ.get("MLFLOW_TRACKING_URI")
    if elsewhere:
        raise UserError(
            f"MLFLOW_TRACKING_URI is {elsewhere}: runs are recorded there; unset it to see those of this folder"
        )
    path, remedy = database(), "run 'python -m pipeline publish' (or 'dvc repro')"
    if not path.exists():
        raise UserError(f"{path}: there is no MLflow database yet: {remedy}")
    try:
        store = open_store()
        shown = view_of(store)
        if shown is not None:
            short = b64encode(zlib.compress(json.dumps(shown).encode())).decode()
            store.client.set_experiment_tag(store.experiment, VIEW_TAG, f"deflate;{short}")  # MLflow's own format
            return store.experiment
    except UserError:
        raise
    except Exception as error:  # of MLflow or its database
        raise UserError(reason(error)) from error
    raise UserError(f"{path}: no runs yet: {remedy}")


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


def view_state(metrics: Mapping[str, bool], moved: Iterable[str], params: Iterable[str]) -> Json:
    """Return the state of the page: columns of the table, and charts, those of changed agents first.

    `metrics` says whether the last two pipeline runs differ in each metric; `moved` are the metrics of changes in them,
    and `params` those in which runs differ.
    """
    best = sorted((name for name in metrics if FROM_BEST in name), key=lambda name: not metrics[name])
    curves = [f"{scenario}/{policy}" for policy, _, scenario in (name.partition(FROM_BEST) for name in best)]
    charts = [_chart("BAR", TOP, name) for name in best]
    charts += [_chart("LINE", CURVES, name) | {"xAxisKey": "step"} for name in curves if name in metrics]
    folded = dict.fromkeys(name.rpartition("/")[0] or NO_SECTION for name in metrics)
    return {
        "isAccordionReordered": True,  # or sections would be sorted by name
        "compareRunSections": [
            {"uuid": name, "name": name, "display": name in (TOP, CURVES), "columns": 2, "cardHeight": 300}
            for name in (TOP, CURVES, *folded)
        ],
        "compareRunCharts": charts,
        "selectedColumns": [
            "attributes.`Description`",
            *(f"metrics.`{name}{end}`" for name in moved for end in ENDS),
            *(f"params.`{name}`" for name in params),
            "attributes.`Created`",
        ],
    }


def _chart(kind: str, section: str, metric: str) -> dict[str, Json]:
    return {
        "type": kind,
        "uuid": f"{section} {metric}",
        "metricSectionId": section,
        "displayName": metric.replace(FROM_BEST, " "),  # a long name is cut off
        "metricKey": metric,
        "selectedMetricKeys": [metric],  # several in one chart would be covered by their legend
        "runsCountToCompare": 10,
        "deleted": False,
        "isGenerated": False,
    }


def view_of(store: Store) -> Json | None:
    """Return the state of the page for the runs in the database, if there are any."""
    wanted = f"tags.stage = '{PIPELINE_STAGE}'"
    found = store.client.search_runs([store.experiment], wanted, max_results=MOST_RUNS, order_by=["start_time DESC"])
    metrics = pd.DataFrame([run.data.metrics for run in found]).sort_index(axis=1)
    params = pd.DataFrame([run.data.params for run in found]).sort_index(axis=1)
    differ = {str(name): values.dropna()[:2].nunique() > 1 for name, values in metrics.items()}
    last = metrics[:2].dropna(axis=1, how="all")
    moved = [str(name).removesuffix(ENDS[1]) for name in last if str(name).endswith(ENDS[1])]
    return view_state(differ, moved, list(params.columns[params.nunique() > 1])[:MOST_PARAMS]) if found else None
