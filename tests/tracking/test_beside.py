"""The process beside the last stage: it sends while the stage works, says what is wrong, and outlives nobody."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from servers import HOST, free_port
from tracking_records import Records, environment

from pipeline.config import Params
from pipeline.tracking import stage
from pipeline.tracking.delivery import send_earlier
from pipeline.tracking.publish import send_left
from pipeline.tracking.spool import waiting
from pipeline.tracking.store import lock, open_store

SOON_S = 60.0
WORKS = """
import time
from pipeline.config import load_params
from pipeline.tracking import stage
with stage("papers", "", load_params()):
    print("works", flush=True)
    time.sleep(600)
"""


@pytest.fixture(autouse=True)
def _later(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert bare
    monkeypatch.delenv("PIPELINE_TRACKING", raising=False)


def until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + SOON_S
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_what_earlier_stages_left_is_sent_while_the_last_one_works(root: Path, params: Params) -> None:
    with stage("generate", "online", params) as run:
        run.metrics({"jobs": 1.0}, step=0)
    assert len(waiting()) == 1
    with stage("papers", "", params):
        until(lambda: len(waiting()) == 1)
        assert Records(root).only("generate").info.status == "FINISHED"
    assert waiting() == []
    assert Records(root).only("papers").info.status == "FINISHED"


def test_a_server_that_is_away_costs_one_line_and_its_record_waits(
    bare: Path, params: Params, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert bare
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://{HOST}:{free_port()}")
    with stage("papers", "", params):
        pass
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith("tracking: ")
    assert line.endswith("the results are safe, what MLflow misses is sent by 'python -m pipeline publish'")
    assert len(waiting()) == 1


def test_a_stage_that_fails_ends_it_and_sends_by_itself(root: Path, params: Params) -> None:
    begun: list[psutil.Process] = []
    with pytest.raises(ValueError, match="mine"):
        fail(params, begun)
    assert [ended(one) for one in begun] == [True]
    assert waiting() == []
    assert Records(root).only("papers").info.status == "FAILED"


def fail(params: Params, begun: list[psutil.Process]) -> None:
    with stage("papers", "", params):
        begun += [child for child in psutil.Process().children() if "beside" in " ".join(child.cmdline())]
        raise ValueError("mine")


def test_who_must_send_does_not_take_anothers_word_for_it(root: Path, params: Params) -> None:
    with stage("generate", "online", params):
        pass
    store, (title, _) = open_store(), waiting()[0].name.split(".", 1)
    with lock("publish.lock", 0):
        assert send_earlier(store, title) == []  # who holds it sends this, too
        with pytest.raises(OSError, match=r"^another process has sent records for 0 s$"):
            send_earlier(store, title, 0.1)
        assert len(waiting()) == 1
    assert send_earlier(store, title, 0.1) == []
    assert waiting() == []
    assert root


def ended(process: psutil.Process) -> bool:
    """Has it ended? Where nobody reaps orphans, it stays as a zombie."""
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_its_process_ends_with_a_stage_that_is_killed(root: Path) -> None:
    command = [sys.executable, "-c", WORKS]
    begun = subprocess.Popen(command, env=environment(PIPELINE_TRACKING=""), stdout=subprocess.PIPE, text=True)
    assert begun.stdout
    assert begun.stdout.readline() == "works\n"
    (beside,) = psutil.Process(begun.pid).children()
    begun.send_signal(signal.SIGKILL)
    begun.communicate()
    until(lambda: ended(beside))
    send_left()  # if it had not come to it
    assert waiting() == []
    assert Records(root).only("papers").info.status == "KILLED"
