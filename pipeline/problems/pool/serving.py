"""A stored policy of a pooled cluster, asked with rows of numbers."""

from pathlib import Path

from pipeline import storage
from pipeline.config import PoolCard
from pipeline.core import FloatArray, IntArray
from pipeline.problems import Served
from pipeline.problems.pool.flat import unflatten, width
from pipeline.problems.pool.networks.loading import restore


def served(folder: Path) -> Served:
    """Return what makes a stored policy answer rows of `flat` with actions: a slot or, last, void."""
    model = storage.read_model(folder, PoolCard)
    loaded = restore(model.card, model.weights)

    def act(rows: FloatArray, draws: FloatArray) -> IntArray:
        return loaded.policy(unflatten(rows, loaded.cluster), draws)

    return Served(width(loaded.cluster), None, act)
