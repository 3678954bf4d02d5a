"""A logged policy of each problem behind `mlflow models serve`, asked over HTTP."""

import json
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from group_models import write_controller
from group_rows import shared
from servers import free_port
from tracking_records import Records, environment

from pipeline.core.config import MachinesCard, Params, PoolAgent
from pipeline.core.config.machines.learning import DeepSets
from pipeline.core.storage import Model, write_model
from pipeline.learning.stored import weights_of
from pipeline.problems.machines.agents.networks import loading as machines
from pipeline.problems.pool.agents.networks.networks import build, card_of
from pipeline.problems.pool.env.nouns import Cluster
from pipeline.tracking import stage
from pipeline.tracking.model import served_by

READY_S = 90


def pool(params: Params, place: Path) -> None:
    network = build(params.agent_of(PoolAgent, "deeprm").network, Cluster.of(params.pool_scenario("online")), seed=1)
    write_model(place, Model(card_of(params, "deeprm"), weights_of(network)))


def many_machines(params: Params, place: Path) -> None:
    network = DeepSets(name="deepsets", hidden=8)
    card = MachinesCard(
        problem="machines", agent="mine", scenario="few", resources=("cpu",), machines=2, slots=4, dispatch="greedy",
        unit=1.0, objective="slowdown", network=network, play="greedy",
    )  # fmt: skip
    write_model(place, Model(card, weights_of(machines.build(network, machines.shape_of(card), seed=1))))


def groups(params: Params, place: Path) -> None:
    write_controller(shared(), place)


WRITERS: list[Callable[[Params, Path], None]] = [pool, many_machines, groups]


@contextmanager
def serving(model: str, root: Path) -> Iterator[int]:
    """The port of a server on this machine that answers for a logged model."""
    port = free_port()
    words = ["models", "serve", "-m", model, "--env-manager", "local", "-h", "127.0.0.1", "-p", str(port)]
    closed = environment(MLFLOW_TRACKING_URI=f"sqlite:///{root / 'mlflow.db'}")
    server = subprocess.Popen([sys.executable, "-m", "mlflow", *words], cwd=root, env=closed, start_new_session=True)
    try:
        until = time.monotonic() + READY_S
        while not alive(port):
            assert time.monotonic() < until, "the server did not begin"
            time.sleep(0.5)
        yield port
    finally:
        server.terminate()
        server.wait(30)


def alive(port: int) -> bool:
    try:
        return urllib.request.urlopen(f"http://127.0.0.1:{port}/ping", timeout=5).status == 200
    except (urllib.error.URLError, OSError):
        return False


def test_what_a_model_is_asked_with_is_told_without_torch(tmp_path: Path, params: Params) -> None:
    folders = [tmp_path / write.__name__ for write in WRITERS]
    for write, folder in zip(WRITERS, folders, strict=True):
        write(params, folder)
    tell = "import sys; from pathlib import Path; from pipeline.tracking.model import served_by; "
    tell += "print([served_by(Path(word)).width for word in sys.argv[1:]], 'torch' in sys.modules)"
    command = [sys.executable, "-c", tell, *map(str, folders)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == f"{[served_by(folder).width for folder in folders]} False\n"


@pytest.mark.slow
@pytest.mark.parametrize("write", WRITERS)
def test_a_served_policy_answers_rows(root: Path, params: Params, write: Callable[[Params, Path], None]) -> None:
    folder = root / "models" / "deeprm" / "policy"
    write(params, folder)
    with stage("finetune", "deeprm", params) as run:
        run.model(folder)
    served = served_by(folder)
    rows = np.zeros((3, served.width), dtype=np.float32)
    with serving(f"runs:/{Records(root).only('finetune').info.run_id}/policy", root) as port:
        asked = urllib.request.Request(
            f"http://127.0.0.1:{port}/invocations",
            json.dumps({"inputs": rows.tolist()}).encode(),
            {"Content-Type": "application/json"},
        )
        answer = np.array(json.loads(urllib.request.urlopen(asked, timeout=30).read())["predictions"])
    draws = np.random.default_rng(0).random(len(rows))
    assert answer.shape == ((3,) if served.answer is None else (3, served.answer))
    assert (answer == served.act(rows, draws)).all()
