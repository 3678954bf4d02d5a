import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from servers import HOST, free_port
from tracking_records import environment

from pipeline.core.config import Params
from pipeline.errors import UserError
from pipeline.tracking import stage
from pipeline.tracking.ui import serve

START_S = 120


@pytest.fixture
def recorded(root: Path, params: Params) -> Path:
    """A repository with one run."""
    with stage("compare", "", params):
        pass
    return root


def refused(port: int = 0) -> str:
    with pytest.raises(UserError) as error:
        next(serve(port or free_port(), browser=False))
    return str(error.value)


def test_without_a_database_one_line_says_how_to_make_one(bare: Path) -> None:
    remedy = "run 'python -m pipeline publish' (or 'dvc repro')"
    assert refused() == f"{bare}/mlflow.db: there is no MLflow database yet: {remedy}"


def test_without_runs_one_line_says_how_to_make_some(root: Path) -> None:
    assert refused().startswith(f"{root}/mlflow.db: no runs yet: ")


def test_a_store_of_the_users_is_theirs_to_show(recorded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://mlflow.example")
    assert refused().startswith("MLFLOW_TRACKING_URI is http://mlflow.example: ")


def test_a_database_of_junk_is_one_line(root: Path) -> None:
    (root / "mlflow.db").write_bytes(b"junk" * 1000)
    assert refused() == f"{root}/mlflow.db cannot be used (file is not a database); move it away"


def test_a_port_that_is_taken_is_one_line(recorded: Path) -> None:
    with socket.socket() as taken:
        taken.bind((HOST, 0))
        taken.listen()
        port = taken.getsockname()[1]
        said = refused(port)
    assert said == f"port {port} of {HOST}: Address already in use; name another one with --port"


def descendants(pid: int) -> dict[int, int]:
    """The processes that a process started, and theirs; RSS in MB."""
    found, parents = {}, {}
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            fields = dict(line.split(":\t", 1) for line in status.read_text().splitlines() if ":\t" in line)
        except OSError:
            continue
        parents[int(fields["Pid"])] = int(fields["PPid"])
        found[int(fields["Pid"])] = int(fields.get("VmRSS", "0 kB").split()[0]) // 1024

    def below(one: int) -> bool:
        return one in parents and (parents[one] == pid or below(parents[one]))

    return {one: size for one, size in found.items() if below(one)}


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="counts processes in /proc")
def test_the_server_is_two_processes_and_goes_with_its_command(recorded: Path) -> None:
    port = free_port()
    command = [sys.executable, "-m", "pipeline", "ui", "--port", str(port), "--no-browser"]
    ui = subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert ui.stdout is not None
    link = ui.stdout.readline()
    page = "#/experiments/1/runs?compareRunsMode=TABLE&workflowType=machine_learning&viewStateShareKey=answer\n"
    assert link == f"http://{HOST}:{port}/{page}"
    with urllib.request.urlopen(f"http://{HOST}:{port}/", timeout=30) as answer:
        assert answer.status == 200
    children = descendants(ui.pid)
    assert len(children) == 2
    assert sum(children.values()) < 1000
    os.kill(ui.pid, signal.SIGINT)
    assert ui.communicate(timeout=30) == ("", "")
    assert ui.returncode == 0
    until = time.monotonic() + START_S
    while any(Path(f"/proc/{child}").exists() for child in children):
        assert time.monotonic() < until
        time.sleep(0.1)
