import subprocess
from pathlib import Path

import mlflow
import numpy as np
import pytest
from flat_rows import flattened
from mlflow.exceptions import MlflowException
from tracking_records import Records

from pipeline.core.config import Params, PoolCard
from pipeline.core.storage import Model, read_model, write_model
from pipeline.core.types import Observation
from pipeline.interactive.pool.serving import layout, unflatten
from pipeline.learning.stored import weights_of
from pipeline.problems.pool.agents.networks.networks import build, card_of, restore
from pipeline.problems.pool.env.nouns import Cluster, JobSet
from pipeline.tracking import stage
from pipeline.tracking.delivery import send_waiting
from pipeline.tracking.model import served_by
from pipeline.tracking.store import open_store
from tests.oracles.pool import Timestep

LAYOUT = layout(resources=2, horizon=20, slots=10)


@pytest.fixture
def cluster(params: Params) -> Cluster:
    return Cluster.of(params.pool_scenario("online"))


@pytest.fixture
def folder(root: Path, params: Params, cluster: Cluster) -> Path:
    """The model directory of an untrained agent."""
    place = root / "models" / "deeprm" / "policy"
    network = build(params.agent("deeprm").network, cluster, seed=1)
    write_model(place, Model(card_of(params, "deeprm"), weights_of(network)))
    return place


@pytest.fixture
def views(cluster: Cluster) -> Observation:
    """Observations along an episode of random jobs and random moves, as a batch."""
    rng, rows = np.random.default_rng(5), np.array([0])
    jobs = JobSet(np.sort(rng.integers(0, 12, 30)), rng.integers(1, 16, 30), rng.integers(1, 11, (30, 2)))
    episode, seen = Timestep(jobs, cluster, step_limit=40), []
    while not episode.done:
        seen.append(flattened(LAYOUT, episode.observe(rows)))
        episode.step(rows, rng.integers(0, 11, 1))
    return unflatten(np.concatenate(seen), cluster)


def log(params: Params, folder: Path, root: Path) -> str:
    with stage("finetune", "deeprm", params) as run:
        run.model(folder)
    return f"runs:/{Records(root).only('finetune').info.run_id}/policy"


