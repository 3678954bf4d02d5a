"""Model: log a model directory as an MLflow model, with its code and safetensors, without pickle.

A logged model is loaded without a repository, so it is read here and not by `storage`.
"""

import json
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np

from pipeline.core.config.learning import POOL
from pipeline.problems import problem
from pipeline.problems.parts import Served
from pipeline.tracking.store import Store

if TYPE_CHECKING:
    from mlflow.entities import LoggedModel, Run
    from mlflow.models import ModelSignature

MD5 = "dvc.md5"  # tag of a model
CODE = Path(__file__).with_name("policy_model.py")
PACKAGES = ("mlflow", "torch", "numpy", "numba", "safetensors", "pydantic", "ruamel.yaml")


def log_policy(store: Store, run: "Run", folder: Path, md5: str, served: Served, shared: bool) -> None:
    """Log the policy of a model directory as the model `policy` of a run; it loads as `runs:/<run id>/policy`.

    A run that already has the model gets no second one. `md5` is the directory's. If `shared`, another run's model with
    the same md5 is used instead of logging one more.
    """
    from mlflow.entities import LoggedModelOutput

    client, run_id = store.client, run.info.run_id
    of_run = None if shared else run_id
    logged = logged_model(store, md5, of_run)
    if logged is None:
        with store.exclusive(f"the model {md5}"):  # another clone may have been first
            logged = logged_model(store, md5, of_run) or _log(store, run_id, folder, md5, served)
    outputs = client.get_run(run_id).outputs
    if outputs is None or logged.model_id not in {output.model_id for output in outputs.model_outputs}:
        client.log_outputs(run_id, [LoggedModelOutput(logged.model_id, step=0)])


def logged_model(store: Store, md5: str, run_id: str | None = None) -> "LoggedModel | None":
    """Return a complete model with this md5, if any; if `run_id` is given, only one of that run."""
    found = store.client.search_logged_models([store.experiment], f"tags.`{MD5}` = '{md5}'")
    ready = (model for model in found if model.status == "READY" and run_id in (None, model.source_run_id))
    return next(ready, None)


def _log(store: Store, run_id: str, folder: Path, md5: str, served: Served) -> "LoggedModel":
    from mlflow.entities.logged_model_status import LoggedModelStatus
    from mlflow.models import Model
    from mlflow.pyfunc import save_model

    client = store.client
    for model in client.search_logged_models([store.experiment], f"tags.`{MD5}` = '{md5}'"):
        if model.source_run_id == run_id:  # incomplete
            client.delete_logged_model(model.model_id)
    logged = client.create_logged_model(store.experiment, name="policy", source_run_id=run_id, tags={MD5: md5})
    described = Model(
        artifact_path=logged.artifact_location,
        model_uuid=logged.model_id,
        run_id=run_id,
        model_id=logged.model_id,
        signature=_signature(served),
    )
    with TemporaryDirectory() as place:
        save_model(
            path=str(Path(place) / "model"),
            python_model=str(CODE),
            artifacts={"policy": str(folder.absolute())},
            mlflow_model=described,
            signature=described.signature,
            input_example=np.zeros((1, served.width), dtype=np.float32),
            pip_requirements=[f"{package}=={version(package).split('+')[0]}" for package in PACKAGES],
        )
        client.log_model_artifacts(logged.model_id, str(Path(place) / "model"))
    return client.finalize_logged_model(logged.model_id, LoggedModelStatus.READY)


def served_by(folder: Path) -> Served:
    """Return the policy of a model directory, ready to be served; its card names the problem."""
    card = json.loads((folder / "policy.json").read_bytes())
    return problem(str(card.get("problem", POOL))).served(folder)


def _signature(served: Served) -> "ModelSignature":
    from mlflow.models import ModelSignature
    from mlflow.types import DataType, ParamSchema, ParamSpec, Schema, TensorSpec

    answer = TensorSpec(np.dtype(np.int64), (-1,))  # an action
    if served.answer is not None:
        answer = TensorSpec(np.dtype(np.float64), (-1, served.answer))
    return ModelSignature(
        inputs=Schema([TensorSpec(np.dtype(np.float32), (-1, served.width))]),
        outputs=Schema([answer]),
        params=ParamSchema([ParamSpec("seed", DataType.long, 0)]),
    )
