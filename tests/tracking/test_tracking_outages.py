"""What a stage pays when MLflow is away in some way: one line, at most ten seconds, and no result."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing
from pathlib import Path

import pytest
from forks import Ended, Forks
from laid_out import LaidOut
from servers import HOST, black_hole, falling_silent, free_port, refusing, silent
from tracking_records import Records, environment

from pipeline.tracking.publish import publish

AT_MOST_S = 20  # twice what it takes at most on an idle machine
SAFE = "; the results are safe, what MLflow misses is sent by 'python -m pipeline publish'\n"
OBEY = ("setpriv", "--bounding-set=-dac_override,-dac_read_search")  # makes root obey permissions

# The time is taken without the import of mlflow, which a stage pays for in any case; so it is imported once for all.
IMPORTS = "import mlflow, mlflow.pyfunc, torch, numba, pipeline.tracking"
STAGE = f"""
import os, sys, time
from pathlib import Path
{IMPORTS}
from pipeline.core.config import load_params
from pipeline.tracking import stage
params = load_params()
begun = time.monotonic()
with stage("finetune", "deeprm", params) as run:
    run.inputs(Path("data/jobsets/online"), Path("models/deeprm/pretrained"))
    for step in range(1, 41):
        run.metrics({{"validation": 1.0 / step}}, step)
    run.parent_curve("slowdown/deeprm", {{10: 1.5, 190: 4.5}})
    run.figure(Path("reports/comparison.md"))
    run.model(Path("models/deeprm/policy"))
    Path(sys.argv[1]).write_text("result")
