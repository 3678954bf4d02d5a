"""Policy model: the code that MLflow logs with the weights and runs to load them; do not import it.

`pipeline.interactive.<problem>.serving` defines its inputs and answers, for the problem on its card.
"""

from pathlib import Path
from typing import Any

import numpy as np
from mlflow.models import set_model
from mlflow.pyfunc.model import PythonModel, PythonModelContext

from pipeline.core.types import FloatArray, IntArray
from pipeline.tracking.model import served_by


class PolicyModel(PythonModel):
    """A policy with MLflow's pyfunc interface."""

    def load_context(self, context: PythonModelContext) -> None:
        """Read the model directory."""
        self.act = served_by(Path(context.artifacts["policy"])).load()

    def predict(
        self, context: PythonModelContext, model_input: np.ndarray, params: dict[str, Any] | None = None
    ) -> FloatArray | IntArray:
        """Return the answer to each row; the same `seed` gives the same answer, even if the policy samples actions."""
        rows = np.asarray(model_input, dtype=np.float32)
        draws = np.random.default_rng((params or {}).get("seed", 0)).random(len(rows))
        return self.act(rows, draws)


set_model(PolicyModel())
