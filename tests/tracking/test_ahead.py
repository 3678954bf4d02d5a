"""The last stage's record, sent by a process that loads MLflow while the stage counts."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import psutil
import pytest
from servers import refusing, silent
from tracking_records import Records, environment

from pipeline.config import Params
from pipeline.tracking import StageRun, stage
from pipeline.tracking.ahead import ENDED
from pipeline.tracking.spool import waiting

PATIENCE_S = 60.0
COUNTS = """
import time
from pipeline.config import load_params
from pipeline.tracking import stage
with stage("papers", "", load_params(), ahead=True):
    print("counts", flush=True)
    time.sleep(600)
"""


@pytest.fixture(autouse=True)
def _later(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert bare
    monkeypatch.delenv("PIPELINE_TRACKING", raising=False)


def until(true: Callable[[], bool]) -> bool:
    end = time.monotonic() + PATIENCE_S
    while not true() and time.monotonic() < end:
        time.sleep(0.05)
    return true()


def process_of(run: StageRun) -> "subprocess.Popen[str]":
    assert run._ahead is not None
    return run._ahead._process


def test_earlier_records_are_sent_while_it_counts_and_its_own_at_its_end(root: Path, params: Params) -> None:
    with stage("generate", "online", params) as generate:
        generate.metrics({"jobs": 1.0}, step=0)
    (root / "figure.png").write_bytes(b"drawn")
    with stage("papers", "", params, ahead=True) as papers:
        papers.figure(Path("figure.png"))
        assert until(lambda: len(waiting()) == 1)
    seen = Records(root)
    assert waiting() == []
    assert {one.info.run_name: one.info.status for one in seen.runs()} == {
        "generate@online": "FINISHED",
        "papers": "FINISHED",
    }
    assert [one.path for one in seen.client.list_artifacts(seen.only("papers").info.run_id)] == ["figure.png"]


def test_how_it_failed_is_sent(root: Path, params: Params) -> None:
    with pytest.raises(ValueError, match="mine"), stage("papers", "", params, ahead=True):
        raise ValueError("mine")
    assert waiting() == []
    assert Records(root).only().info.status == "FAILED"
    assert Records(root).only().data.tags["error"] == "ValueError: mine"


@pytest.mark.parametrize("server", [refusing, silent])
def test_a_server_that_is_away_costs_one_line(
    server: Callable[[], AbstractContextManager[str]],
    params: Params,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    with server() as address:
        monkeypatch.setenv("MLFLOW_TRACKING_URI", address)
        with stage("papers", "", params, ahead=True):
            pass
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith("tracking: ")
    assert line.endswith("; the results are safe, what MLflow misses is sent by 'python -m pipeline publish'")
    assert len(waiting()) == 1


def test_a_process_that_was_killed_costs_one_line(params: Params, capfd: pytest.CaptureFixture[str]) -> None:
    with stage("papers", "", params, ahead=True) as papers:
        process_of(papers).kill()
    assert capfd.readouterr().err.startswith(f"tracking: {ENDED}; the results are safe, ")
    assert len(waiting()) == 1


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_of_a_stage_that_was_ended_no_process_is_left_and_the_record_is(root: Path, number: int) -> None:
    more = environment(PIPELINE_TRACKING="")
    counting = subprocess.Popen([sys.executable, "-c", COUNTS], env=more, stdout=subprocess.PIPE, text=True)
    try:
        assert counting.stdout is not None
        assert counting.stdout.readline() == "counts\n"
        (sending,) = psutil.Process(counting.pid).children()
        counting.send_signal(number)
        counting.wait(PATIENCE_S)
        assert psutil.wait_procs([sending], PATIENCE_S)[1] == []
    finally:
        counting.kill()
        counting.wait()
    if not (
        number == signal.SIGKILL and waiting()
    ):  # it may have been killed before earlier records were sent, or later
        assert waiting() == []
        assert Records(root).only().info.status == "KILLED"


@pytest.mark.parametrize("how", ["off", "live"])
def test_where_tracking_is_off_or_live_there_is_no_such_process(
    how: str, params: Params, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIPELINE_TRACKING", how)
    with stage("papers", "", params, ahead=True) as papers:
        assert papers._ahead is None