def test_a_model_is_logged_without_a_process_that_loads_it_to_see_what_it_imports(
    root: Path, params: Params, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, begin = list[str](), subprocess.Popen

    def beginning(command: list[str], *others: object, **more: object) -> object:
        begun.append(command[0])
        return begin(command, *others, **more)  # type: ignore[call-overload]

    monkeypatch.setattr(subprocess, "Popen", beginning)
    log(params, folder, root)
    assert [command for command in begun if "python" in command] == []  # it would take seconds


def test_a_logged_policy_acts_as_the_stored_one(
    root: Path,
    params: Params,
    folder: Path,
    views: Observation,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    address = log(params, folder, root)
    assert capfd.readouterr() == ("", "")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{root / 'mlflow.db'}")
    monkeypatch.setenv("MLFLOW_ALLOW_PICKLE_DESERIALIZATION", "false")
    said = mlflow.pyfunc.load_model(address).predict(flattened(LAYOUT, views))
    stored = read_model(folder, PoolCard)
    actions = restore(stored.card, stored.weights).policy(views, np.zeros(len(views.now)))
    assert said.tolist() == actions.tolist()
    assert len(set(actions.tolist())) > 1


def test_a_logged_policy_is_the_model_of_its_run_and_holds_no_pickle(
    root: Path, params: Params, folder: Path, cluster: Cluster
) -> None:
    log(params, folder, root)
    seen = Records(root)
    run = seen.only("finetune")
    (output,) = run.outputs.model_outputs
    logged = seen.client.get_logged_model(output.model_id)
    assert (logged.name, logged.status, logged.source_run_id) == ("policy", "READY", run.info.run_id)
    place = Path(logged.artifact_location.removeprefix("file://"))
    files = {file.name for file in place.rglob("*")}
    assert {"MLmodel", "policy.json", "policy.safetensors", "policy_model.py"} < files
    assert not [name for name in files if name.endswith((".pkl", ".pickle", ".pt", ".pyc"))]
    assert sorted(file.name for file in root.iterdir()) == [
        "mlartifacts",
        "mlflow.db",
        "mlflow.db.lock",
        "mlflow.db.publish.lock",
        "mlflow.db.spool",
        "models",
        "params.yaml",
    ]
    signature = mlflow.models.get_model_info(str(place)).signature
    assert signature.inputs.inputs[0].shape == (-1, LAYOUT.width)


def test_a_logged_policy_refuses_rows_of_another_cluster(
    root: Path, params: Params, folder: Path, cluster: Cluster
) -> None:
    log(params, folder, root)
    (output,) = Records(root).only("finetune").outputs.model_outputs
    logged = Records(root).client.get_logged_model(output.model_id)
    model = mlflow.pyfunc.load_model(logged.artifact_location)
    row = np.zeros((1, LAYOUT.width), dtype=np.float32)
    assert model.predict(row, params={"seed": 3}).shape == (1,)
    with pytest.raises(MlflowException, match="shape"):
        model.predict(row[:, 1:])


def test_a_folder_that_holds_no_model_costs_one_line(
    root: Path, params: Params, capfd: pytest.CaptureFixture[str]
) -> None:
    with stage("finetune", "deeprm", params) as run:
        run.model(root)
    (line,) = capfd.readouterr().err.splitlines()
    assert "policy.json" in line


def test_the_policy_of_a_card_is_served_by_its_problem(folder: Path, cluster: Cluster, views: Observation) -> None:
    served = served_by(folder)
    assert (served.width, served.answer) == (LAYOUT.width, None)
    assert served.act(flattened(LAYOUT, views), np.zeros(len(views.now))).shape == (len(views.now),)


@pytest.mark.parametrize("card", ["junk", "[]", '{"problem": "turns"}', '{"problem": ["pool"]}'])
def test_a_card_that_no_problem_can_read_costs_one_line(
    root: Path, params: Params, folder: Path, card: str, capfd: pytest.CaptureFixture[str]
) -> None:
    (folder / "policy.json").write_text(card)
    with stage("finetune", "deeprm", params) as run:
        run.model(folder)
    (line,) = capfd.readouterr().err.splitlines()
    assert "is not a model that today's code can read" in line
    assert not Records(root).only("finetune").outputs.model_outputs


def test_a_model_of_another_run_whose_weights_are_not_its_networks_is_told(
    params: Params, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    card, weights = read_model(folder, PoolCard)
    write_model(folder, Model(card, {name: one[..., :1] for name, one in weights.items()}))
    monkeypatch.delenv("PIPELINE_TRACKING")
    with stage("finetune", "deeprm", params) as run:
        run.model(folder)
    (said,) = send_waiting(open_store(), lambda path, _: Path(path))
    assert "is not a model that today's code can read" in said


def test_a_model_that_was_logged_before_rows_were_described_without_torch_still_acts(
    root: Path, params: Params, folder: Path, views: Observation
) -> None:
    log(params, folder, root)
    (output,) = Records(root).only("finetune").outputs.model_outputs
    place = Path(Records(root).client.get_logged_model(output.model_id).artifact_location.removeprefix("file://"))
    code, today = place / "policy_model.py", (place / "policy_model.py").read_text()
    earlier = today.replace("self.act = served_by(", "self.served = served_by(").replace(").load()", ")")
    code.write_text(earlier.replace("self.act(", "self.served.act("))
    rows = flattened(LAYOUT, views)
    answers = mlflow.pyfunc.load_model(str(place)).predict(rows, params={"seed": 3})
    code.write_text(today)
    assert earlier != today
    assert (answers == mlflow.pyfunc.load_model(str(place)).predict(rows, params={"seed": 3})).all()
