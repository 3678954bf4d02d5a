"""Policy model: the code that MLflow logs beside the weights and runs to load them; import nothing from here.

Asked with rows of `pipeline.tracking.flat`, it answers with actions [B]: slot, or, last, void.
"""

from pathlib import Path
from typing import Any

import numpy as np
from mlflow.models import set_model
from mlflow.pyfunc.model import PythonModel, PythonModelContext

from pipeline.core import IntArray
from pipeline.tracking.flat import unflatten
from pipeline.tracking.model import read_policy


class PolicyModel(PythonModel):
    """A policy behind MLflow's pyfunc interface."""

    def load_context(self, context: PythonModelContext) -> None:
        """Read the model directory."""
        self.loaded = read_policy(Path(context.artifacts["policy"]))

    def predict(
        self, context: PythonModelContext, model_input: np.ndarray, params: dict[str, Any] | None = None
    ) -> IntArray:
        """Return the action of each row; one `seed` gives one answer, also by a policy that draws."""
        rows = np.asarray(model_input, dtype=np.float32)
        draws = np.random.default_rng((params or {}).get("seed", 0)).random(len(rows))
        return self.loaded.policy(unflatten(rows, self.loaded.cluster), draws).astype(np.int64)


set_model(PolicyModel())
