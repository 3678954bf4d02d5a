"""When the record of a stage is sent: at once where it takes long or fails, else with the next that is."""

import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from servers import HOST
from tracking_records import Records, environment

from pipeline.core.config import Params
from pipeline.errors import UserError
from pipeline.tracking import run, stage
from pipeline.tracking.delivery import send_waiting
from pipeline.tracking.record import spool_folder, waiting
from pipeline.tracking.store import lock, open_store
from pipeline.tracking.ui import serve

SHORT = """
import sys
from pipeline.core.config import load_params
from pipeline.tracking import stage
with stage("generate", "online", load_params()) as run:
    run.metrics({"jobs": 1.0}, step=0)
print(*sorted({"mlflow", "sqlalchemy", "dvc", "torch", "pathspec"} & set(sys.modules)))
"""


@pytest.fixture(autouse=True)
def _later(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert bare
    monkeypatch.delenv("PIPELINE_TRACKING", raising=False)


def test_the_spool_is_in_the_folder_of_dvc_if_there_is_one(bare: Path) -> None:
    assert spool_folder() == Path.cwd() / "mlflow.db.spool"
    Path(".dvc").mkdir()
    assert spool_folder() == Path.cwd() / ".dvc" / "tmp" / "mlflow-spool"


def generate(params: Params, jobs: float = 1.0) -> None:
    with stage("generate", "online", params) as run:
        run.metrics({"jobs": jobs}, step=0)


def test_a_short_stage_loads_no_mlflow_and_leaves_its_record(root: Path) -> None:
    command = [sys.executable, "-c", SHORT]
    more = environment(PIPELINE_TRACKING="")
    done = subprocess.run(command, env=more, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("\n", "")
    assert len(waiting()) == 1
    assert Records(root).experiment is None


def test_the_last_stage_sends_what_the_others_left(root: Path, params: Params) -> None:
    generate(params)
    (root / "figure.png").write_bytes(b"drawn")
    results = Path("reports/tables/agents/deeprm")
    results.mkdir(parents=True)
    (results / "jobsets.csv").write_text("policy\n")
    with stage("compare", "", params) as compare:
        compare.inputs(results)
        compare.figure(Path("figure.png"))
    assert len(waiting()) == 2
    with stage("papers", "", params):
        pass
    seen = Records(root)
    assert waiting() == []
    assert {(one.info.run_name, one.info.status) for one in seen.runs()} == {
        (name, "FINISHED") for name in ("generate@online", "compare", "papers")
    }
    assert seen.only("generate").data.metrics == {"jobs": 1.0}
    assert [one.path for one in seen.client.list_artifacts(seen.only("compare").info.run_id)] == ["figure.png"]
    (parent,) = seen.parents()
    assert parent.data.tags["mlflow.note.content"] == "first run: no run before it"
    assert parent.info.start_time == seen.only("generate").info.start_time
    assert parent.info.end_time == seen.only("papers").info.end_time


def test_the_last_stage_waits_while_that_of_another_run_sends(root: Path, params: Params) -> None:
    generate(params)
    held = threading.Event()

    def send() -> None:
        with lock("publish.lock", 0):
            held.set()
            while Records(root).experiment is None or not Records(root).runs():
                time.sleep(0.05)
            time.sleep(2.0)  # the last stage, whose record has come, is done with all but the others' records

    other = threading.Thread(target=send)
    other.start()
    assert held.wait(10)
    with stage("papers", "", params):
        pass
    other.join()
    assert waiting() == []
    assert {one.info.run_name for one in Records(root).runs()} == {"generate@online", "papers"}


def test_a_stage_that_fails_is_seen_at_once_behind_those_before_it(root: Path, params: Params) -> None:
    generate(params)
    with pytest.raises(ValueError, match="mine"), stage("finetune", "deeprm", params):
        raise ValueError("mine")
    seen = Records(root)
    assert waiting() == []
    assert {one.info.run_name: one.info.status for one in seen.runs()} == {
        "generate@online": "FINISHED",
        "finetune@deeprm": "FAILED",
    }
    assert seen.parents()[0].info.status == "FAILED"


def test_a_long_training_is_watched_while_it_runs(root: Path, params: Params, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    with stage("finetune", "deeprm", params) as training:
        training.metrics({"return": 1.0}, step=0)
        assert Records(root).experiment is None
        now[0] += run.LONG_S
        training.metrics({"return": 2.0}, step=1)
        now[0] += 10.0
        training.metrics({"return": 3.0}, step=2)
        seen = Records(root)
        assert seen.points(seen.only(), "return") == [(0, 1.0), (1, 2.0), (2, 3.0)]
        assert seen.only().info.status == "RUNNING"
    assert Records(root).only().info.status == "FINISHED"


def test_records_of_another_pipeline_run_wait_for_their_own(root: Path, params: Params) -> None:
    generate(params)
    (root / "params.yaml").write_text((root / "params.yaml").read_text() + "\n# edited\n")
    with stage("papers", "", params):
        pass
    assert [one.info.run_name for one in Records(root).runs()] == ["papers"]
    assert len(waiting()) == 1


def test_ui_sends_what_waits_before_it_opens(root: Path, params: Params) -> None:
    generate(params)
    with socket.socket() as taken:
        taken.bind((HOST, 0))
        taken.listen()
        opened = serve(taken.getsockname()[1], browser=False)
        with pytest.raises(UserError, match="port"):
            next(opened)
    assert Records(root).only().info.run_name == "generate@online"
    assert waiting() == []


def test_the_state_of_a_pipeline_run_is_that_of_the_stage_that_ended_last(root: Path, params: Params) -> None:
    generate(params)
    (earlier,) = waiting()
    aside = earlier.rename(root / earlier.name)
    with pytest.raises(ValueError, match="mine"), stage("finetune", "deeprm", params):
        raise ValueError("mine")
    aside.rename(earlier)
    (said,) = send_waiting(open_store(), lambda path, _: Path(path))
    assert said.startswith("spooled: generate@online of ")
    seen = Records(root)
    assert len(seen.runs()) == 2
    assert seen.parents()[0].info.status == "FAILED"