print(time.monotonic() - begun)
"""


IMPATIENT = {"MLFLOW_HTTP_REQUEST_TIMEOUT": "1"}  # seconds
QUIET = {"MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_LOGGING_LEVEL": "CRITICAL"}


@pytest.fixture(scope="module")
def forks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forks]:
    found = Forks(tmp_path_factory.mktemp("forks"), IMPORTS, environment(**QUIET))
    yield found
    found.end()


def waited(forks: Forks, laid: LaidOut, stage: str = STAGE, **more: str) -> tuple[float, str]:
    """Run a stage that ends well, and return how long it took and what it said."""
    result = laid.root / "reports" / "result"
    result.unlink(missing_ok=True)
    done = forks.run(stage, str(result), folder=laid.root, environment=environment(**QUIET, **more))
    return ended_well(done, result)


def ended_well(done: Ended, result: Path) -> tuple[float, str]:
    assert done.code == 0, done.err
    assert result.read_text() == "result"
    return float(done.out), done.err


def spooled(laid: LaidOut) -> int:
    return len(list((laid.root / ".dvc" / "tmp" / "mlflow-spool").glob("*.jsonl")))


def says_one_line(forks: Forks, laid: LaidOut, **more: str) -> float:
    """Hold a stage that cannot record to its line, and return how long it took."""
    took, said = waited(forks, laid, **more)
    assert said.startswith("tracking: ")
    assert said.endswith(SAFE)
    assert said.count("\n") == 1
    return took


def costs_little(forks: Forks, laid: LaidOut, **more: str) -> None:
    """Hold a stage that cannot record to its line, and to ten seconds."""
    assert says_one_line(forks, laid, **more) < AT_MOST_S


# One of the two that hang waits as long as MLflow is told to by default.
@pytest.mark.parametrize(("server", "more"), [(refusing, {}), (black_hole, IMPATIENT), (silent, {})])
def test_a_server_that_is_away_costs_one_line_and_ten_seconds(
    forks: Forks, laid: LaidOut, server: Callable[[], AbstractContextManager[str]], more: dict[str, str]
) -> None:
    with server() as address:
        costs_little(forks, laid, MLFLOW_TRACKING_URI=address, **more)
    assert spooled(laid) == 1
    assert Records(laid.root).experiment is None


@pytest.mark.parametrize("address", ["sqlite:////nowhere/mlflow.db", "sqlite:///reports"])
def test_an_sqlite_address_that_cannot_be_opened_costs_one_line_and_ten_seconds(
    forks: Forks, laid: LaidOut, address: str
) -> None:
    costs_little(forks, laid, MLFLOW_TRACKING_URI=address)
    assert spooled(laid) == 1


def lock(path: Path) -> sqlite3.Connection:
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("BEGIN EXCLUSIVE")
    return database


def test_a_database_that_another_program_holds_costs_one_line_and_ten_seconds(forks: Forks, laid: LaidOut) -> None:
    with closing(lock(laid.root / "mlflow.db")):
        costs_little(forks, laid)
    assert spooled(laid) == 1


def test_a_database_that_is_held_from_the_middle_of_a_stage_costs_one_line_and_ten_seconds(
    forks: Forks, laid: LaidOut
) -> None:
    connect = "held = sqlite3.connect('mlflow.db', isolation_level=None)"
    held = f"import sqlite3\n    {connect}\n    held.execute('BEGIN EXCLUSIVE')"
    costs_little(forks, laid, stage=STAGE.replace("run.figure", f"{held}\n    run.figure"))
    assert spooled(laid) == 1


def test_a_database_of_junk_costs_one_line_and_its_record_is_sent_to_the_next(
    forks: Forks, laid: LaidOut, database: Path
) -> None:
    (laid.root / "mlflow.db").write_bytes(b"not a database" * 100)
    costs_little(forks, laid)
    (laid.root / "mlflow.db").write_bytes(database.read_bytes())
    said = "\n".join(line for line, _ in publish((), everything=False))
    assert "publish: spooled: finetune@deeprm" in said
    assert "6 stages, 1 recorded, 5 restored" in said
    assert spooled(laid) == 0


@pytest.mark.skipif(os.getuid() == 0 and not shutil.which("setpriv"), reason="root may write everywhere")
def test_where_nothing_may_be_written_a_stage_still_gives_its_results(laid: LaidOut) -> None:
    closed, result = [laid.root, laid.root / ".dvc"], laid.root / "reports" / "result"
    try:
        for place in closed:
            place.chmod(0o555)
        command = [*(OBEY if os.getuid() == 0 else ()), sys.executable, "-c", STAGE, str(result)]
        done = subprocess.run(command, env=environment(**QUIET), capture_output=True, text=True, check=False)
        took, said = ended_well(Ended(done.returncode, done.stdout, done.stderr), result)
    finally:
        for place in closed:
            place.chmod(0o755)
    assert took < AT_MOST_S
    assert said.startswith("tracking: [Errno 13] Permission denied: ")
    assert said.endswith("; the results are safe, only MLflow misses this\n")
    assert said.count("\n") == 1


# A real server


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """MLflow's own server."""
    place, port = tmp_path_factory.mktemp("server"), free_port()
    words = ["--backend-store-uri", f"sqlite:///{place / 'mlflow.db'}", "--artifacts-destination", str(place / "files")]
    light = environment(MLFLOW_SERVER_ENABLE_JOB_EXECUTION="false", MLFLOW_DISABLE_TELEMETRY="true")
    server = subprocess.Popen(
        [sys.executable, "-m", "mlflow", "server", *words, "--host", HOST, "--port", str(port), "--workers", "1"],
        env=light,
        cwd=place,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    until = time.monotonic() + 120
    while True:
        try:
            urllib.request.urlopen(f"http://{HOST}:{port}/health", timeout=5).close()
            break
        except OSError:
            assert time.monotonic() < until
            time.sleep(0.3)
    yield f"{HOST}:{port}"
    os.killpg(server.pid, signal.SIGTERM)
    server.wait(20)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answers", "of"), [(1, ""), (3, ""), (6, ""), (8, ""), (0, "mlflow-artifacts"), (3, "mlflow-artifacts")]
)
def test_a_server_that_falls_silent_costs_one_line_and_ten_seconds(
    forks: Forks, laid: LaidOut, real: str, answers: int, of: str
) -> None:
    before, said = waited(forks, laid, MLFLOW_TRACKING_URI=f"http://{real}")
    assert said == ""
    with falling_silent(real, answers, of) as address:
        took = says_one_line(forks, laid, MLFLOW_TRACKING_URI=address)
    assert spooled(laid) == 1
    subprocess.run(
        [sys.executable, "-m", "pipeline", "publish"],
        env=environment(MLFLOW_TRACKING_URI=f"http://{real}"),
        capture_output=True,
        check=True,
    )
    assert spooled(laid) == 0
    after, said = waited(forks, laid, MLFLOW_TRACKING_URI=f"http://{real}")  # behind the delivery, which it would do
    assert said == ""
    sys.stderr.write(f"silent after {answers} {of}: {took:.1f} s, healthy: {before:.1f} and {after:.1f} s\n")
    assert took - max(before, after) < AT_MOST_S  # on a busy machine the two differ by seconds
