"""Model: log a model directory as an MLflow model, by its code and its safetensors: nothing is pickled.

A logged model is loaded where there is no repository, so it is read here and not by `storage`.
"""

import json
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np

from pipeline.config import ModelCard
from pipeline.core import Cluster
from pipeline.tracking import flat
from pipeline.tracking.store import Store

if TYPE_CHECKING:
    from mlflow.entities import Run
    from mlflow.models import Model, ModelSignature

    from pipeline.policies.loading import Loaded

MD5 = "dvc.md5"  # tag of a model
CODE = Path(__file__).with_name("policy_model.py")
PACKAGES = ("mlflow", "torch", "numpy", "numba", "safetensors", "pydantic", "ruamel.yaml")


def log_policy(store: Store, run: "Run", folder: Path, md5: str, cluster: Cluster, shared: bool) -> None:
    """Log the policy of a model directory as the model `policy` of a run; it loads as `runs:/<run id>/policy`.

    Args:
        store: where to.
        run: whose model it is; nothing is logged where it has this one already.
        folder: the model directory.
        md5: of the directory.
        cluster: that the policy schedules.
        shared: may another run's model of the same md5 be named instead of logging one more?
    """
    from mlflow.entities import LoggedModelOutput

    client, run_id = store.client, run.info.run_id
    logged = _logged(store, md5, None if shared else run_id) or _log(store, run_id, folder, md5, cluster)
    outputs = client.get_run(run_id).outputs
    if outputs is None or logged not in {output.model_id for output in outputs.model_outputs}:
        client.log_outputs(run_id, [LoggedModelOutput(logged, step=0)])


def _logged(store: Store, md5: str, run_id: str | None) -> str | None:
    """Return the model of this md5 that is complete; of one run if it is named."""
    found = store.client.search_logged_models([store.experiment], f"tags.`{MD5}` = '{md5}'")
    ready = (model for model in found if model.status == "READY" and run_id in (None, model.source_run_id))
    return next((str(model.model_id) for model in ready), None)


def _log(store: Store, run_id: str, folder: Path, md5: str, cluster: Cluster) -> str:
    from mlflow.entities.logged_model_status import LoggedModelStatus
    from mlflow.models import Model

    client = store.client
    for model in client.search_logged_models([store.experiment], f"tags.`{MD5}` = '{md5}'"):
        if model.source_run_id == run_id:  # begun, and never finished
            client.delete_logged_model(model.model_id)
    logged = client.create_logged_model(store.experiment, name="policy", source_run_id=run_id, tags={MD5: md5})
    described = Model(
        artifact_path=logged.artifact_location,
        model_uuid=logged.model_id,
        run_id=run_id,
        model_id=logged.model_id,
        signature=_signature(cluster),
    )
    with TemporaryDirectory() as place:
        _save(Path(place) / "model", folder, described, cluster)
        client.log_model_artifacts(logged.model_id, str(Path(place) / "model"))
    client.finalize_logged_model(logged.model_id, LoggedModelStatus.READY)
    return str(logged.model_id)


def is_stepped(folder: Path) -> bool:
    """Return whether a model directory is that of an agent of a scenario that goes in steps."""
    try:
        card = json.loads((folder / "policy.json").read_bytes())
    except (OSError, ValueError):
        return True
    return not isinstance(card, dict) or "dynamics" not in card


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
