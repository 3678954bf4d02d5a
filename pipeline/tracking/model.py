"""Model: log a model directory as an MLflow model, by its code and its safetensors: nothing is pickled.

A logged model is loaded where there is no repository, so it is read here and not by `storage`.
"""

from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np

from pipeline.config import ModelCard
from pipeline.core import Cluster
from pipeline.tracking import flat

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run
    from mlflow.models import Model, ModelSignature

    from pipeline.policies.loading import Loaded

CODE = Path(__file__).with_name("policy_model.py")
PACKAGES = ("mlflow", "torch", "numpy", "numba", "safetensors", "pydantic", "ruamel.yaml")


def log_policy(client: "MlflowClient", run: "Run", folder: Path) -> None:
    """Log the policy of a model directory as the model `policy` of a run; it loads as `runs:/<run id>/policy`."""
    from mlflow.entities import LoggedModelOutput
    from mlflow.entities.logged_model_status import LoggedModelStatus
    from mlflow.models import Model

    cluster = read_policy(folder).cluster
    info = run.info
    logged = client.create_logged_model(info.experiment_id, name="policy", source_run_id=info.run_id)
    client.log_outputs(info.run_id, [LoggedModelOutput(logged.model_id, step=0)])
    described = Model(
        artifact_path=logged.artifact_location,
        model_uuid=logged.model_id,
        run_id=info.run_id,
        model_id=logged.model_id,
        signature=_signature(cluster),
    )
    with TemporaryDirectory() as place:
        _save(Path(place) / "model", folder, described, cluster)
        client.log_model_artifacts(logged.model_id, str(Path(place) / "model"))
    client.finalize_logged_model(logged.model_id, LoggedModelStatus.READY)


def read_policy(folder: Path) -> "Loaded":
    """Return the network and policy of a model directory."""
    from safetensors.numpy import load

    from pipeline.policies.loading import restore

    card = ModelCard.model_validate_json((folder / "policy.json").read_bytes())
    return restore(card, load((folder / "policy.safetensors").read_bytes()))


def _save(target: Path, folder: Path, described: "Model", cluster: Cluster) -> None:
    from mlflow.pyfunc import save_model

    save_model(
        path=str(target),
        python_model=str(CODE),
        artifacts={"policy": str(folder.absolute())},
        mlflow_model=described,
        signature=described.signature,
        input_example=np.zeros((1, flat.width(cluster)), dtype=np.float32),
        pip_requirements=[f"{package}=={version(package).split('+')[0]}" for package in PACKAGES],
    )


def _signature(cluster: Cluster) -> "ModelSignature":
    from mlflow.models import ModelSignature
    from mlflow.types import DataType, ParamSchema, ParamSpec, Schema, TensorSpec

    return ModelSignature(
        inputs=Schema([TensorSpec(np.dtype(np.float32), (-1, flat.width(cluster)))]),
        outputs=Schema([TensorSpec(np.dtype(np.int64), (-1,))]),
        params=ParamSchema([ParamSpec("seed", DataType.long, 0)]),
    )
