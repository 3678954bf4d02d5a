"""Ui: MLflow's server on this machine, as light as it goes, and the link that opens on this pipeline's charts."""

import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.request
import webbrowser
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress

from pipeline.config import repository_root
from pipeline.errors import UserError
from pipeline.tracking import view
from pipeline.tracking.publish import send_left
from pipeline.tracking.spool import waiting
from pipeline.tracking.store import EXPERIMENT, QUIET, database

HOST = "127.0.0.1"
PAGE = "#/experiments/{experiment}/runs?compareRunsMode=CHART&workflowType=machine_learning&viewStateShareKey={view}"
LIGHT = {
    **QUIET,
    "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",  # else eight more processes, two GB, for what is not used here
    "MLFLOW_LOGGING_LEVEL": "WARNING",
}
START_S = 90
STOP_S = 5


def serve(port: int, browser: bool) -> Iterator[str]:
    """Start the server, yield the link to the charts when it answers, and stay until it ends or is interrupted.

    Args:
        port: of the loopback address.
        browser: open the link?

    Raises:
        UserError: there is nothing to show, or the port is taken.
    """
    if waiting() and not os.environ.get("MLFLOW_TRACKING_URI"):
        send_left()
    experiment = _experiment()
    _must_be_free(port)
    address = f"http://{HOST}:{port}"
    with suppress(KeyboardInterrupt), _server(port) as server:
        _wait(server, port)
        view.keep(address, database(), experiment)
        link = f"{address}/{PAGE.format(experiment=experiment, view=view.KEY)}"
        yield link
        if browser:
            webbrowser.open(link)
        server.wait()


def _experiment() -> str:
    """Return the id of the experiment; asking sqlite takes no time, opening MLflow's store takes seconds."""
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


def _must_be_free(port: int) -> None:
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((HOST, port))
        except OSError as error:
            raise UserError(f"port {port} of {HOST}: {error.strerror}; name another one with --port") from error


@contextmanager
def _server(port: int) -> Iterator[subprocess.Popen[bytes]]:
    root = repository_root().absolute()
    words = ["--backend-store-uri", f"sqlite:///{database()}", "--artifacts-destination", str(root / "mlartifacts")]
    words += ["--host", HOST, "--port", str(port), "--workers", "1", "--uvicorn-opts", "--log-level=warning"]
    command = [sys.executable, "-m", "mlflow", "server", *words]
    for number in (signal.SIGINT, signal.SIGTERM):  # the server must not be left behind
        signal.signal(number, signal.default_int_handler)
    server = subprocess.Popen(
        command,
        env={**os.environ, **LIGHT},
        cwd=root,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield server
    finally:
        _stop(server)


def _stop(server: subprocess.Popen[bytes]) -> None:
    """End the server and its worker, which are a group of their own."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(server.pid, number)
        with suppress(subprocess.TimeoutExpired):
            server.wait(STOP_S)
            return


def _wait(server: subprocess.Popen[bytes], port: int) -> None:
    """Wait until the server answers."""
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
